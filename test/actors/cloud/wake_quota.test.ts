import { expect, it } from 'vitest';
import { WakeQuota } from '../../../src/actors/cloud/wake_quota.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { virtualClock } from '../../kit/actors.ts';

const HOUR_MS = 3_600_000;
const FAILURE = fail('cluster_denied', 'no');

function quota(perHour: number) {
  const clock = virtualClock();
  const wakes = new WakeQuota(clock, perHour);
  return {
    clock,
    wake: (subject = 'ci') => wakes.count(subject, async () => 'woken'),
    failing: (subject = 'ci') => wakes.count(subject, () => Promise.reject(FAILURE)),
    /** A wake that goes on until it is settled. */
    begin(subject = 'ci') {
      const end = deferred<string>();
      return { end, result: wakes.count(subject, () => end.promise) };
    },
  };
}
const REFUSED = { code: 'quota_exceeded' };

it('a wake that fails does not count, however often it is tried', async () => {
  const { wake, failing } = quota(1);
  for (let attempt = 0; attempt < 3; attempt += 1) await expect(failing()).rejects.toBe(FAILURE);
  expect(await wake()).toBe('woken');
  await expect(failing()).rejects.toMatchObject(REFUSED);
  await expect(wake()).rejects.toMatchObject(REFUSED);
  expect(await wake('another')).toBe('woken');
});

it('a wake under way counts until it fails', async () => {
  const { begin, wake } = quota(2);
  const [one, other] = [begin(), begin()];
  await expect(wake()).rejects.toMatchObject(REFUSED);
  one.end.reject(FAILURE);
  await expect(one.result).rejects.toBe(FAILURE);
  expect(await wake()).toBe('woken');
  await expect(wake()).rejects.toMatchObject(REFUSED);
  other.end.resolve('woken');
  expect(await other.result).toBe('woken');
  await expect(wake()).rejects.toMatchObject(REFUSED);
});

it('a wake that takes more than an hour to fail gives back no other', async () => {
  const { clock, begin, wake } = quota(1);
  const slow = begin();
  await clock.advance(HOUR_MS);
  await wake();
  slow.end.reject(FAILURE);
  await expect(slow.result).rejects.toBe(FAILURE);
  await expect(wake()).rejects.toMatchObject(REFUSED);
});
