const ignore = (): void => {};

/** Work on one name goes in the order in which it came, one after the other; work on different names at once. */
export class KeyedMutex {
  private readonly tails = new Map<string, Promise<unknown>>();

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
