// The journal's events in memory, and the one-time events of each run: it starts once, ends once, and so on.
import { EventRing, isStatistics } from '../../protocol/event_ring.ts';
import { type EventRecord, type EventType, RUN_END_TYPES } from '../../protocol/events.ts';
import { EVENTS } from '../../settings/limits.ts';

const ENDS: ReadonlySet<EventType> = new Set(RUN_END_TYPES);

/** The ends of a run share a key, so whoever records its end first decides which one it was. */
const claimKey = (run: string, type: EventType): string => `${run} ${ENDS.has(type) ? 'end' : type}`;

export class KeptEvents {
  private readonly ring: EventRing<EventRecord>;
  private readonly claims = new Map<string, EventType>();

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

  /**
   * Reserves the single event of `type` for `run`. Returns null, or the type of the event that is already in
   * memory or reserved.
   */
  claim(run: string, type: EventType): EventType | null {
    const key = claimKey(run, type);
    const earlier = this.claims.get(key) ?? null;
    if (earlier === null) this.claims.set(key, type);
    return earlier;
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
