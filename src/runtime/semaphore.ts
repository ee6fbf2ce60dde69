/** Runs a limited number of pieces of work at once. The next is the one that has waited longest. */
export class Semaphore {
  private free: number;
  private readonly waiting: (() => void)[] = [];

  /** `count`: how many run at once. */
  constructor(count: number) {
    this.free = count;
  }

  /** Settles as `work` does. A failure does not block the work after it. */
  async run<R>(work: () => Promise<R>): Promise<R> {
    if (this.free > 0) this.free -= 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Handed over, so that a later call does not overtake those that wait.
      const next = this.waiting.shift();
      if (next) next();
      else this.free += 1;
    }
  }
}
