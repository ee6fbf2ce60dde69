// Time for idleness: it goes on evenly while the machine's clock is set, in either direction.
import type { Clock } from '../../runtime/actor.ts';

/**
 * `clock` with a `now` that never jumps: the time of the day at the start, plus what has passed since. Times
 * that were stored by an earlier run may lie ahead of it.
 */
export function steadyClock(clock: Clock): Clock {
  const offset = clock.now() - clock.monotonic();
  return {
    now: () => offset + clock.monotonic(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
    every: (ms, callback) => clock.every(ms, callback),
  };
}
