// Keeps the hub in sync with the journal. The feed reads the journal's events once; then the journal sends
// new ones. If some are missing in between, the feed reads the journal again.
import { type Clock, tolerateFailure } from '../../runtime/actor.ts';
import { EventHub, type StreamedEvent } from './event_hub.ts';

/** Pause before the journal is asked again after a failure. */
const RETRY_MS = 500;

/** The owner of a journal of events. */
export interface EventSource<R extends StreamedEvent> {
  readonly clock: Clock;
  /** Asks for the newest events; the journal sends all later ones from then on. */
  subscribe(): Promise<{ kept: R[]; lastId: number; completeFrom: number }>;
}

/** The journal is being read. */
interface Restoring<R> {
  phase: 'restoring';
  /** Events that arrived meanwhile. */
  backlog: R[];
  done: Promise<void>;
  /** Ends the pause before a retry; null: no pause. */
  endPause: (() => void) | null;
}
/** `live`: the hub gets events directly from the journal. */
type FeedState<R> = { phase: 'live' } | Restoring<R> | { phase: 'closed' };

export class EventFeed<R extends StreamedEvent> {
  readonly hub: EventHub<R>;
  private readonly source: EventSource<R>;
  private readonly onEvents: (records: readonly R[]) => void;
  private state: FeedState<R> = { phase: 'live' };

  /** `onEvents` gets what happens from now on. */
  constructor(source: EventSource<R>, onEvents: (records: readonly R[]) => void) {
    this.source = source;
    this.onEvents = onEvents;
    this.hub = new EventHub(source.clock);
  }

  /** Takes events from the journal, in the order of their ids. */
  receive(records: readonly R[]): void {
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

  private startRestore(backlog: R[]): Promise<void> {
    const restoring: Restoring<R> = { phase: 'restoring', backlog, done: Promise.resolve(), endPause: null };
    this.state = restoring;
    restoring.done = this.askJournal(restoring);
    return restoring.done;
  }

  private async askJournal(restoring: Restoring<R>): Promise<void> {
    while (this.state === restoring) {
      const answer = await tolerateFailure(this.source.subscribe(), () => null);
      if (answer) {
        this.hub.restore(answer.kept, answer.lastId, answer.completeFrom);
        this.hub.add(restoring.backlog);
        if (this.state === restoring) this.state = { phase: 'live' };
      } else if (this.state === restoring) await this.pause(restoring);
    }
  }

  private pause(restoring: Restoring<R>): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.source.clock.after(RETRY_MS, resolve);
      restoring.endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
