/** More crashes than `max` within `withinMs` are too many. */
export interface RestartLimit {
  max: number;
  withinMs: number;
}

/** The crashes of the last `withinMs`. */
export class RestartWindow {
  /** Crashes in all. */
  total = 0;
  private readonly limit: RestartLimit;
  private readonly crashes: number[] = [];

  constructor(limit: RestartLimit) {
    this.limit = limit;
  }

  /** Crashes in the window, as of the last one. */
  get count(): number {
    return this.crashes.length;
  }

  /** Adds a crash at `now`, in monotonic milliseconds. Returns false when it exceeds the limit. */
  add(now: number): boolean {
    const { max, withinMs } = this.limit;
    this.total += 1;
    this.crashes.push(now);
    while ((this.crashes[0] ?? now) < now - withinMs) this.crashes.shift();
    return this.crashes.length <= max;
  }
}
