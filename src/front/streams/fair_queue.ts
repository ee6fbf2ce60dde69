// Runs small pieces of work for many clients while keeping the thread responsive.

/** The time spent on pieces in one turn of the event loop. */
const SLICE_MS = 2;

/**
 * Runs pieces in the order they were added. Every few milliseconds it yields to whatever else has arrived,
 * however many pieces are waiting.
 */
export class FairQueue {
  private pieces: (() => void)[] = [];
  /** The number of pieces at the head of `pieces` that are done. */
  private done = 0;
  private isScheduled = false;

  /** Adds a piece of work, which must not throw. */
  add(piece: () => void): void {
    this.pieces.push(piece);
    this.schedule();
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => this.run());
  }

  private run(): void {
    this.isScheduled = false;
    const until = performance.now() + SLICE_MS;
    const { pieces } = this;
    do {
      pieces[this.done]?.();
      this.done += 1;
    } while (this.done < pieces.length && performance.now() < until);
    if (this.done < pieces.length) this.schedule();
    else {
      this.pieces = [];
      this.done = 0;
    }
  }
}
