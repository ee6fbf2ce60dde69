// Reading again what others change, not more often than anybody can look.

/**
 * Returns a function that has `read` run, one run at a time and at most every `pauseMs` milliseconds.
 * Called in the meantime, it has it run once more. Its promise resolves after the pause; `read` handles
 * its own errors. Once `signal` aborts, nothing runs and no pause keeps the process.
 */
export function createRefresher(
  read: () => Promise<void>,
  pauseMs: number,
  signal?: AbortSignal,
): () => Promise<void> {
  let isStale = false;
  let endPause = (): void => {};
  signal?.addEventListener('abort', () => endPause());
  let running: Promise<void> | null = null;
  const refresh = (): Promise<void> => {
    isStale = true;
    running ??= run().finally(() => {
      running = null;
      if (isStale && !signal?.aborted) void refresh();
    });
    return running;
  };
  const run = async (): Promise<void> => {
    isStale = false;
    await read();
    if (signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pauseMs);
      endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  };
  return refresh;
}
