// Reading again: one read at a time, never more often than asked for, and again after a failure.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createRefresher } from '../../src/presentation/refresher.ts';

const PAUSE_MS = 250;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('requests during a read cause one more read after a pause', async () => {
  let reads = 0;
  const refresh = createRefresher(async () => {
    reads += 1;
    return true;
  }, PAUSE_MS);
  for (let asked = 0; asked < 10; asked += 1) void refresh();
  expect(reads).toBe(1);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(reads).toBe(2);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reads).toBe(2);
  expect(vi.getTimerCount()).toBe(0);
});

it('a failed read is repeated after growing pauses until it succeeds', async () => {
  const began = Date.now();
  const times: number[] = [];
  let isWell = false;
  const refresh = createRefresher(async () => {
    times.push(Date.now() - began);
    return isWell;
  }, PAUSE_MS);
  void refresh();
  await vi.advanceTimersByTimeAsync(40_000);
  expect(times).toEqual([0, 1_000, 3_000, 7_000, 15_000, 30_000]);
  // Somebody asks: the next attempt of its own counts from then.
  void refresh();
  await vi.advanceTimersByTimeAsync(14_999);
  expect(times.slice(6)).toEqual([40_000]);
  isWell = true;
  await vi.advanceTimersByTimeAsync(120_000);
  expect(times.slice(7)).toEqual([55_000]);
  expect(vi.getTimerCount()).toBe(0);
});

it('an aborted signal leaves no timer', async () => {
  const end = new AbortController();
  const refresh = createRefresher(async () => false, PAUSE_MS, end.signal);
  void refresh();
  await vi.advanceTimersByTimeAsync(10);
  expect(vi.getTimerCount()).toBe(2);
  end.abort();
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.getTimerCount()).toBe(0);
});
