// The permit to change clusters, which the lease gives and other threads read.
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import {
  forbidChanges,
  mayChange,
  newChangePermit,
  permitChanges,
} from '../../src/adapters/change_permit.ts';

const HOUR_MS = 3_600_000;

it('is always given without a lease, and else only while it lasts', () => {
  expect(mayChange(newChangePermit(true))).toBe(true);
  const permit = newChangePermit(false);
  expect(mayChange(permit)).toBe(false);
  permitChanges(permit, HOUR_MS, Date.now() + HOUR_MS);
  expect(mayChange(permit)).toBe(true);
  forbidChanges(permit);
  expect(mayChange(permit)).toBe(false);
});

it('ends by whichever clock is first', () => {
  const permit = newChangePermit(false);
  permitChanges(permit, 0, Date.now() + HOUR_MS);
  expect(mayChange(permit)).toBe(false);
  permitChanges(permit, HOUR_MS, Date.now());
  expect(mayChange(permit)).toBe(false);
});

it('is the same in a thread that started later', async () => {
  const permit = newChangePermit(false);
  permitChanges(permit, HOUR_MS, Date.now() + HOUR_MS);
  // As `mayChange` reads it.
  const code = `const { parentPort, workerData } = require('node:worker_threads');
    const [monotonic, wall] = new BigInt64Array(workerData);
    parentPort.postMessage(process.hrtime.bigint() < monotonic && BigInt(Date.now()) < wall);`;
  const worker = new Worker(code, { eval: true, workerData: permit });
  const answer = await new Promise((resolve) => worker.once('message', resolve));
  await worker.terminate();
  expect(answer).toBe(true);
});
