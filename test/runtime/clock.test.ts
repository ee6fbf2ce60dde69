// The real clock.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/runtime/clock.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const DAY_MS = 86_400_000;

it('a timer of a month, longer than one Node timer can be, does not fire at once', () => {
  const fired = vi.fn();
  systemClock.after(30 * DAY_MS, fired);
  vi.advanceTimersByTime(30 * DAY_MS - 1);
  expect(fired).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(fired).toHaveBeenCalledTimes(1);
});

it('a cancelled timer does not fire, however much of its time has passed', () => {
  const fired = vi.fn();
  const [short, long, often] = [
    systemClock.after(10, fired),
    systemClock.after(30 * DAY_MS, fired),
    systemClock.every(DAY_MS, fired),
  ];
  short();
  vi.advanceTimersByTime(25 * DAY_MS);
  expect(fired.mock.calls.length).toBe(25);
  often();
  long();
  vi.advanceTimersByTime(30 * DAY_MS);
  expect(fired.mock.calls.length).toBe(25);
});

it('a timer does not keep the process alive', () => {
  vi.useRealTimers();
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  const cancel = [systemClock.after(1000, () => {}), systemClock.every(1000, () => {})];
  expect(timers()).toBe(before);
  const held = setTimeout(() => {}, 1000);
  expect(timers()).toBe(before + 1);
  clearTimeout(held);
  for (const stop of cancel) stop();
});

it('monotonic time continues when the wall clock jumps back', () => {
  vi.useRealTimers();
  const [wall, before] = [systemClock.now(), systemClock.monotonic()];
  expect(Math.abs(wall - Date.now())).toBeLessThan(60_000);
  vi.spyOn(Date, 'now').mockReturnValue(0);
  expect(systemClock.now()).toBe(0);
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before);
  vi.restoreAllMocks();
});
