// Refreshes data that others change: at a bounded rate, and again after a failure.

/** The pauses after one failure, two, and so on; the last one repeats. */
const RETRY_MS: readonly number[] = [1_000, 2_000, 4_000, 8_000, 15_000];

const pause = (milliseconds: number, cancelled: (wake: () => void) => void): Promise<void> =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    cancelled(() => {
      clearTimeout(timer);
      resolve();
    });
  });

/**
 * Returns a function that runs `read`, one run at a time and at most every `pauseMs` milliseconds. A call in
 * the meantime causes one more run. Its promise resolves after the pause. `read` handles its own errors;
 * after `false` it runs again by itself, with pauses that grow from 1 s to 15 s. Once `signal` aborts,
 * nothing runs and no pause keeps the process alive.
 */
export function createRefresher(
  read: () => Promise<boolean>,
  pauseMs: number,
  signal?: AbortSignal,
): () => Promise<void> {
  let isStale = false;
  let failures = 0;
  let endPause = (): void => {};
  let endRetry = (): void => {};
  signal?.addEventListener('abort', () => {
    endPause();
    endRetry();
  });
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
    endRetry();
    const isRead = await read();
    if (signal?.aborted) return;
    if (isRead) failures = 0;
    else retryLater();
    await pause(pauseMs, (wake) => {
      endPause = wake;
    });
  };
  const retryLater = (): void => {
    const milliseconds = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0;
    failures += 1;
    const timer = setTimeout(() => void refresh(), milliseconds);
    endRetry = () => clearTimeout(timer);
  };
  return refresh;
}
