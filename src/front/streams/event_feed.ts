// Keeps the hub in step with the journal. The feed reads the journal's events once; then the journal sends
// new ones. If some are missing in between, the feed reads the journal again.
import type { EventRecord } from '../../protocol/events.ts';
import { type Node, tolerateFailure } from '../../runtime/actor.ts';
import { EventHub } from './event_hub.ts';

/** Pause before the journal is asked again after a failure. */
const RETRY_MS = 500;

/** The journal is being asked. */
interface Restoring {
  phase: 'restoring';
  /** Events that arrived from the journal meanwhile. */
  backlog: EventRecord[];
  done: Promise<void>;
  /** Ends the pause before a retry; null: no pause. */
  endPause: (() => void) | null;
}
/** `live`: the hub gets events directly from the journal. */
type FeedState = { phase: 'live' } | Restoring | { phase: 'closed' };

export class EventFeed {
  readonly hub: EventHub;
  private readonly node: Node;
  private readonly onEvents: (records: readonly EventRecord[]) => void;
  private state: FeedState = { phase: 'live' };

  /** `onEvents` gets what happens from now on. */
  constructor(node: Node, onEvents: (records: readonly EventRecord[]) => void) {
    this.node = node;
    this.onEvents = onEvents;
    this.hub = new EventHub(node.clock);
  }

  /** Takes events from the journal, in the order of their ids. */
  receive(records: readonly EventRecord[]): void {
    this.onEvents(records);
    const { state } = this;
    const [first] = records;
    const isGap = first !== undefined && !this.hub.isContiguous(first.id);
    if (state.phase === 'restoring') state.backlog.push(...records);
    // The journal's actor or thread was restarted and sent nothing in between.
    else if (isGap && state.phase === 'live') void this.startRestore([...records]);
    else this.hub.add(records);
  }

  /** Resolves when the hub has all events in the journal's memory. Retries until the journal answers. */
  restore(): Promise<void> {
    if (this.state.phase === 'closed') return Promise.resolve();
    return this.state.phase === 'restoring' ? this.state.done : this.startRestore([]);
  }

  /** Ends every stream. */
  close(): void {
    const { state } = this;
    this.state = { phase: 'closed' };
    if (state.phase === 'restoring') state.endPause?.();
    this.hub.end();
  }

  private startRestore(backlog: EventRecord[]): Promise<void> {
    const restoring: Restoring = { phase: 'restoring', backlog, done: Promise.resolve(), endPause: null };
    this.state = restoring;
    restoring.done = this.askJournal(restoring);
    return restoring.done;
  }

  private async askJournal(restoring: Restoring): Promise<void> {
    while (this.state === restoring) {
      const answer = await tolerateFailure(this.node.ref('events').ask('subscribe', {}), () => null);
      if (answer) {
        this.hub.restore(answer.kept, answer.lastId, answer.completeFrom);
        this.hub.add(restoring.backlog);
        if (this.state === restoring) this.state = { phase: 'live' };
      } else if (this.state === restoring) await this.pause(restoring);
    }
  }

  private pause(restoring: Restoring): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.node.clock.after(RETRY_MS, resolve);
      restoring.endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
