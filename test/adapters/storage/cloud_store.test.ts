// What every CloudStore promises. A further implementation adds itself to STORES.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openLeased } from '../../../src/adapters/postgres/open_leased.ts';
import type { CloudBatch, CloudCommit, CloudStore } from '../../../src/adapters/storage/cloud_store.ts';
import { embeddedCloudStore } from '../../../src/adapters/storage/embedded_cloud.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import { createVault } from '../../../src/adapters/storage/vault.ts';
import type { StoredWorkload, WorkloadRow } from '../../../src/protocol/cloud.ts';
import type { CommittedCloudEvent } from '../../../src/protocol/cloud_events.ts';
import type { StoredOperation } from '../../../src/protocol/cloud_operations.ts';
import type { WatchPosition } from '../../../src/protocol/cloud_watches.ts';
import type { StoredCluster } from '../../../src/protocol/clusters.ts';
import type { StoredGrant } from '../../../src/protocol/grants.ts';
import type { StoredToken } from '../../../src/protocol/principals.ts';
import type { StoredSavings } from '../../../src/protocol/savings.ts';
import type { StoredTether } from '../../../src/protocol/tethers.ts';
import { derivedUlid, newUlid } from '../../../src/protocol/ulid.ts';
import { readDatabaseUrl } from '../../../src/settings/database_url.ts';
import { afterThisTest, tempDir } from '../../kit/actors.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../../kit/postgres.ts';

/** A database for one test. */
interface TestedStore {
  /** The store; every call is another one of the same database, as after a restart. */
  open(): Promise<CloudStore>;
}

let server: PostgresServer | undefined;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
}, 60_000);
afterAll(() => server?.remove());

const STORES: readonly [name: string, create: () => TestedStore, isThere: boolean][] = [
  [
    'embedded',
    () => {
      const path = join(tempDir(), 'store.mdb');
      let close = async (): Promise<void> => undefined;
      afterThisTest(() => close());
      return {
        async open() {
          await close();
          const store = openStore(path);
          close = () => store.close();
          return embeddedCloudStore(store);
        },
      };
    },
    true,
  ],
  [
    `Postgres${NO_POSTGRES}`,
    () => {
      const url = server?.createDatabase();
      let close = async (): Promise<void> => undefined;
      afterThisTest(() => close());
      return {
        async open() {
          await close();
          const opened = await openLeased(readDatabaseUrl((await url) ?? ''), 'test');
          close = opened.close;
          return opened.store;
        },
      };
    },
    hasPostgres,
  ],
];

const cluster = (name: string, more: Partial<StoredCluster> = {}): StoredCluster => ({
  ...{ id: newUlid(Date.now()), name, provider: 'other', inCluster: false, createdAt: 1, lastSyncAt: null },
  ...{ version: null, capabilities: null, access: null },
  ...more,
});

const workload = ({ id: clusterId }: StoredCluster, name: string, replicas = 1): StoredWorkload => ({
  id: derivedUlid(clusterId, ['Deployment', 'web', name]),
  clusterId,
  seen: {
    ...{ kind: 'Deployment', namespace: 'web', name, uid: `uid-${name}`, version: '1', replicas, pods: 1 },
    ...{ ready: 1, observed: true, labels: '', selector: '', scaledBy: null, keeper: null, generation: 1 },
    ...{
      createdAt: null,
      replicaSet: null,
      requests: { cpu: 0, memory: 0 },
      receipt: null,
      wakeReceipt: null,
      activity: null,
      sleep: null,
    },
  },
  ...{ state: 'awake', sleepReason: null, desiredReplicas: null, autoSleep: false, idleMinutes: 30 },
  ...{ lastActivityAt: null, usedAt: 1, scaledAt: 1, maxReplicas: replicas, isReceiptSpent: false },
  ...{ undone: 0, span: null, switched: null, gone: false },
});

const view = ({ id, clusterId, seen, ...row }: StoredWorkload): WorkloadRow => ({
  ...{ id, clusterId, state: row.state, sleepReason: null, desiredReplicas: null, autoSleep: false },
  ...{ idleMinutes: 30, lastActivityAt: null, kind: seen.kind, namespace: seen.namespace, name: seen.name },
  ...{
    labels: '',
    replicas: seen.replicas,
    ready: 1,
    wakeReason: null,
    staleSince: null,
    policy: null,
    after: null,
    managers: [],
  },
});

