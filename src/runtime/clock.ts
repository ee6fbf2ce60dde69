import type { Clock } from './actor.ts';

/** Node fires a longer timer at once. */
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
  // libuv counts from the last firing, so a sleep of the machine causes one call and no burst.
  every(ms, callback) {
    const timer = setInterval(callback, ms).unref();
    return () => clearInterval(timer);
  },
};
