// A deadline as an AbortSignal, by a clock that is passed in: AbortSignal.timeout knows only the machine's.
import { setMaxListeners } from 'node:events';
import type { Clock } from '../runtime/actor.ts';

export interface DeadlineSignal {
  readonly signal: AbortSignal;
  /** Ends the deadline. To be called when the work is done, so that no timer and no listener is left. */
  clear(): void;
}

/** A signal that aborts after `ms`, with a TimeoutError, or as soon as `parent` aborts, with its reason. */
export function deadlineSignal(clock: Clock, ms: number, parent?: AbortSignal): DeadlineSignal {
  const abort = new AbortController();
  const cancel = clock.after(ms, () =>
    abort.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
  );
  const follow = (): void => abort.abort(parent?.reason);
  if (parent?.aborted) follow();
  else if (parent) {
    // Work that is under way at the same time follows one parent: Node.js takes more than ten for a leak.
    setMaxListeners(0, parent);
    parent.addEventListener('abort', follow);
  }
  return {
    signal: abort.signal,
    clear: () => {
      cancel();
      parent?.removeEventListener('abort', follow);
    },
  };
}
