// Keeps the hub in step with the journal: what is kept is asked for once, what is new is told; a hole is asked for again.
import type { EventRecord } from '../../protocol/events.ts';
import type { Node } from '../../runtime/actor.ts';
import { EventHub } from './event_hub.ts';

/** How long after a failure the journal is asked again. */
const RETRY_MS = 500;

export class EventFeed {
  readonly hub: EventHub;
  private readonly node: Node;
  /** What came while the journal was being asked; null: it is not. */
  private backlog: EventRecord[] | null = null;
  private restoring: Promise<void> | null = null;
  private closed = false;
  /** Ends the pause before the next try. */
  private cancelPause = (): void => {};

  constructor(node: Node) {
    this.node = node;
    this.hub = new EventHub(node.clock);
  }

  /** From `events`, in the order of their ids. */
  receive(records: readonly EventRecord[]): void {
    const [first] = records;
    if (this.backlog) this.backlog.push(...records);
    else if (first && !this.hub.isContiguous(first.id)) {
      // Its actor or thread was started anew and told nobody in between.
      this.backlog = [...records];
      void this.restore();
    } else this.hub.add(records);
  }

  /** Resolves when the hub has all that the journal has kept. Asks until it is answered. */
  restore(): Promise<void> {
    this.restoring ??= this.fetchKept().finally(() => {
      this.restoring = null;
    });
    return this.restoring;
  }

  close(): void {
    this.closed = true;
    this.cancelPause();
    this.hub.end();
  }

  private async fetchKept(): Promise<void> {
    this.backlog ??= [];
    while (!this.closed) {
      const kept = await this.node
        .ref('events')
        .ask('subscribe', {})
        .catch(() => null);
      if (kept) {
        this.hub.restore(kept.kept, kept.lastId, kept.completeFrom);
        this.hub.add(this.backlog);
        this.backlog = null;
        return;
      }
      await new Promise<void>((resolve) => {
        const cancel = this.node.clock.after(RETRY_MS, resolve);
        this.cancelPause = () => {
          cancel();
          resolve();
        };
      });
    }
  }
}
