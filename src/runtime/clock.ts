import type { Clock } from './actor.ts';

/** Node fires a timer that is longer than this at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The machine's time. No timer keeps the process alive; sockets and ports with listeners do. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    let left = ms;
    let timer: NodeJS.Timeout;
    const arm = () => {
      const part = Math.min(left, MAX_TIMER_MS);
      left -= part;
      timer = setTimeout(left > 0 ? arm : callback, part).unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
  // libuv counts from the last firing, so a suspended machine causes one call, not a burst.
  every(ms, callback) {
    const timer = setInterval(callback, ms).unref();
    return () => clearInterval(timer);
  },
};
