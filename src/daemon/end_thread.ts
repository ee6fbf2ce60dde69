const THREAD_ENDS = 'BERTH_THREAD_ENDS';

/** Whether it is an error with this `code`, which also holds for one from another thread. */
export const hasCode = (error: unknown, code: string): error is Error =>
  error instanceof Error && 'code' in error && error.code === code;

/** Whether a thread has ended itself by `endThread`, with its reason as the message. */
export const isThreadEnd = (error: unknown): error is Error => hasCode(error, THREAD_ENDS);

/**
 * Ends this thread, which starts again from nothing, because what it holds in memory may no longer be
 * current. `reason` is its line in the log.
 */
export function endThread(reason: string): void {
  const error = Object.assign(new Error(reason), { code: THREAD_ENDS });
  queueMicrotask(() => {
    throw error;
  });
}