const position = (
  { id }: StoredCluster,
  version: string,
  namespace: string | null = null,
): WatchPosition => ({
  ...{ clusterId: id, kind: 'Deployment', namespace, origin: 'here', version, at: 1 },
});

const event = (reason: string): CommittedCloudEvent => ({
  ...{ key: newUlid(Date.now()), at: 1, event: { type: 'workload.asleep', reason } },
});

const savings = ({ id: clusterId }: StoredCluster, namespace: string, podSeconds: number): StoredSavings => ({
  ...{
    clusterId,
    namespace,
    month: '2026-11',
    until: 1,
    podSeconds,
    cpuSeconds: 0.5,
    memorySeconds: 2 ** 60,
  },
});

const batch = (more: Partial<CloudBatch>): CloudBatch => ({
  ...{ records: [], views: [], positions: [], lostPositions: [], events: [], savings: [] },
  ...more,
});

const saved = (...rows: StoredWorkload[]): CloudBatch =>
  batch({ records: rows.map((record) => ({ id: record.id, record })) });

async function workloadsOf(store: CloudStore, { id }: StoredCluster): Promise<StoredWorkload[]> {
  const rows: StoredWorkload[] = [];
  for await (const part of store.workloads(id)) rows.push(...part);
  return rows.sort((one, other) => (one.seen.name < other.seen.name ? -1 : 1));
}

