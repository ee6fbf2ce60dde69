// A policy that is removed while its sleep waits for a cluster that does not respond.
// docs/reference.md "Policies".
import { expect, it } from 'vitest';
import type { StoredOperation } from '../../../src/protocol/cloud_operations.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { type Cloud, cloud, doubleWith } from '../../kit/cloud.ts';
import type { Seen } from '../../kit/kube_double.ts';
import { advanceUntil, operationsOf, policyInput, settableClock } from '../../kit/policies.ts';

/** Makes a policy by which one workload should be asleep now. */
const put = (here: Cloud, name: string, app: string) =>
  here.policies.ask('put', {
    name,
    input: policyInput({ selector: { labels: `app=${app}` }, windows: ['Mon-Fri 20:00-07:00'] }),
  });

/** The end of the sleep of the workload `slow`, whose policy `nights` is gone, is about to be stored. */
async function withdrawn() {
  const double = await doubleWith('slow', 'other');
  const clock = settableClock('2030-01-07T21:00Z');
  const end = deferred<StoredOperation>();
  const stored = deferred<void>();
  const here = await cloud({
    clock,
    sweepMs: 100_000_000_000,
    store: (store) => ({
      ...store,
      async saveOperation(row, removed) {
        if (row.state !== 'asked') end.resolve(row);
        if (row.state !== 'asked') await stored.promise;
        await store.saveOperation(row, removed);
      },
    }),
  });
  await here.add(double.kubeconfig);
  const answer = deferred<void>();
  const isRead = ({ path, method }: Seen): boolean => path.endsWith('/slow') && method === 'GET';
  double.fault(isRead, { kind: 'held', until: answer.promise });
  await put(here, 'nights', 'slow');
  await advanceUntil(clock, 1_000, () => double.requests.some(isRead) || undefined);
  await here.policies.ask('remove', { name: 'nights' });
  answer.resolve();
  const { id } = await end.promise;
  const isAsleep = (name: string) => (): true | undefined =>
    here.find(`web/${name}`).replicas === 0 || undefined;
  const ends = (count: number): Promise<string[]> =>
    advanceUntil(clock, 1_000, async () => {
      const all = await operationsOf(here);
      return all.length >= count ? all : undefined;
    });
  return { clock, here, id, stored, isAsleep, ends };
}

it('is not made, and has no event', async () => {
  const { clock, here, id, stored, isAsleep, ends } = await withdrawn();
  stored.resolve();
  // It begins after the end of the other.
  await put(here, 'later', 'other');
  await advanceUntil(clock, 1_000, isAsleep('other'));
  expect(await ends(1)).toEqual(['policy:later sleepWorkload other ok']);
  expect(here.find('web/slow').replicas).toBe(3);
  expect((await here.operations.ask('read', { id })).operation).toMatchObject({
    state: 'done',
    result: { answer: null, failure: null, reason: 'it was no longer wanted' },
  });
});

it('is made after all when the policy is back before it has ended', async () => {
  const { clock, here, stored, isAsleep, ends } = await withdrawn();
  await put(here, 'nights', 'slow');
  stored.resolve();
  await advanceUntil(clock, 1_000, isAsleep('slow'));
  expect(await ends(1)).toEqual(['policy:nights sleepWorkload slow ok']);
});
