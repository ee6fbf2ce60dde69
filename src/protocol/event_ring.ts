// The events that the journal and the front keep in memory: docs/reference.md "Replay and retention".
/** Whether an event carries only statistics. Such an event never displaces another kind of event. */
export const isStatistics = ({ type }: { type: string }): boolean => type === 'service.stats';

/** The newest `size` items. A push takes constant time. */
class RingBuffer<T> {
  private readonly items: T[] = [];
  private readonly size: number;
  /** Index of the oldest item of a full ring. */
  private oldest = 0;

  constructor(size: number) {
    this.size = size;
  }

  /** Adds `item`. Returns the item that it displaces. */
  push(item: T): T | undefined {
    if (this.items.length < this.size) {
      this.items.push(item);
      return undefined;
    }
    const dropped = this.items[this.oldest];
    this.items[this.oldest] = item;
    this.oldest = (this.oldest + 1) % this.size;
    return dropped;
  }

  /** All items, oldest first. */
  list(): T[] {
    return [...this.items.slice(this.oldest), ...this.items.slice(0, this.oldest)];
  }
}

/**
 * The newest `size` events of any type, and in addition the newest `size` lifecycle events (all except
 * statistics). `E` is the owner's form of an event.
 */
export class EventRing<E extends { readonly id: number; readonly type: string }> {
  private readonly recent: RingBuffer<E>;
  private readonly lifecycle: RingBuffer<E>;
  private completeSince: number;

  /** `completeFrom`: the oldest id from which no lifecycle event is missing. */
  constructor(size: number, completeFrom: number) {
    this.recent = new RingBuffer(size);
    this.lifecycle = new RingBuffer(size);
    this.completeSince = completeFrom;
  }

  /** Adds an event with an id above all others. Returns the lifecycle event that it displaces. */
  push(event: E): E | undefined {
    this.recent.push(event);
    if (isStatistics(event)) return undefined;
    const dropped = this.lifecycle.push(event);
    if (dropped) this.markMissingBefore(dropped.id + 1);
    return dropped;
  }

  /** Records that lifecycle events with ids below `id` are missing. */
  markMissingBefore(id: number): void {
    this.completeSince = Math.max(this.completeSince, id);
  }

  /** The oldest id from which no lifecycle event is missing. */
  get completeFrom(): number {
    return this.completeSince;
  }

  /** Every event in memory once, in the order of ids. */
  kept(): E[] {
    const recent = this.recent.list();
    const first = recent[0]?.id ?? 0;
    return [...this.lifecycle.list().filter(({ id }) => id < first), ...recent];
  }
}
