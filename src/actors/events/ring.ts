// The events that are kept in memory, docs/reference.md "Replay and retention": the newest of any type, and
// besides the newest that are no statistics, so that statistics do not push a crash out.
import type { EventRecord } from '../../protocol/events.ts';

export const isStatistics = (event: { type: string }): boolean => event.type === 'service.stats';

/** The newest `size` items, oldest first. */
class RingBuffer {
  private readonly items: EventRecord[] = [];
  private readonly size: number;
  /** Where the oldest one is, once it is full. */
  private first = 0;

  constructor(size: number) {
    this.size = size;
  }

  /** Gives the one that had to go. */
  push(item: EventRecord): EventRecord | undefined {
    if (this.items.length < this.size) {
      this.items.push(item);
      return undefined;
    }
    const gone = this.items[this.first];
    this.items[this.first] = item;
    this.first = (this.first + 1) % this.size;
    return gone;
  }

  list(): EventRecord[] {
    return [...this.items.slice(this.first), ...this.items.slice(0, this.first)];
  }
}

/** What marks an event as already there: a run starts, ends and so on once. */
const keyOf = (run: string, type: string): string => `${run} ${type}`;

export class EventRing {
  private readonly size: number;
  private readonly life: RingBuffer;
  private readonly statistics: RingBuffer;
  private readonly keys = new Set<string>();
  private complete: number;

  /** `size` of each kind; nothing but statistics is missing from the id `completeFrom` on. */
  constructor(size: number, completeFrom: number) {
    this.size = size;
    this.life = new RingBuffer(size);
    this.statistics = new RingBuffer(size);
    this.complete = completeFrom;
  }

  /** Events come in the order of their ids. */
  push(event: EventRecord): void {
    if (isStatistics(event)) {
      this.statistics.push(event);
      return;
    }
    if (event.run !== null) this.claim(event.run, event.type);
    const gone = this.life.push(event);
    if (!gone) return;
    this.complete = Math.max(this.complete, gone.id + 1);
    if (gone.run !== null) this.keys.delete(keyOf(gone.run, gone.type));
  }

  /** Sets an event of `run` apart as the one of its type; false when there is one, kept or about to be. */
  claim(run: string, type: string): boolean {
    const before = this.keys.size;
    return this.keys.add(keyOf(run, type)).size > before;
  }

  /** The oldest id from which nothing but statistics is missing. */
  get completeFrom(): number {
    return this.complete;
  }

  /** The union of the newest `size` of any type and the newest `size` that are no statistics, in the order of their ids. */
  kept(): EventRecord[] {
    const life = this.life.list();
    const statistics = this.statistics.list();
    // From the newest back: statistics count only while fewer than `size` events are newer.
    const union: EventRecord[] = [];
    let left = life.pop();
    let right = statistics.pop();
    while (left || (right && union.length < this.size)) {
      const takeLife = left && (!right || left.id > right.id || union.length >= this.size);
      const event = takeLife ? left : right;
      if (!event) break;
      union.push(event);
      if (takeLife) left = life.pop();
      else right = statistics.pop();
    }
    return union.reverse();
  }
}
