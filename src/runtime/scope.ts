import type { Scope } from './actor.ts';

type Close = () => void | Promise<void>;

export interface ClosableScope extends Scope {
  /** Closes everything, last-first, one after the other. Never rejects. */
  close(): Promise<void>;
}

/**
 * A scope that reports errors of its closers to `onError`. A resource registered after it has closed is
 * closed at once.
 */
export function openScope(onError: (error: unknown) => void): ClosableScope {
  const abort = new AbortController();
  const closers = new Set<Close>();
  const run = async (close: Close) => {
    try {
      await close();
    } catch (error) {
      onError(error);
    }
  };
  return {
    signal: abort.signal,
    defer(close) {
      // A new function each time, so that a closer registered twice is closed twice.
      const closer = () => close();
      if (abort.signal.aborted) void run(closer);
      else closers.add(closer);
      return () => {
        if (closers.delete(closer)) void run(closer);
      };
    },
    async close() {
      abort.abort();
      for (const closer of [...closers].reverse()) {
        if (closers.delete(closer)) await run(closer);
      }
    },
  };
}
