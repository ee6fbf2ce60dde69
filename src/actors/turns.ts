const ignore = (): void => {};

/** Work on one name goes in the order in which it came, one after the other; work on different names at once. */
export class Turns {
  private readonly last = new Map<string, Promise<unknown>>();

  take<R>(name: string, act: () => Promise<R>): Promise<R> {
    const result = (this.last.get(name) ?? Promise.resolve()).then(act);
    const settled = result.then(ignore, ignore);
    this.last.set(name, settled);
    void settled.then(() => {
      if (this.last.get(name) === settled) this.last.delete(name);
    });
    return result;
  }
}
