import type { Clock } from './actor.ts';

/** Node fires a longer timer at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The machine's time. No timer holds the process: what does is a socket or a port that somebody listens on.
 */
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
  // libuv counts from the firing, so a sleep of the machine gives one call and no burst.
  every(ms, callback) {
    const timer = setInterval(callback, ms).unref();
    return () => clearInterval(timer);
  },
};
