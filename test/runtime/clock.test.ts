// The real clock.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { afterReading, afterRunning, atTime, systemClock } from '../../src/runtime/clock.ts';
import { settle, virtualClock } from '../kit/actors.ts';
import { eventually } from '../kit/eventually.ts';
import { settableClock } from '../kit/policies.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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

it('a time is noticed on a clock that jumps, at the next look, and never before', async () => {
  vi.useRealTimers();
  const clock = settableClock('2030-01-07T12:00Z');
  const fired = vi.fn();
  atTime(clock, Date.parse('2030-01-07T14:00Z'), 30_000, fired);
  await clock.advance(90_000);
  clock.set('2030-01-07T15:00Z');
  await clock.advance(29_999);
  expect(fired).not.toHaveBeenCalled();
  await clock.advance(1);
  expect(fired).toHaveBeenCalledTimes(1);
  atTime(clock, clock.now() + 1_000, 30_000, fired);
  await clock.advance(500);
  clock.set('2030-01-07T12:00Z');
  await clock.advance(3 * HOUR_MS);
  expect(fired).toHaveBeenCalledTimes(1);
  await clock.advance(60_000);
  expect(fired).toHaveBeenCalledTimes(2);
});

it('a time is met exactly, and not if it is cancelled', async () => {
  vi.useRealTimers();
  const clock = settableClock('2030-01-07T12:00Z');
  const fired = vi.fn();
  const until = (ms: number) => atTime(clock, clock.now() + ms, 30_000, fired);
  const cancels = [until(100_000), until(100_000)];
  await clock.advance(70_000);
  cancels[0]?.();
  await clock.advance(29_999);
  expect(fired).not.toHaveBeenCalled();
  await clock.advance(1);
  expect(fired).toHaveBeenCalledTimes(1);
  // One that has passed is not met within the call.
  until(-1);
  expect(fired).toHaveBeenCalledTimes(1);
  await clock.advance(0);
  expect(fired).toHaveBeenCalledTimes(2);
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

it('running time does not count while nothing of this thread runs', async () => {
  vi.useRealTimers();
  const before = systemClock.running();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_100);
  expect(systemClock.running() - before).toBeLessThan(300);
  // Nobody has to ask for it.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await eventually(() => systemClock.running() - before > 1_000);
});

it('a timer of running time waits for time in which the process runs, and for a turn of the loop', async () => {
  vi.useRealTimers();
  const clock = virtualClock();
  const fired = vi.fn();
  const cancels = [afterRunning(clock, 1_000, fired), afterRunning(clock, 1_000, fired)];
  clock.standStill(10_000);
  await clock.advance(999);
  expect(fired).not.toHaveBeenCalled();
  cancels[0]?.();
  await clock.advance(1);
  expect(fired).toHaveBeenCalledTimes(1);
  afterReading(fired);
  afterReading(fired)();
  expect(fired).toHaveBeenCalledTimes(1);
  await settle();
  expect(fired).toHaveBeenCalledTimes(2);
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
