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

/**
 * Like `clock.after`, but counts only time in which this process ran, and gives the loop a turn before the
 * call: what came meanwhile is read first.
 */
export function afterRunning(clock: Clock, ms: number, callback: () => void): () => void {
  const from = clock.running();
  let cancel: () => void = () => undefined;
  const check = (): void => {
    const leftMs = from + ms - clock.running();
    // A timer may fire a little early.
    cancel = leftMs >= 1 ? clock.after(leftMs, check) : afterReading(callback);
  };
  cancel = clock.after(ms, check);
  return () => cancel();
}

/** Calls back once what waits in the sockets has been read; returns a function that cancels it. */
export function afterReading(callback: () => void): () => void {
  const turn = setImmediate(callback);
  return () => clearImmediate(turn);
}

/** How often running time is counted. A longer gap between two counts than `MAX_GAP_MS` counts as one. */
const COUNT_MS = 250;
const MAX_GAP_MS = 1_000;

const ran = { ms: 0, upTo: 0, counter: null as NodeJS.Timeout | null };

/** Milliseconds in which this thread's loop has run since the first call. */
function running(): number {
  const now = performance.now();
  if (ran.counter === null) {
    ran.counter = setInterval(running, COUNT_MS).unref();
    ran.upTo = now;
  }
  const gapMs = now - ran.upTo;
  ran.ms += gapMs <= MAX_GAP_MS ? gapMs : COUNT_MS;
  ran.upTo = now;
  return ran.ms;
}

/** The machine's time. No timer keeps the process alive; sockets and ports with listeners do. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  running,
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
