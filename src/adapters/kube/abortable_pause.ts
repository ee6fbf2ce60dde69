// A pause that a signal ends early.
import type { Clock } from '../../runtime/actor.ts';

/** Resolves with true after `ms`, or with false as soon as `signal` aborts. */
export function abortablePause(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      signal.removeEventListener('abort', finish);
      resolve(!signal.aborted);
    };
    const cancel = clock.after(ms, finish);
    if (signal.aborted) finish();
    else signal.addEventListener('abort', finish);
  });
}
