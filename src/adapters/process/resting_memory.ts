// Returns memory that a thread needed for its work. V8 returns it only in the course of more work, and libc
// keeps what ended threads have freed, so the cost of a burst would last for hours.
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Clock } from '../../runtime/actor.ts';
import { MIB } from '../../settings/limits.ts';
import { type Libc, loadLibc } from './libc.ts';

const LOOK_MS = 3_000;
/** A thread that works less than this share of the time is at rest. */
const RESTING_SHARE = 0.1;
/** The number of consecutive checks that must find a thread at rest before its garbage is collected. */
const LOOKS_BEFORE_COLLECTION = 2;
/**
 * The number doubles with each collection up to this, until the thread has been busy. A small steady load
 * lets the heap grow again at once, and collections every few seconds would cost about as much as the load.
 */
const MAX_LOOKS_BEFORE_COLLECTION = 64;
/**
 * The number of further checks before libc is trimmed, by when job threads that worked for this one have
 * ended.
 */
const LOOKS_BEFORE_TRIM = 4;
/** Less heap growth than this is not worth a collection. */
const MIN_GROWN_BYTES = 2 * MIB;
/** A collection stops the thread for a few milliseconds per MiB in use, so larger heaps are left to V8. */
const MAX_USED_BYTES = 48 * MIB;

export interface RestingMemoryOptions {
  clock: Clock;
  /** Returns what libc keeps. Absent: another thread of the process does so. */
  trim?: () => Promise<void>;
  /** The milliseconds this thread has worked so far. */
  activeMs?: () => number;
  /** The heap of this thread, and its collection. */
  heap?: Heap;
}

interface Heap {
  sizes(): { keptBytes: number; usedBytes: number };
  collect(): Promise<void>;
}

const ownHeap: Heap = {
  sizes: () => {
    const { total_heap_size: keptBytes, used_heap_size: usedBytes } = getHeapStatistics();
    return { keptBytes, usedBytes };
  },
  collect: collectGarbage,
};

/**
 * Collects the garbage of this thread when it rests after its heap has grown, and then calls `trim`. Returns
 * a function that stops this.
 */
export function giveMemoryBackAtRest({
  clock,
  trim = async () => {},
  activeMs = () => performance.eventLoopUtilization().active,
  heap = ownHeap,
}: RestingMemoryOptions): () => void {
  let last = { at: clock.monotonic(), activeMs: activeMs() };
  let restingLooks = 0;
  let looksNeeded = LOOKS_BEFORE_COLLECTION;
  let looksUntilTrim = 0;
  let { keptBytes } = heap.sizes();
  const isResting = (): boolean => {
    const before = last;
    last = { at: clock.monotonic(), activeMs: activeMs() };
    return last.activeMs - before.activeMs < (last.at - before.at) * RESTING_SHARE;
  };
  const isDue = (): boolean => {
    const now = heap.sizes();
    return now.keptBytes - keptBytes >= MIN_GROWN_BYTES && now.usedBytes <= MAX_USED_BYTES;
  };
  const look = async (): Promise<void> => {
    if (!isResting()) {
      restingLooks = 0;
      looksNeeded = LOOKS_BEFORE_COLLECTION;
      return;
    }
    restingLooks += 1;
    if (restingLooks >= looksNeeded && isDue()) {
      restingLooks = 0;
      looksNeeded = Math.min(MAX_LOOKS_BEFORE_COLLECTION, looksNeeded * 2);
      // Set before the collection, so that the next check does not begin another one.
      keptBytes = Number.POSITIVE_INFINITY;
      await heap.collect();
      ({ keptBytes } = heap.sizes());
      looksUntilTrim = LOOKS_BEFORE_TRIM;
    } else if (looksUntilTrim > 0) {
      looksUntilTrim -= 1;
      if (looksUntilTrim === 0) await trim();
    }
  };
  return clock.every(LOOK_MS, () => void look());
}

let libc: Promise<Libc | null> | undefined;

/** Makes libc return memory freed by this process, if koffi loads. */
export async function trimMemory(): Promise<void> {
  libc ??= loadLibc().catch(() => null);
  (await libc)?.trim();
}

/**
 * Makes V8 collect all garbage of this thread and return the free pages. Only the inspector offers this
 * collection; without it, nothing happens.
 */
async function collectGarbage(): Promise<void> {
  const { Session } = await import('node:inspector').catch(() => ({ Session: null }));
  if (!Session) return;
  const session = new Session();
  session.connect();
  await new Promise<void>((resolve) => {
    session.post('HeapProfiler.enable');
    session.post('HeapProfiler.collectGarbage', () => resolve());
  });
  session.disconnect();
}
