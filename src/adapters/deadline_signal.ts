// A deadline as an AbortSignal, by a given clock: AbortSignal.timeout only knows the machine's.
import { setMaxListeners } from 'node:events';
import type { Clock } from '../runtime/actor.ts';

export interface DeadlineSignal {
  readonly signal: AbortSignal;
  /** Must be called when the work is done, to remove the timer and the listener. */
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
    // Concurrent work shares one parent, and Node.js would report more than ten listeners as a leak.
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
