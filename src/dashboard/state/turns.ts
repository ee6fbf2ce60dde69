// Requests in turn. Browsers open six connections to a host, for all tabs together. If each request that
// waits had one, nothing else would get through.

interface Waiting {
  key: string;
  begin: () => void;
  giveUp: () => void;
}

/** Runs at most as many requests at once as `limit` returns; the others begin in the order of the calls. */
export class Turns {
  private readonly limit: () => number;
  private readonly waiting: Waiting[] = [];
  private running = 0;

  constructor(limit: () => number) {
    this.limit = limit;
  }

  /** Runs `work` in its turn. Resolves when it has ended or was dropped; rejects as `work` does. */
  async run(key: string, work: () => Promise<unknown>): Promise<void> {
    const hasTurn = await new Promise<boolean>((resolve) => {
      this.waiting.push({ key, begin: () => resolve(true), giveUp: () => resolve(false) });
      this.next();
    });
    if (!hasTurn) return;
    try {
      await work();
    } finally {
      this.running -= 1;
      this.next();
    }
  }

  /** Drops the requests with `key` that have not begun. */
  drop(key: string): void {
    for (const one of this.waiting.filter((each) => each.key === key)) {
      this.waiting.splice(this.waiting.indexOf(one), 1);
      one.giveUp();
    }
  }

  private next(): void {
    while (this.running < this.limit()) {
      const one = this.waiting.shift();
      if (!one) return;
      this.running += 1;
      one.begin();
    }
  }
}
