import { getHeapStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { loadLibc } from '../../../src/adapters/process/libc.ts';
import { giveMemoryBackAtRest } from '../../../src/adapters/process/resting_memory.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';

const GROWTH = 12 * MIB;
const heapBytes = (): number => getHeapStatistics().total_heap_size;

interface Link {
  next: Link | null;
}

/** Makes the heap grow by `GROWTH` twice: one part stays in use, the other is garbage. */
function work(): Link | null {
  const chain = (): Link | null => {
    const before = heapBytes();
    let last: Link | null = null;
    while (heapBytes() < before + GROWTH) last = { next: last };
    return last;
  };
  chain();
  return chain();
}

/** A thread that rests unless `busyMs` grows, with what was trimmed counted. */
function restingThread() {
  const clock = virtualClock();
  const thread = { clock, busyMs: 0, trims: 0 };
  const trim = async (): Promise<void> => {
    thread.trims += 1;
  };
  afterThisTest(giveMemoryBackAtRest({ clock, trim, activeMs: () => thread.busyMs }));
  return thread;
}

test('a thread that rests after work releases its garbage, then the memory that libc keeps', async () => {
  const thread = restingThread();
  const used = work();
  const grown = heapBytes();
  await eventually(async () => {
    await thread.clock.advance(3_000);
    return thread.trims > 0;
  });
  expect(heapBytes()).toBeLessThan(grown - GROWTH / 2);
  await thread.clock.advance(60_000);
  expect(thread.trims, 'once for one stretch of work').toBe(1);
  expect(used).not.toBeNull();
});

test('a thread that continues to work does not collect garbage', async () => {
  const thread = restingThread();
  const used = work();
  for (let look = 0; look < 20; look += 1) {
    thread.busyMs += 900;
    await thread.clock.advance(3_000);
  }
  expect(thread.trims).toBe(0);
  expect(used).not.toBeNull();
});

test('a thread whose heap grows again after each collection collects ever more rarely', async () => {
  const clock = virtualClock();
  const [empty, grown] = [10 * MIB, 10 * MIB + GROWTH];
  let [keptBytes, busyMs, looks] = [empty, 0, 0];
  const collectedAt: number[] = [];
  const collect = async (): Promise<void> => {
    collectedAt.push(looks);
    keptBytes = empty;
  };
  const heap = { sizes: () => ({ keptBytes, usedBytes: empty }), collect };
  afterThisTest(giveMemoryBackAtRest({ clock, activeMs: () => busyMs, heap }));
  const look = async (): Promise<void> => {
    keptBytes = grown;
    looks += 1;
    await clock.advance(3_000);
  };
  while (looks < 300) await look();
  expect(collectedAt).toEqual([2, 6, 14, 30, 62, 126, 190, 254]);
  busyMs += 900;
  while (looks < 308) await look();
  expect(collectedAt.slice(8), 'as at the beginning, since the thread was busy').toEqual([303, 307]);
});

test('libc returns freed memory, or has no call for it', async () => {
  const libc = await loadLibc();
  expect(() => {
    libc.trim();
    libc.trim();
  }).not.toThrow();
});
