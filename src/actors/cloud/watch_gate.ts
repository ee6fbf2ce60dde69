// Lets the events of all watches in, only as fast as they are committed. Whoever waits for a commit, such as
// the caller of a sleep, then waits for few rows, whatever clusters send; the rest stays at the clusters.

import { tolerateFailure } from '../../runtime/actor.ts';

/** Events that are let in but not committed yet. Committing as many takes some tenths of a second. */
const MAX_INSIDE = 1_000;

interface Waiting {
  count: number;
  enter(): void;
}

export class WatchGate {
  private readonly flush: () => Promise<void>;
  private inside = 0;
  /** In the order in which they came, so that a watch with few events is not passed over. */
  private readonly waiting: Waiting[] = [];

  /** `flush` resolves when everything so far is committed. */
  constructor(flush: () => Promise<void>) {
    this.flush = flush;
  }

  /**
   * Runs `apply`, which takes in `count` events, once there is room for them. Resolves when they are
   * committed, or cannot be at the moment. Rejects as `apply` does.
   */
  async pass(count: number, apply: () => Promise<void>): Promise<void> {
    if (count === 0) return apply();
    await this.enter(count);
    try {
      await apply();
      // What a full disk refuses is committed later.
      await tolerateFailure(this.flush(), () => undefined);
    } finally {
      this.inside -= count;
      this.admit();
    }
  }

  private async enter(count: number): Promise<void> {
    await new Promise<void>((enter) => {
      this.waiting.push({ count, enter });
      this.admit();
    });
  }

  private admit(): void {
    for (let first = this.waiting[0]; first; first = this.waiting[0]) {
      if (this.inside > 0 && this.inside + first.count > MAX_INSIDE) return;
      this.waiting.shift();
      this.inside += first.count;
      first.enter();
    }
  }
}
