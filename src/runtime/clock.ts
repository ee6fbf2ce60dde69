import type { Clock } from './actor.ts';

/** Node fires a timer that is longer than this at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs `callback` once `clock` shows the time `at` (epoch milliseconds); returns a function that cancels it.
 * Timers pause while the machine is suspended and ignore a clock that is set, so the clock is looked at every
 * `lookMs`, and `callback` is late by no more.
 */
export function atTime(clock: Clock, at: number, lookMs: number, callback: () => void): () => void {
  let cancel: () => void = () => undefined;
  const wait = (): void => {
    const leftMs = Math.max(0, at - clock.now());
    cancel = clock.after(Math.min(leftMs, lookMs), () => (clock.now() < at ? wait() : callback()));
  };
  wait();
  return () => cancel();
}

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
