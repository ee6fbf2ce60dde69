// The journal's events in memory, with the one-time events of each run: a run starts once, ends once and so
// on.
import { EventRing, isStatistics } from '../../protocol/event_ring.ts';
import type { EventRecord } from '../../protocol/events.ts';
import { EVENTS } from '../../settings/limits.ts';

const claimKey = (run: string, type: string): string => `${run} ${type}`;

export class KeptEvents {
  private readonly ring: EventRing<EventRecord>;
  private readonly claims = new Set<string>();

  /** `completeFrom`: the oldest id from which no lifecycle event is missing; `size` for tests. */
  constructor(completeFrom: number, size: number = EVENTS.retained) {
    this.ring = new EventRing(size, completeFrom);
  }

  /** Adds an event with an id above all others. */
  push(event: EventRecord): void {
    const { run, type } = event;
    if (run !== null && !isStatistics(event)) this.claim(run, type);
    const dropped = this.ring.push(event);
    if (dropped && dropped.run !== null) this.claims.delete(claimKey(dropped.run, dropped.type));
  }

  /** Reserves the one event of `type` for `run`. False when it is in memory or reserved already. */
  claim(run: string, type: string): boolean {
    const before = this.claims.size;
    return this.claims.add(claimKey(run, type)).size > before;
  }

  /** The oldest id from which no lifecycle event is missing. */
  get completeFrom(): number {
    return this.ring.completeFrom;
  }

  /** All events in the order of ids. */
  list(): EventRecord[] {
    return this.ring.kept();
  }
}
