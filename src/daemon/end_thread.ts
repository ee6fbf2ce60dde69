/**
 * Ends this thread, which starts again from nothing, because what it holds in memory may no longer be
 * current. `reason` is its line in the log.
 */
export function endThread(reason: string): void {
  const error = new Error(reason);
  error.stack = reason;
  queueMicrotask(() => {
    throw error;
  });
}
