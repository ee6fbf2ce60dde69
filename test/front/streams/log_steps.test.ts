// What followers of logs share: docs/reference.md "Streams".
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../src/front/streams/fair_queue.ts';
import { FollowedLog, type LogStep, LogStepCache, positionAt } from '../../../src/front/streams/log_steps.ts';
import type { LogSlice } from '../../../src/protocol/logs.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import { KIB, LOGS, MIB } from '../../../src/settings/limits.ts';

import { settle, world } from '../../kit/actors.ts';

const step = (bytes: number, endAt: number | null = null): LogStep => ({
  frames: Buffer.alloc(bytes),
  next: positionAt(bytes),
  endAt,
});

describe('the steps of a followed log', () => {
  it('are shared while they are under way, and cached afterwards unless they reach the end', async () => {
    const cache = new LogStepCache(new FairQueue());
    let taken = 0;
    const take = (key: string, endAt: number | null) =>
      cache.share(key, async () => {
        taken += 1;
        await settle();
        return step(10, endAt);
      });
    await Promise.all([take('a', null), take('a', null), take('b', 0), take('b', 0)]);
    expect(taken).toBe(2);
    await take('a', null);
    expect(taken).toBe(2);
    await take('b', 0);
    expect(taken).toBe(3);
  });

  it('that fail are retried', async () => {
    const cache = new LogStepCache(new FairQueue());
    const failing = cache.share('a', () => Promise.reject(new Error('gone')));
    await expect(failing).rejects.toThrow('gone');
    expect((await cache.share('a', async () => step(1))).frames).toHaveLength(1);
  });

  it('are dropped, oldest first, when they take too much memory', async () => {
    const cache = new LogStepCache(new FairQueue());
    const taken: string[] = [];
    const take = (key: string) =>
      cache.share(key, async () => {
        taken.push(key);
        return step(MIB);
      });
    const keys = Array.from({ length: LOGS.maxSharedBytes / MIB + 4 }, (_, index) => `${index}`);
    for (const key of keys) await take(key);
    taken.length = 0;
    for (const key of [...keys].reverse()) await take(key);
    expect(taken.length).toBeGreaterThanOrEqual(4);
    expect(taken.length).toBeLessThan(keys.length);
    expect(taken).not.toContain(keys.at(-1));
  });

  it('are read a few at a time, in order', async () => {
    const cache = new LogStepCache(new FairQueue());
    const began: number[] = [];
    const ends: (() => void)[] = [];
    const reads = Array.from({ length: 10 }, (_, index) =>
      cache.reads.run(async () => {
        began.push(index);
        await new Promise<void>((resolve) => ends.push(resolve));
        if (index === 1) throw new Error('no');
      }),
    );
    const settled = Promise.allSettled(reads);
    await settle();
    expect(began).toEqual([0, 1, 2, 3].slice(0, LOGS.maxConcurrentReads));
    for (let count = 0; count < reads.length; count += 1) {
      ends.shift()?.();
      await settle();
      expect(began.length - count - 1).toBeLessThanOrEqual(LOGS.maxConcurrentReads);
    }
    expect((await settled).filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(began).toEqual(reads.map((_, index) => index));
  });
});

/** The frames of a log that says `output`, step by step to its end. */
async function stepsThrough(output: Buffer): Promise<string[]> {
  const here = world();
  await here.stand<ServiceProtocol>('service:web', {
    read: ({ offset, limit }): LogSlice => {
      const bytes = output.subarray(offset, offset + limit);
      // As the host writes them: in several pieces.
      const half = bytes.length >> 1;
      const parts = [
        { offset, bytes: bytes.subarray(0, half) },
        { offset: offset + half, bytes: bytes.subarray(half) },
      ];
      return { start: offset, end: offset + bytes.length, run: 'a', parts, times: [] };
    },
  });
  const query = { lines: 0, stream: null, timestamps: false, raw: false };
  const cache = new LogStepCache(new FairQueue());
  const log = new FollowedLog(cache, {
    service: here.ref('service:web'),
    query,
    growth: false,
    isRunning: () => true,
  });
  const steps: string[] = [];
  for (let position = positionAt(0); ; ) {
    const { frames, next, endAt } = await log.stepFrom(position);
    steps.push(frames.toString());
    if (endAt !== null) return steps;
    position = next;
  }
}

describe('a step of a followed log', () => {
  const linesIn = (frames: string): string[] =>
    [...frames.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => data);

  it('formats a bounded number of lines, however short they are, and none is lost', async () => {
    const output = Buffer.from(Array.from({ length: 3_500 }, (_, line) => `${line % 7}\n`).join(''));
    const steps = (await stepsThrough(output)).map(linesIn);
    expect(steps.map((lines) => lines.length)).toEqual([1_000, 1_000, 1_000, 500, 0]);
    expect(steps.flat()).toEqual(Array.from({ length: 3_500 }, (_, line) => `{"line":"${line % 7}"}`));
    expect(LOGS.maxStepLines).toBe(1_000);
  });

  it('continues in the middle of a line that a read has split', async () => {
    const long = 'x'.repeat(40 * KIB);
    const steps = await stepsThrough(Buffer.from(`${'\n'.repeat(LOGS.maxStepLines)}${long}\n${long}\n`));
    const lines = steps.flatMap(linesIn);
    expect(lines.length).toBe(LOGS.maxStepLines + 2);
    expect(lines.slice(-2)).toEqual([`{"line":"${long}"}`, `{"line":"${long}"}`]);
  });
});

describe('a queue of pieces', () => {
  it('processes them in order, with other work in between', async () => {
    const queue = new FairQueue();
    const done: (number | string)[] = [];
    const busy = (): void => {
      const until = performance.now() + 2;
      while (performance.now() < until);
    };
    for (let index = 0; index < 20; index += 1)
      queue.add(() => {
        busy();
        done.push(index);
      });
    while (done.filter((one) => typeof one === 'number').length < 20) {
      await settle();
      done.push('other');
    }
    expect(done.filter((one) => typeof one === 'number')).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(done.indexOf('other')).toBeLessThan(5);
  });

  it('processes what is added by a piece', async () => {
    const queue = new FairQueue();
    const done: string[] = [];
    queue.add(() => {
      done.push('first');
      queue.add(() => done.push('second'));
    });
    while (done.length < 2) await settle();
    expect(done).toEqual(['first', 'second']);
  });
});
