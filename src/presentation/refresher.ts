// Reading again what others change, not more often than anybody can look.

/**
 * Returns a function that has `read` run, one run at a time and at most every `pauseMs` milliseconds.
 * Called in the meantime, it has it run once more. Its promise resolves after the pause; `read` handles
 * its own errors.
 */
export function createRefresher(read: () => Promise<void>, pauseMs: number): () => Promise<void> {
  let isStale = false;
  let running: Promise<void> | null = null;
  const refresh = (): Promise<void> => {
    isStale = true;
    running ??= run().finally(() => {
      running = null;
      if (isStale) void refresh();
    });
    return running;
  };
  const run = async (): Promise<void> => {
    isStale = false;
    await read();
    await new Promise((resolve) => {
      setTimeout(resolve, pauseMs);
    });
  };
  return refresh;
}
