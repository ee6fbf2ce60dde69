// Nothing is shown, streamed or told before it is on disk, and what is on disk is told once.
import { describe, expect, it } from 'vitest';
import type { CloudStore } from '../../../src/adapters/storage/cloud_store.ts';
import type { CommittedCloudEvent } from '../../../src/protocol/cloud_events.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { newUlid } from '../../../src/protocol/ulid.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { tempDir, virtualClock } from '../../kit/actors.ts';
import { auditOf, type Cloud, cloud, doubleWith, eventually, openCloudStore } from '../../kit/cloud.ts';
import type { Double } from '../../kit/kube_double.ts';

/** Has `save` run `before` first. */
const saving = (store: CloudStore, before: () => Promise<void>): CloudStore => ({
  ...store,
  save: async (batch) => {
    if (batch.records.length > 0) await before();
    return store.save(batch);
  },
});

const sleepOutside = (double: Double): void =>
  double.change('Deployment', 'web', 'hello', (object) => {
    object.spec.replicas = 0;
    object.status = {};
  });

const typesIn = async (here: Cloud): Promise<string[]> => (await auditOf(here)).map(({ type }) => type);

describe('a store of workloads', () => {
  it('that hangs delays what is shown and reported until it responds', async () => {
    const double = await doubleWith('hello');
    const reached = deferred<void>();
    const free = deferred<void>();
    let before = async (): Promise<void> => undefined;
    const here = await cloud({ store: (store) => saving(store, () => before()) });
    await here.add(double.kubeconfig);
    before = () => {
      reached.resolve();
      return free.promise;
    };
    sleepOutside(double);
    await reached.promise;
    // A reply means that everything told so far has been handled.
    await here.workloads.ask('idle', {});
    expect(here.find('web/hello')).toMatchObject({ state: 'awake', replicas: 3 });
    expect(await typesIn(here)).not.toContain('workload.asleep');
    free.resolve();
    await here.until('web/hello', (row) => row.state === 'asleep');
    await eventually(async () => (await typesIn(here)).includes('workload.asleep'));
  });

  it('that fails prevents a change from being shown, and the change is retried', async () => {
    const double = await doubleWith('hello');
    const clock = virtualClock();
    let failures = 0;
    let isFull = false;
    const here = await cloud({
      clock,
      store: (store) =>
        saving(store, async () => {
          if (!isFull) return;
          failures += 1;
          throw fail('storage_full', 'no room');
        }),
    });
    await here.add(double.kubeconfig);
    await eventually(() => double.watches.length === 2);
    isFull = true;
    sleepOutside(double);
    await eventually(() => failures > 0);
    await here.workloads.ask('idle', {});
    expect(here.find('web/hello')).toMatchObject({ state: 'awake', replicas: 3 });
    isFull = false;
    await clock.advance(CLOUD.commitRetryMs);
    await here.until('web/hello', (row) => row.state === 'asleep');
    await eventually(async () => (await typesIn(here)).includes('workload.asleep'));
  });

  it('that hangs delays all facts of a cluster except whether it responds', async () => {
    const double = await doubleWith('hello');
    const free = deferred<void>();
    const here = await cloud({
      store: (store) => ({
        ...store,
        saveFacts: async (id, facts) => {
          await free.promise;
          return store.saveFacts(id, facts);
        },
      }),
    });
    const added = here.add(double.kubeconfig);
    const shown = () => JSON.parse(here.views.clusters().toString())[0];
    const id = await eventually(() => shown()?.id);
    const detail = () => JSON.parse(here.views.cluster(id) ?? '{}');
    await eventually(() => detail().reachable === true);
    expect(detail().last_sync_at).toBeNull();
    free.resolve();
    await added;
    expect(detail().last_sync_at).not.toBeNull();
  });
});

describe('an event that was committed', () => {
  const slept = (reason: string): CommittedCloudEvent => ({
    ...{ key: newUlid(Date.now()), at: Date.now() },
    event: { type: 'workload.asleep', clusterId: null, reason },
  });

  it('is journaled once by the next daemon, whether it was killed before or after journaling it', async () => {
    const { cloudStore: store } = openCloudStore(tempDir());
    const folder = tempDir();
    const events = ['one', 'two', 'two'].map(slept);
    // Two that are alike in everything are two.
    for (const one of events) one.at = 1_000;
    const commit = (some: readonly CommittedCloudEvent[]): Promise<void> =>
      store.save({ records: [], views: [], positions: [], lostPositions: [], savings: [], events: some });
    const asleep = async (here: Cloud): Promise<string[]> =>
      (await auditOf(here)).filter(({ type }) => type === 'workload.asleep').map(({ reason }) => reason);
    await commit(events.slice(0, 2));
    const first = await cloud({ shared: store, folder });
    await eventually(async () => (await asleep(first)).length === 2);
    // The store hears of it after the journal has it. A life that ends in between tells them again.
    await eventually(async () => (await store.untoldEvents()).length === 0);
    await first.stop();
    // Killed before the store was told that they are in the journal, with one more that is not.
    await commit(events);
    const second = await cloud({ shared: store, folder });
    await eventually(async () => (await asleep(second)).length === 3);
    await eventually(async () => (await store.untoldEvents()).length === 0);
    await second.stop();
    const third = await cloud({ shared: store, folder });
    expect(await asleep(third)).toEqual(['one', 'two', 'two']);
  });

  it('about tokens and grants is journaled once by the next daemon when a kill kept it from the journal', async () => {
    const { cloudStore: store } = openCloudStore(tempDir());
    const folder = tempDir();
    const shared = { shared: store, folder };
    const told = async (here: Cloud): Promise<string[]> =>
      (await typesIn(here)).filter((type) => /^(token|grant)\./.test(type));
    const change = async ({ principals }: Cloud): Promise<void> => {
      const by = { who: 'token', from: '127.0.0.1', operationId: null };
      const to = { kind: 'token', name: 'ci' } as const;
      const input = { to, role: 'waker', clusterId: null, namespace: null, labels: null } as const;
      await principals.ask('createToken', { name: 'ci', expiresAt: null, by });
      const { id } = await principals.ask('createGrant', { input, by });
      await principals.ask('removeGrant', { id, by });
      await principals.ask('revokeToken', { name: 'ci', by });
    };
    const types = ['token.created', 'grant.created', 'grant.removed', 'token.revoked'];
    // What it commits does not get any further, as if it were killed then.
    const first = await cloud({ ...shared, store: (real) => ({ ...real, follow: () => () => undefined }) });
    await change(first);
    expect(await told(first)).toEqual([]);
    await first.stop();
    const second = await cloud(shared);
    await eventually(async () => (await store.untoldEvents()).length === 0);
    expect(await told(second)).toEqual(types);
    // A change that nothing interrupts is in the journal before its answer.
    await change(second);
    expect(await told(second)).toEqual([...types, ...types]);
    await eventually(async () => (await store.untoldEvents()).length === 0);
    await second.stop();
    expect(await told(await cloud(shared))).toEqual([...types, ...types]);
  });
});
