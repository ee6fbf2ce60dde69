const ignore = (): void => {};

/**
 * Runs work on one key in the order of the calls, one at a time; work on different keys runs concurrently. A
 * handler that replies with such work uses `context.turn`.
 */
export class KeyedMutex {
  private readonly tails = new Map<string, Promise<unknown>>();

  /** Whether work on `key` runs or waits. */
  isBusy(key: string): boolean {
    return this.tails.has(key);
  }

  /** Settles as `work` does. A failure does not block the work after it. */
  runExclusive<R>(key: string, work: () => Promise<R>): Promise<R> {
    const result = (this.tails.get(key) ?? Promise.resolve()).then(work);
    const settled = result.then(ignore, ignore);
    this.tails.set(key, settled);
    void settled.then(() => {
      if (this.tails.get(key) === settled) this.tails.delete(key);
    });
    return result;
  }
}