describe.each(STORES)('the %s store of the cloud', (_, create, isThere) => {
  const it = test.skipIf(!isThere);

  it('keeps the first canary', async () => {
    const tested = create();
    const first = await tested.open();
    expect(await first.canary.read()).toBeNull();
    const [one, other] = [createVault(randomBytes(32)), createVault(randomBytes(32))].map((vault) =>
      vault.seal('canary', Buffer.from('here')),
    );
    if (!one || !other) throw new Error('no seals');
    expect(await first.canary.write(one)).toEqual(one);
    const second = await tested.open();
    expect(await second.canary.write(other)).toEqual(one);
    expect(await second.canary.read()).toEqual(one);
  });

  it('has each cluster name once, also of two added at once, and one in_cluster cluster', async () => {
    const tested = create();
    const store = await tested.open();
    const [one, same] = [cluster('one'), cluster('one')];
    expect(await Promise.all([store.addCluster(one), store.addCluster(same)])).toEqual([true, false]);
    const own = cluster('own', { inCluster: true });
    expect(await store.addCluster(own)).toBe(true);
    expect(await store.addCluster(cluster('other', { inCluster: true }))).toBe(false);
    expect(await store.saveCluster({ ...one, lastSyncAt: 7 })).toBe(true);
    expect(await store.saveCluster({ ...own, name: 'one' })).toBe(false);
    const again = await tested.open();
    expect(await again.clusters()).toEqual([{ ...one, lastSyncAt: 7 }, own]);
    expect(await again.cluster(one.id)).toEqual({ ...one, lastSyncAt: 7 });
    expect(await again.cluster(same.id)).toBeNull();
  });

  it('keeps both a change of a cluster and facts found at the same time', async () => {
    const tested = create();
    const store = await tested.open();
    const access = { kek: 'k', wrapped: Uint8Array.of(1, 0, 255), data: Uint8Array.of(2) };
    const one = cluster('one', { access, scope: [{ kind: 'Deployment', namespaces: null }] });
    await store.addCluster(one);
    const facts = { version: 'v1.33.1', scope: [], credentialEndsAt: null };
    const renamed = { ...one, name: 'other', namespaces: ['web'], access: { ...access, kek: 'l' } };
    const changes = [store.saveFacts(one.id, { lastSyncAt: 7 }), store.saveCluster(renamed)];
    await Promise.all([...changes, store.saveFacts(one.id, facts)]);
    await store.saveFacts(newUlid(Date.now()), facts);
    const [kept, ...others] = await (await tested.open()).clusters();
    expect(others).toEqual([]);
    expect({ ...kept, access: kept?.access?.kek }).toEqual({ ...renamed, ...facts, access: 'l' });
    expect([...(kept?.access?.wrapped ?? [])]).toEqual([1, 0, 255]);
  });

  it('stores any text of a workload', async () => {
    const tested = create();
    const store = await tested.open();
    const here = cluster('here');
    await store.addCluster(here);
    const odd = `nul \0 half \ud800 pair \u{1f6a2} escape \\u0000 quote "`;
    const row = workload(here, 'a');
    await store.save(saved(workload(here, 'b'), { ...row, sleepReason: odd }));
    const views = [{ id: row.id, view: { ...view(row), wakeReason: odd } }];
    await store.save(batch({ views, events: [event(odd)] }));
    const kept = await workloadsOf(await tested.open(), here);
    expect(kept.map(({ sleepReason }) => sleepReason?.slice(-34) ?? null)).toEqual([
      expect.stringContaining('pair \u{1f6a2} escape \\u0000 quote "'),
      null,
    ]);
  });

  it('removes a cluster with its workloads, savings and positions, and no others', async () => {
    const tested = create();
    const store = await tested.open();
    // Ids of the same millisecond, of which those of the workloads begin alike.
    const [gone, kept] = [cluster('gone'), cluster('kept')];
    for (const one of [gone, kept]) await store.addCluster(one);
    await store.save(saved(workload(gone, 'a'), workload(gone, 'b'), workload(kept, 'a')));
    await store.save(batch({ positions: [position(gone, '5'), position(kept, '6', 'web')] }));
    await store.save(batch({ savings: [savings(gone, 'web', 1), savings(kept, 'web', 2)] }));
    await store.removeCluster(gone.id);
    await store.saveCluster(gone);
    const again = await tested.open();
    expect(await again.clusters()).toEqual([kept]);
    expect(await workloadsOf(again, gone)).toEqual([]);
    expect(await again.positions(gone.id)).toEqual([]);
    expect(await again.savings(gone.id)).toEqual([]);
    expect(await again.savings(kept.id)).toEqual([savings(kept, 'web', 2)]);
    expect(await workloadsOf(again, kept)).toEqual([workload(kept, 'a')]);
    expect(await again.positions(kept.id)).toEqual([position(kept, '6', 'web')]);
  });

  it('returns every workload of a cluster, from several parts', async () => {
    const tested = create();
    const store = await tested.open();
    const here = cluster('here');
    await store.addCluster(here);
    const all = Array.from({ length: 1_201 }, (_, index) => workload(here, `w${10_000 + index}`, index));
    await store.save(saved(...all));
    expect(await workloadsOf(await tested.open(), here)).toEqual(all);
  });

  it('commits a batch, and then reports it', async () => {
    const tested = create();
    const store = await tested.open();
    const here = cluster('here');
    await store.addCluster(here);
    const [a, b] = [workload(here, 'a'), workload(here, 'b')];
    const commits: CloudCommit[] = [];
    const unfollow = store.follow((commit) => commits.push(commit));
    await store.save(batch({ ...saved(a, b), positions: [position(here, '5'), position(here, '6', 'web')] }));
    const slept = event('slept');
    const views = [
      { id: a.id, view: null },
      { id: b.id, view: view(b) },
    ];
    await store.save(
      batch({
        records: [
          { id: a.id, record: null },
          { id: b.id, record: { ...b, state: 'asleep' } },
        ],
        views,
        positions: [position(here, '7')],
        lostPositions: [{ clusterId: here.id, kind: 'Deployment', namespace: 'web' }],
        events: [slept],
      }),
    );
    expect(commits).toEqual([
      { views: [], events: [] },
      { views, events: [slept] },
    ]);
    unfollow();
    await store.save(batch({ views }));
    expect(commits).toHaveLength(2);
    const again = await tested.open();
    expect(await workloadsOf(again, here)).toEqual([{ ...b, state: 'asleep' }]);
    expect(await again.positions(here.id)).toEqual([position(here, '7')]);
    expect(await again.untoldEvents()).toEqual([slept]);
  });

  it('has the last sum of each namespace, committed together with the record that it counts', async () => {
    const tested = create();
    const store = await tested.open();
    const here = cluster('here');
    await store.addCluster(here);
    const a = workload(here, 'a');
    await store.save(batch({ ...saved(a), savings: [savings(here, 'web', 1), savings(here, 'data', 2)] }));
    await store.save(batch({ ...saved(workload(here, 'a', 0)), savings: [savings(here, 'web', 3.25)] }));
    const again = await tested.open();
    expect(await again.savings(here.id)).toEqual([savings(here, 'data', 2), savings(here, 'web', 3.25)]);
    expect(await workloadsOf(again, here)).toEqual([workload(here, 'a', 0)]);
  });

  it('keeps events until they are journaled, in the order in which they happened', async () => {
    const tested = create();
    const store = await tested.open();
    const events = ['one', 'two', 'three'].map(event);
    await store.save(batch({ events }));
    expect(await store.untoldEvents()).toEqual(events);
    await store.eventsTold(events.slice(0, 2).map(({ key }) => key));
    expect(await (await tested.open()).untoldEvents()).toEqual(events.slice(2));
  });

  it('keeps tokens and grants with their events, and removes a token with its grants as one', async () => {
    const tested = create();
    const store = await tested.open();
    const token = (id: string): StoredToken => ({
      ...{
        id,
        name: `t${id}`,
        hash: 'h',
        createdAt: 1,
        createdBy: 'token',
        expiresAt: null,
        lastUsedAt: null,
      },
    });
    const grant = (id: string, of: string): StoredGrant => ({
      ...{
        id,
        subject: `token:${of}`,
        role: 'viewer',
        clusterId: null,
        namespace: 'web',
        labels: 'app in (a,b)',
      },
      ...{ createdAt: 1, createdBy: 'token' },
    });
    const commits: CloudCommit[] = [];
    store.follow((commit) => commits.push(commit));
    for (const id of ['2', '1', '3']) await store.saveToken(token(id), []);
    const events = ['changed', 'granted', 'ungranted', 'revoked'].map(event);
    const [changed, granted, ungranted, revoked] = events.map((one) => [one]);
    await store.saveToken({ ...token('1'), lastUsedAt: 7, expiresAt: 8 }, changed ?? []);
    for (const row of [grant('2', '1'), grant('1', '2'), grant('3', '1')]) await store.saveGrant(row, []);
    await store.saveGrant(grant('4', '3'), granted ?? []);
    await store.removeGrant('4', ungranted ?? []);
    await store.removeToken('1', 'token:1', revoked ?? []);
    expect(commits.flatMap((commit) => commit.events)).toEqual(events);
    const again = await tested.open();
    expect(await again.untoldEvents()).toEqual(events);
    expect((await again.tokens()).sort((one, other) => (one.id < other.id ? -1 : 1))).toEqual([
      token('2'),
      token('3'),
    ]);
    expect(await again.grants()).toEqual([grant('1', '2')]);
  });

  it('keeps tethers and operations, and removes old operations with the next', async () => {
    const tested = create();
    const store = await tested.open();
    const tether: StoredTether = {
      ...{ id: newUlid(1), clusterId: 'c', workloadId: 'w', containerPort: 80, label: null, pod: null },
      ...{ wake: true, halfClosedTimeoutMs: 1, localPort: 20_000, active: true },
    };
    await store.saveTether(tether);
    await store.saveTether({ ...tether, active: false });
    await store.saveTether({ ...tether, id: newUlid(2) });
    await store.removeTether(tether.id);
    const operation = (id: string): StoredOperation => ({
      ...{ id, key: null, fingerprint: '', action: 'syncCluster', who: 'token', from: '', askedAt: 1 },
      ...{ state: 'asked', settledAt: null, result: null, isTold: false },
      subject: {
        ...{ clusterId: null, cluster: null, namespace: null, kind: null, workload: null },
        ...{ workloadId: null, tetherId: null },
      },
    });
    const [first, second, third] = ['1', '2', '3'].map(operation);
    if (!first || !second || !third) throw new Error('no operations');
    for (const one of [second, first]) await store.saveOperation(one, []);
    await store.saveOperation(third, [first.id]);
    const again = await tested.open();
    expect((await again.tethers()).map(({ localPort }) => localPort)).toEqual([20_000]);
    expect(await again.operations()).toEqual([second, third]);
  });
});
