// A clock for idle times, which advances evenly even when the machine's clock is set.
import type { Clock } from '../../runtime/actor.ts';

/**
 * `clock` with a `now` that never jumps: the wall-clock time at the start plus the time elapsed since. Times
 * stored by an earlier run may lie ahead of it.
 */
export function steadyClock(clock: Clock): Clock {
  const offset = clock.now() - clock.monotonic();
  return {
    now: () => offset + clock.monotonic(),
    monotonic: () => clock.monotonic(),
    running: () => clock.running(),
    after: (ms, callback) => clock.after(ms, callback),
    every: (ms, callback) => clock.every(ms, callback),
  };
}
