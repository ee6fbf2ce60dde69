// Clusters, workloads and the sweeper over the wire-accurate double.
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type KubeCluster, openKubeCluster } from '../../../src/adapters/kube/kube_cluster.ts';
import { createVault } from '../../../src/adapters/storage/vault.ts';
import type { ClusterInput } from '../../../src/protocol/cloud.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { ULID_PATTERN } from '../../../src/protocol/ulid.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { afterThisTest, realTime, settle, virtualClock } from '../../kit/actors.ts';
import { ANY, cloud, eventually } from '../../kit/cloud.ts';
import { type Double, kubeDouble, statusOf, workload } from '../../kit/kube_double.ts';

async function doubleWith(...names: string[]): Promise<Double> {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  for (const name of names) double.put('Deployment', workload('web', name, 3));
  return double;
}
const input = (more: Partial<ClusterInput>): ClusterInput => ({
  name: 'one',
  provider: 'other',
  kubeconfig: null,
  inCluster: false,
  ...more,
});

describe('clusters', () => {
  it('are registered without a connection, and listed with the fields of the base API', async () => {
    const double = await doubleWith();
    const { clusters, views } = await cloud();
    const { id, name } = await clusters.ask('register', {
      input: input({ kubeconfig: double.kubeconfig, provider: 'kind' }),
    });
    expect([id, name]).toEqual([expect.stringMatching(ULID_PATTERN), 'one']);
    expect(JSON.parse(views.clusters().toString())).toEqual([
      {
        id,
        name: 'one',
        provider: 'kind',
        in_cluster: false,
        created_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      },
    ]);
    expect(JSON.parse(views.cluster(id) ?? '')).toMatchObject({
      id,
      version: null,
      reachable: null,
      last_sync_at: null,
      capabilities: null,
    });
    expect(double.requests).toEqual([]);
  });

  it('have names of their own', async () => {
    const double = await doubleWith();
    const { clusters } = await cloud();
    const one = { input: input({ kubeconfig: double.kubeconfig }) };
    const both = await Promise.allSettled([clusters.ask('register', one), clusters.ask('register', one)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(clusters.ask('register', one)).rejects.toMatchObject({ code: 'name_in_use' });
  });

  it('need a kubeconfig whose server may be dialled', async () => {
    const double = await doubleWith();
    const { clusters } = await cloud();
    const register = (more: Partial<ClusterInput>) => clusters.ask('register', { input: input(more) });
    await expect(register({})).rejects.toMatchObject({
      code: 'invalid_spec',
      message: /kubeconfig is required/,
    });
    const metadata = double.kubeconfig.replace(/https:\/\/[^"]+/, 'https://0xa9fea9fe');
    await expect(register({ kubeconfig: metadata })).rejects.toMatchObject({
      code: 'invalid_spec',
      message: /169\.254\.169\.254.*never dialled/,
    });
    await expect(register({ kubeconfig: 'a: b' })).rejects.toMatchObject({
      code: 'invalid_spec',
      detail: { details: expect.any(Array) },
    });
  });

  it('that are in_cluster need the setting and a pod, and are possible once', async () => {
    const double = await doubleWith('hello');
    const inCluster = (name: string) => ({ input: input({ name, inCluster: true }) });
    const off = await cloud({ podAccess: double.access });
    await expect(off.clusters.ask('register', inCluster('a'))).rejects.toMatchObject({
      code: 'invalid_spec',
      message: /allow_in_cluster/,
    });
    const outside = await cloud({ allowInCluster: true });
    await expect(outside.clusters.ask('register', inCluster('a'))).rejects.toMatchObject({
      code: 'invalid_spec',
      message: /no pod/,
    });
    const on = await cloud({ allowInCluster: true, podAccess: double.access });
    const both = { input: { ...inCluster('a').input, kubeconfig: double.kubeconfig } };
    await expect(on.clusters.ask('register', both)).rejects.toMatchObject({ code: 'invalid_spec' });
    const { id } = await on.clusters.ask('register', inCluster('a'));
    expect(await on.clusters.ask('sync', { id })).toEqual({ synced: 1 });
    await expect(on.clusters.ask('register', inCluster('b'))).rejects.toMatchObject({ code: 'name_in_use' });
  });

  it('are forgotten with their rows; the workloads are left as they are', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const id = await here.add(double.kubeconfig);
    await eventually(() => double.watches.length === 2);
    expect(await here.clusters.ask('remove', { id })).toEqual({ removed: true, id });
    expect(here.tethers.of('closeCluster')).toEqual([{ clusterId: id }]);
    expect(here.list()).toEqual([]);
    expect(here.views.cluster(id)).toBeNull();
    await eventually(() => double.watches.length === 0);
    expect(double.get('Deployment', 'web', 'hello').spec.replicas).toBe(3);
    for (const kind of ['sync', 'remove'] as const)
      await expect(here.clusters.ask(kind, { id })).rejects.toMatchObject({ code: 'unknown_cluster' });
    const again = await here.add(double.kubeconfig);
    expect(again).not.toBe(id);
    await here.stop();
    const later = await cloud({ folder: here.folder, vault: here.vault });
    expect(JSON.parse(later.views.clusters().toString())).toHaveLength(1);
    expect(later.list()).toHaveLength(1);
  });

  it('are not opened again by a sync that comes while they are removed', async () => {
    const double = await doubleWith('hello');
    const asked = deferred<void>();
    const removed = deferred<void>();
    const here = await cloud({
      store: (store) => ({
        ...store,
        async removeCluster(clusterId) {
          asked.resolve();
          await removed.promise;
          await store.removeCluster(clusterId);
        },
      }),
    });
    const id = await here.add(double.kubeconfig);
    const removal = here.clusters.ask('remove', { id });
    await asked.promise;
    await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({ code: 'unknown_cluster' });
    removed.resolve();
    await removal;
    await eventually(() => double.watches.length === 0);
    expect(here.list()).toEqual([]);
    await here.stop();
    const later = await cloud({ folder: here.folder, vault: here.vault });
    expect(later.list()).toEqual([]);
  });

  it('are removed once, however many ask for it at once', async () => {
    const double = await doubleWith('hello');
    const removals: string[] = [];
    const removed = deferred<void>();
    const here = await cloud({
      store: (store) => ({
        ...store,
        async removeCluster(clusterId) {
          removals.push(clusterId);
          await removed.promise;
          await store.removeCluster(clusterId);
        },
      }),
    });
    const id = await here.add(double.kubeconfig);
    const first = here.clusters.ask('remove', { id });
    await eventually(() => removals.length > 0);
    const second = here.clusters.ask('remove', { id });
    // Letters are handled in the order in which they came: by now the second has been.
    await here.clusters.ask('viewsReady', {});
    removed.resolve();
    expect(await Promise.all([first, second])).toEqual([
      { removed: true, id },
      { removed: true, id },
    ]);
    await expect(here.clusters.ask('remove', { id })).rejects.toMatchObject({ code: 'unknown_cluster' });
    expect(removals).toEqual([id]);
    expect(here.tethers.of('closeCluster')).toHaveLength(1);
  });

  it('have no workload left that could be tethered when their tethers are closed', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const id = await here.add(double.kubeconfig);
    const workload = here.find('web/hello').id;
    const route = (): Promise<unknown> => here.workloads.ask('forwardTarget', { id: workload });
    await expect(route()).resolves.toMatchObject({ clusterId: id });
    here.tethers.answer({
      async closeCluster() {
        await expect(route()).rejects.toMatchObject({ code: 'unknown_workload' });
        return { closed: 0 };
      },
    });
    expect(await here.clusters.ask('remove', { id })).toEqual({ removed: true, id });
  });

  it('that could not be removed are synced as before', async () => {
    const double = await doubleWith('hello');
    const refusals = [fail('storage_full', 'the disk is full')];
    const here = await cloud({
      store: (store) => ({
        ...store,
        async removeCluster(clusterId) {
          const refusal = refusals.pop();
          if (refusal) throw refusal;
          await store.removeCluster(clusterId);
        },
      }),
    });
    const id = await here.add(double.kubeconfig);
    await expect(here.clusters.ask('remove', { id })).rejects.toMatchObject({ code: 'storage_full' });
    expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 1 });
    expect(here.find('web/hello').replicas).toBe(3);
    expect(await here.clusters.ask('remove', { id })).toEqual({ removed: true, id });
    expect(here.list()).toEqual([]);
  });

  it('say after a sync what they are and what the account may do', async () => {
    const double = await doubleWith('hello');
    double.denied.add('create pods/portforward');
    const here = await cloud();
    const id = await here.add(double.kubeconfig);
    expect(JSON.parse(here.views.cluster(id) ?? '')).toMatchObject({
      version: 'v1.33.0-double',
      reachable: true,
      last_sync_at: expect.stringMatching(/Z$/),
      capabilities: {
        sync: true,
        watch: true,
        sleep: true,
        tether: false,
        denied: ['create pods/portforward'],
      },
    });
    await here.stop();
    const later = await cloud({ folder: here.folder, vault: here.vault });
    expect(JSON.parse(later.views.cluster(id) ?? '')).toMatchObject({
      version: 'v1.33.0-double',
      capabilities: { tether: false },
    });
  });

  it('whose access does not open are said to be so, and keep no other from being followed', async () => {
    const [one, two] = [await doubleWith('hello'), await doubleWith('other')];
    const here = await cloud();
    const broken = await here.add(one.kubeconfig, 'one');
    await here.add(two.kubeconfig, 'two');
    await here.stop();
    const later = await cloud({
      folder: here.folder,
      vault: {
        ...here.vault,
        open: (owner, sealed) =>
          (owner === broken ? createVault(randomBytes(32)) : here.vault).open(owner, sealed),
      },
    });
    two.change('Deployment', 'web', 'other', (object) => {
      object.spec.replicas = 8;
    });
    await later.until('web/other', (row) => row.replicas === 8);
    expect(JSON.parse(later.views.cluster(broken) ?? '')).toMatchObject({ reachable: false });
    await expect(later.clusters.ask('sync', { id: broken })).rejects.toMatchObject({
      code: 'internal',
      message: /cannot be opened/,
    });
    expect(await later.clusters.ask('remove', { id: broken })).toEqual({ removed: true, id: broken });
  });

  it('of a pod are unreachable outside of it, and keep no other from being followed', async () => {
    const double = await doubleWith('hello');
    const inside = await cloud({ allowInCluster: true, podAccess: double.access });
    const { id } = await inside.clusters.ask('register', { input: input({ inCluster: true }) });
    await inside.clusters.ask('sync', { id });
    await inside.stop();
    const outside = await cloud({ folder: inside.folder, vault: inside.vault });
    expect(outside.list()).toHaveLength(1);
    await expect(outside.clusters.ask('sync', { id })).rejects.toMatchObject({ code: 'cluster_unreachable' });
  });
});

describe('a sync', () => {
  it('counts both kinds of all namespaces, and lists them with the fields of the base API', async () => {
    const double = await doubleWith('hello');
    double.put('StatefulSet', workload('data', 'store', 2));
    const here = await cloud();
    const { id } = await here.clusters.ask('register', { input: input({ kubeconfig: double.kubeconfig }) });
    expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 2 });
    const row = {
      cluster_id: id,
      desired_replicas: null,
      auto_sleep_enabled: false,
      idle_timeout_minutes: 30,
      last_activity_at: null,
      state: 'awake',
      sleep_reason: null,
    };
    expect(here.list()).toEqual([
      {
        ...row,
        id: expect.stringMatching(ULID_PATTERN),
        name: 'store',
        namespace: 'data',
        kind: 'StatefulSet',
        replicas: 2,
        ready_replicas: 2,
      },
      {
        ...row,
        id: expect.stringMatching(ULID_PATTERN),
        name: 'hello',
        namespace: 'web',
        kind: 'Deployment',
        replicas: 3,
        ready_replicas: 3,
      },
    ]);
    expect(Object.keys(here.list()[0])).toEqual([
      'id',
      'name',
      'namespace',
      'kind',
      'replicas',
      'desired_replicas',
      'auto_sleep_enabled',
      'idle_timeout_minutes',
      'last_activity_at',
      'cluster_id',
      'ready_replicas',
      'state',
      'sleep_reason',
    ]);
    expect(here.list('01ARZ3NDEKTSV4RRFFQ69G5FAV')).toEqual([]);
    expect(here.list(id)).toHaveLength(2);
  });

  it('drops what is gone and keeps what was set on what stays, also over a restart', async () => {
    const double = await doubleWith('stays', 'goes');
    const here = await cloud();
    const id = await here.add(double.kubeconfig);
    const { id: stays } = here.find('web/stays');
    await here.workloads.ask('autoSleep', { id: stays, enabled: true, minutes: 5 });
    await here.workloads.ask('sleep', { id: stays, by: 'request' });
    await here.stop();
    double.remove('Deployment', 'web', 'goes');
    const later = await cloud({ folder: here.folder, vault: here.vault });
    expect(later.list()).toHaveLength(2);
    expect(await later.clusters.ask('sync', { id })).toEqual({ synced: 1 });
    expect(later.list()).toEqual([
      expect.objectContaining({
        id: stays,
        desired_replicas: 3,
        replicas: 0,
        auto_sleep_enabled: true,
        idle_timeout_minutes: 5,
      }),
    ]);
  });

  it('that cannot read everything changes nothing, and says what is missing', async () => {
    const double = await doubleWith('hello');
    double.denied.add('list statefulsets');
    const here = await cloud();
    const { id } = await here.clusters.ask('register', { input: input({ kubeconfig: double.kubeconfig }) });
    await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({
      code: 'cluster_denied',
      message: /may not list statefulsets\.apps in all namespaces/,
    });
    expect(here.list()).toEqual([]);
    expect(JSON.parse(here.views.cluster(id) ?? '')).toMatchObject({
      reachable: true,
      last_sync_at: null,
      capabilities: { sync: false },
    });
    expect(double.watches).toHaveLength(0);
  });

  it('of a cluster that does not answer fails in time, and is well again afterwards', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const { id } = await here.clusters.ask('register', { input: input({ kubeconfig: double.kubeconfig }) });
    await double.stop();
    await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({ code: 'cluster_unreachable' });
    expect(JSON.parse(here.views.cluster(id) ?? '')).toMatchObject({ reachable: false });
    await double.start();
    await eventually(() => here.clusters.ask('sync', { id }).catch(() => undefined));
    expect(JSON.parse(here.views.cluster(id) ?? '')).toMatchObject({ reachable: true });
  });

  it('two at a time are one', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const { id } = await here.clusters.ask('register', { input: input({ kubeconfig: double.kubeconfig }) });
    await Promise.all([1, 2, 3].map(() => here.clusters.ask('sync', { id })));
    expect(
      double.requests.filter(({ path, query }) => path.endsWith('/deployments') && !query.has('watch')),
    ).toHaveLength(1);
  });
});

describe('after a sync', () => {
  it('changes made elsewhere are seen, also over an outage', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const id = await here.add(double.kubeconfig);
    await eventually(() => double.watches.length === 2);
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 5;
    });
    await here.until('web/hello', (row) => row.replicas === 5);
    double.put('StatefulSet', workload('web', 'new', 1));
    await here.until('web/new', (row) => row.kind === 'StatefulSet');
    double.remove('StatefulSet', 'web', 'new');
    await eventually(() => here.list().length === 1);
    await double.stop();
    await eventually(() => JSON.parse(here.views.cluster(id) ?? '').reachable === false);
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 1;
    });
    await double.start();
    await here.until('web/hello', (row) => row.replicas === 1);
    expect(JSON.parse(here.views.cluster(id) ?? '').reachable).toBe(true);
  });

  it('a daemon that starts again follows it by itself; one never synced is left alone', async () => {
    const double = await doubleWith('hello');
    const other = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.clusters.ask('register', { input: input({ name: 'never', kubeconfig: other.kubeconfig }) });
    await here.stop();
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 9;
    });
    const later = await cloud({ folder: here.folder, vault: here.vault });
    await later.until('web/hello', (row) => row.replicas === 9);
    expect(other.requests).toEqual([]);
  });

  it('a workload made again under its name keeps its id and settings, and nothing else', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 7 });
    await here.workloads.ask('sleep', { id, by: 'request' });
    here.workloads.tell('activity', { id, at: Date.now() });
    await here.until('web/hello', (row) => row.last_activity_at !== null && row.desired_replicas === 3);
    double.remove('Deployment', 'web', 'hello');
    await eventually(() => here.list().length === 0);
    await expect(here.workloads.ask('wake', { id, waitMs: null })).rejects.toMatchObject({
      code: 'unknown_workload',
    });
    double.put('Deployment', workload('web', 'hello', 2));
    expect(await here.until('web/hello', () => true)).toMatchObject({
      id,
      replicas: 2,
      desired_replicas: null,
      last_activity_at: null,
      auto_sleep_enabled: true,
      idle_timeout_minutes: 7,
      state: 'awake',
    });
  });

  it('a workload replaced by another one is another one', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request' });
    double.put('Deployment', workload('web', 'hello', 1), true);
    expect(await here.until('web/hello', (row) => row.replicas === 1)).toMatchObject({
      id,
      desired_replicas: null,
      sleep_reason: null,
    });
  });

  it('an older version that comes late changes nothing', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const watch = await eventually(() => double.watches.find(({ plural }) => plural === 'deployments'));
    const before = JSON.stringify({ type: 'MODIFIED', object: double.get('Deployment', 'web', 'hello') });
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request' });
    watch.write(`${before}\n`);
    double.put('Deployment', workload('web', 'after', 1));
    await here.until('web/after', () => true);
    expect(here.find('web/hello')).toMatchObject({ replicas: 0, sleep_reason: 'put to sleep by request' });
  });
});

describe('sleep and wake', () => {
  it('save the count, scale to 0 with a receipt, and give it back', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    double.onPatched = (_, object) =>
      double.change('Deployment', 'web', 'hello', (row) => {
        row.status = statusOf(object.spec.replicas);
      });
    expect(await here.workloads.ask('sleep', { id, by: 'request' })).toEqual({ replicas: 0, slept: true });
    expect(here.find('web/hello')).toMatchObject({
      replicas: 0,
      desired_replicas: 3,
      sleep_reason: 'put to sleep by request',
    });
    await here.until('web/hello', (row) => row.state === 'asleep');
    const { annotations } = double.get('Deployment', 'web', 'hello').metadata;
    expect(JSON.parse(annotations['berth/sleep'])).toEqual({
      replicas: 3,
      at: expect.any(Number),
      by: 'request',
    });
    const { body } = double.requests.find(({ method }) => method === 'PATCH') ?? {};
    expect(Object.keys(body)).toEqual(['metadata', 'spec']);
    expect(body.metadata).toMatchObject({ uid: expect.any(String), resourceVersion: expect.any(String) });
    expect(await here.workloads.ask('sleep', { id, by: 'request' })).toEqual({ replicas: 0, slept: true });
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
    expect(here.find('web/hello').desired_replicas).toBe(3);
    expect(await here.workloads.ask('wake', { id, waitMs: 1_000 })).toEqual({ replicas: 3 });
    expect(double.get('Deployment', 'web', 'hello').metadata.annotations['berth/sleep']).toBeUndefined();
    expect(await here.until('web/hello', (row) => row.state === 'awake')).toMatchObject({
      replicas: 3,
      desired_replicas: 3,
      sleep_reason: null,
    });
    expect(await here.workloads.ask('wake', { id, waitMs: null })).toEqual({ replicas: 3 });
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(2);
  });

  it('show what is on the way', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request' });
    expect(here.find('web/hello').state).toBe('sleeping');
    const status = (replicas: number, ready?: number): void =>
      double.change('Deployment', 'web', 'hello', (row) => {
        row.status = statusOf(replicas, ready);
      });
    status(0);
    await here.until('web/hello', (row) => row.state === 'asleep');
    await here.workloads.ask('wake', { id, waitMs: null });
    expect(here.find('web/hello').state).toBe('waking');
    status(3, 0);
    await here.until('web/hello', (row) => row.state === 'waking' && row.ready_replicas === 0);
    status(3, 1);
    await here.until('web/hello', (row) => row.state === 'awake' && row.ready_replicas === 1);
  });

  it('wake one that Berth never put to sleep with 1', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('StatefulSet', workload('data', 'store', 0));
    const here = await cloud();
    await here.add(double.kubeconfig);
    expect(here.find('data/store')).toMatchObject({
      replicas: 0,
      desired_replicas: null,
      state: 'asleep',
      sleep_reason: 'scaled to 0 outside of Berth',
    });
    const { id } = here.find('data/store');
    expect(await here.workloads.ask('sleep', { id, by: 'request' })).toEqual({ replicas: 0, slept: true });
    expect(here.find('data/store').desired_replicas).toBeNull();
    expect(await here.workloads.ask('wake', { id, waitMs: null })).toEqual({ replicas: 1 });
  });

  it('use the receipt when the store was lost', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request' });
    await here.stop();
    const fresh = await cloud();
    await fresh.add(double.kubeconfig);
    expect(fresh.find('web/hello')).toMatchObject({ replicas: 0, desired_replicas: 3 });
    expect(await fresh.workloads.ask('wake', { id: fresh.find('web/hello').id, waitMs: null })).toEqual({
      replicas: 3,
    });
  });

  it('use desired_replicas when the receipt was lost', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request' });
    double.change('Deployment', 'web', 'hello', (object) => {
      object.metadata.annotations = { 'berth/sleep': 'garbage' };
    });
    await here.until('web/hello', (row) => row.sleep_reason === 'scaled to 0 outside of Berth');
    expect(await here.workloads.ask('wake', { id, waitMs: null })).toEqual({ replicas: 3 });
  });

  it('retry conflicts with what is there then', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    let meddled = 0;
    double.fault(
      (request) => {
        if (request.method !== 'PATCH' || meddled === 2) return false;
        meddled += 1;
        double.change('Deployment', 'web', 'hello', (object) => {
          object.spec.replicas = 3 + meddled;
        });
        return false;
      },
      { kind: 'stall' },
    );
    expect(await here.workloads.ask('sleep', { id, by: 'request' })).toEqual({ replicas: 0, slept: true });
    expect(here.find('web/hello').desired_replicas).toBe(5);
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(3);
  });

  it('give up on a workload that changes without end', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    double.fault(
      ({ method }) => method === 'PATCH',
      { kind: 'status', status: 409, reason: 'Conflict', message: 'modified' },
      99,
    );
    await expect(
      here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request' }),
    ).rejects.toMatchObject({
      code: 'cluster_unreachable',
      message: /409.*modified/,
    });
    expect(double.get('Deployment', 'web', 'hello').spec.replicas).toBe(3);
  });

  it.each([
    ['sleep', 3, 0],
    ['wake', 0, 1],
  ] as const)('take an answer that was lost for what it was (%s)', async (kind, before, after) => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('Deployment', workload('web', 'hello', before));
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    double.fault(({ method }) => method === 'PATCH', { kind: 'lost' });
    const answer =
      kind === 'sleep'
        ? here.workloads.ask('sleep', { id, by: 'request' })
        : here.workloads.ask('wake', { id, waitMs: null });
    expect(await answer).toMatchObject({ replicas: after });
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
    if (kind === 'sleep') expect(here.find('web/hello').desired_replicas).toBe(3);
  });

  it('of one that was deleted fail as unknown', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    for (const watch of [...double.watches]) watch.stall();
    double.remove('Deployment', 'web', 'hello');
    await expect(here.workloads.ask('sleep', { id, by: 'request' })).rejects.toMatchObject({
      code: 'unknown_workload',
    });
    await expect(here.workloads.ask('sleep', { id: 'nonsense', by: 'request' })).rejects.toMatchObject({
      code: 'unknown_workload',
    });
  });

  it.each([
    ['deleted', null],
    ['made anew', 5],
  ])('of one that is %s before the answer has come leave it so', async (_, replicas) => {
    const double = await doubleWith('hello');
    const answered = deferred<void>();
    const here = await cloud({
      open: (access) => {
        const cluster = openKubeCluster(access, ANY, realTime);
        const patch: KubeCluster['patchWorkload'] = async (target, body) => {
          const seen = await cluster.patchWorkload(target, body);
          await answered.promise;
          return seen;
        };
        return { ...cluster, patchWorkload: patch };
      },
    });
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    double.onPatched = () => {
      double.remove('Deployment', 'web', 'hello');
      if (replicas !== null) double.put('Deployment', workload('web', 'hello', replicas));
    };
    const shown = () => here.list().map((row) => row.replicas);
    const expected = replicas === null ? [] : [replicas];
    const slept = here.workloads.ask('sleep', { id, by: 'request' });
    await eventually(() => JSON.stringify(shown()) === JSON.stringify(expected));
    answered.resolve();
    expect((await slept).slept).toBe(true);
    expect(shown()).toEqual(expected);
  });

  it.each([
    ['anything in kube-system', () => workload('kube-system', 'dns', 2), null, /kube-system/],
    [
      'a StatefulSet whose volumes would be deleted',
      () =>
        workload('data', 'db', 2, {
          spec: {
            persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' },
            volumeClaimTemplates: [{}],
          },
        }),
      null,
      /delete its volumes/,
    ],
    [
      'what Berth itself runs in',
      () => workload('data', 'berth', 2),
      { namespace: 'data', name: 'berth-1' },
      /Berth itself/,
    ],
  ] as const)('refuse %s', async (_, make, self, message) => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('StatefulSet', make());
    const here = await cloud(self ? { self } : {});
    await here.add(double.kubeconfig);
    const [row] = here.list();
    await expect(here.workloads.ask('sleep', { id: row.id, by: 'request' })).rejects.toMatchObject({
      code: 'sleep_refused',
      message,
    });
    expect(double.requests.some(({ method }) => method === 'PATCH')).toBe(false);
  });

  it('sleep a StatefulSet that keeps its volumes', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    const policy = {
      persistentVolumeClaimRetentionPolicy: { whenScaled: 'Retain', whenDeleted: 'Delete' },
      volumeClaimTemplates: [{}],
    };
    double.put('StatefulSet', workload('data', 'db', 2, { spec: policy }));
    const here = await cloud();
    await here.add(double.kubeconfig);
    expect(await here.workloads.ask('sleep', { id: here.list()[0].id, by: 'request' })).toMatchObject({
      replicas: 0,
    });
  });

  it('that are denied leave everything as it was', async () => {
    const double = await doubleWith('hello');
    double.denied.add('patch deployments');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await expect(
      here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request' }),
    ).rejects.toMatchObject({
      code: 'cluster_denied',
      message: /may not patch deployments\.apps hello in namespace web/,
    });
    expect(here.find('web/hello')).toMatchObject({ replicas: 3, desired_replicas: null, state: 'awake' });
  });

  it('wake once for many who ask at once', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request' });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => here.workloads.ask('wake', { id, waitMs: null })),
    );
    expect(new Set(answers.map(({ replicas }) => replicas))).toEqual(new Set([3]));
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(2);
  });

  it('go one after the other', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    const answers = await Promise.all([
      here.workloads.ask('sleep', { id, by: 'request' }),
      here.workloads.ask('wake', { id, waitMs: null }),
      here.workloads.ask('sleep', { id, by: 'request' }),
      here.workloads.ask('sleep', { id, by: 'request' }),
    ]);
    expect(answers.map(({ replicas }) => replicas)).toEqual([0, 3, 0, 0]);
    expect(here.find('web/hello').desired_replicas).toBe(3);
  });

  it('leave it awake when the last of them was a wake', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request' });
    const answers = await Promise.all([
      here.workloads.ask('wake', { id, waitMs: null }),
      here.workloads.ask('sleep', { id, by: 'request' }),
      here.workloads.ask('wake', { id, waitMs: null }),
      here.workloads.ask('wake', { id, waitMs: null }),
    ]);
    expect(answers.map(({ replicas }) => replicas)).toEqual([3, 0, 3, 3]);
    expect(double.get('Deployment', 'web', 'hello').spec.replicas).toBe(3);
    expect(double.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(4);
  });

  it('wait for a pod of this wake, not for one that is ending', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request' });
    // The controller has seen neither the sleep nor the wake: the three ready pods are those of before.
    expect(here.find('web/hello')).toMatchObject({ ready_replicas: 3 });
    await expect(here.workloads.ask('wake', { id, waitMs: 50 })).rejects.toMatchObject({
      code: 'ready_timeout',
    });
    const waiting = here.workloads.ask('wake', { id, waitMs: 20_000 });
    double.change('Deployment', 'web', 'hello', (row) => {
      row.status = statusOf(3, 1);
    });
    expect(await waiting).toEqual({ replicas: 3 });
  });

  it('find a pod that is ready, or the workload deleted, where nothing may be watched', async () => {
    const double = await doubleWith('hello');
    for (const plural of ['deployments', 'statefulsets']) double.denied.add(`watch ${plural}`);
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request' });
    double.onPatched = () =>
      double.change('Deployment', 'web', 'hello', (row) => {
        row.status = statusOf(3, 1);
      });
    expect(await here.workloads.ask('wake', { id, waitMs: 20 })).toEqual({ replicas: 3 });
    expect(here.find('web/hello')).toMatchObject({ ready_replicas: 1, state: 'awake' });
    await here.workloads.ask('sleep', { id, by: 'request' });
    double.onPatched = () => double.remove('Deployment', 'web', 'hello');
    await expect(here.workloads.ask('wake', { id, waitMs: 20 })).rejects.toMatchObject({
      code: 'unknown_workload',
    });
  });

  it('end a wait for a pod at once that none will come for any more', async () => {
    const clock = virtualClock();
    const double = await doubleWith('slept', 'scaled', 'deleted', 'forgotten');
    const here = await cloud({ clock });
    const clusterId = await here.add(double.kubeconfig);
    await eventually(() => double.watches.length === 2);
    // Time stands still: no wait ends because it is over.
    const woken = async (name: string) => {
      const { id } = here.find(`web/${name}`);
      await here.workloads.ask('sleep', { id, by: 'request' });
      const waiting = here.workloads.ask('wake', { id, waitMs: 20_000 }).catch((error: unknown) => error);
      await here.until(`web/${name}`, ({ replicas }) => replicas === 3);
      return { id, waiting };
    };
    const slept = await woken('slept');
    await here.workloads.ask('sleep', { id: slept.id, by: 'request' });
    expect(await slept.waiting).toMatchObject({
      code: 'ready_timeout',
      message: 'Deployment web/slept has no Ready pod: it was put to sleep by request',
    });
    const scaled = await woken('scaled');
    double.change('Deployment', 'web', 'scaled', (object) => {
      object.spec.replicas = 0;
    });
    expect(await scaled.waiting).toMatchObject({
      code: 'ready_timeout',
      message: 'Deployment web/scaled has no Ready pod: it was scaled to 0 outside of Berth',
    });
    const deleted = await woken('deleted');
    double.remove('Deployment', 'web', 'deleted');
    expect(await deleted.waiting).toMatchObject({ code: 'unknown_workload' });
    const forgotten = await woken('forgotten');
    await here.clusters.ask('remove', { id: clusterId });
    expect(await forgotten.waiting).toMatchObject({ code: 'unknown_workload' });
  });

  it('say why no pod is ready in time', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('Deployment', workload('web', 'hello', 0));
    const here = await cloud();
    await here.add(double.kubeconfig);
    const pod = (deployment: string, message: string) => ({
      metadata: {
        name: `${deployment}-6b-1`,
        namespace: 'web',
        uid: `u-${deployment}`,
        resourceVersion: '1',
        labels: { app: 'hello', 'pod-template-hash': '6b' },
        ownerReferences: [{ kind: 'ReplicaSet', name: `${deployment}-6b`, controller: true }],
      },
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'main', state: { waiting: { reason: 'ImagePullBackOff', message } } }],
      },
    });
    // The selector may take pods of others too.
    const pods = [pod('other', 'not its own'), pod('hello', 'no such image')];
    const body = JSON.stringify({ metadata: { resourceVersion: '1' }, items: pods });
    double.fault(({ path }) => path.endsWith('/namespaces/web/pods'), {
      kind: 'raw',
      status: 200,
      headers: {},
      body,
    });
    await expect(
      here.workloads.ask('wake', { id: here.find('web/hello').id, waitMs: 20 }),
    ).rejects.toMatchObject({
      code: 'ready_timeout',
      message: /no Ready pod after 20 ms: pod hello-6b-1: .*ImagePullBackOff: no such image$/,
    });
  });
});

describe('a sleep that something else undoes', () => {
  it('names who did it', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request' });
    const manager = {
      manager: 'argocd-controller',
      time: '2027-01-01T00:00:00Z',
      fieldsV1: { 'f:spec': { 'f:replicas': {} } },
    };
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 4;
      object.metadata.managedFields.push(manager);
    });
    const { sleep_reason } = await here.until('web/hello', (row) => row.replicas === 4);
    expect(sleep_reason).toBe('the sleep was undone by argocd-controller, which set 4 replicas');
  });

  it('leaves a receipt that tells nothing of what is done later', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    const scale = async (replicas: number): Promise<string | null> => {
      double.change('Deployment', 'web', 'hello', (object) => {
        object.spec.replicas = replicas;
      });
      return (await here.until('web/hello', (row) => row.replicas === replicas)).sleep_reason;
    };
    await here.workloads.ask('sleep', { id, by: 'request' });
    expect(await scale(4)).toMatch(/undone/);
    expect(await scale(0)).toBe('scaled to 0 outside of Berth');
    double.change('Deployment', 'web', 'hello', (object) => {
      object.status = statusOf(0);
    });
    expect(await here.until('web/hello', ({ state }) => state === 'asleep')).toMatchObject({
      sleep_reason: 'scaled to 0 outside of Berth',
    });
    expect(await scale(5)).toBeNull();
    await here.workloads.ask('sleep', { id, by: 'request' });
    expect(here.find('web/hello')).toMatchObject({
      sleep_reason: 'put to sleep by request',
      desired_replicas: 5,
    });
    expect(await scale(2)).toMatch(/undone/);
  });

  it('names the tool that keeps it and the autoscaler that scales it', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put(
      'Deployment',
      workload('web', 'hello', 3, { labels: { 'kustomize.toolkit.fluxcd.io/name': 'apps' } }),
    );
    double.addAutoscaler('web', 'hello-hpa', 'Deployment', 'hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request' });
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 2;
    });
    const row = await here.until('web/hello', ({ sleep_reason }) =>
      sleep_reason?.includes('HorizontalPodAutoscaler'),
    );
    expect(row.sleep_reason).toMatch(
      /undone by .*Flux keeps it as its source says.*set 2 replicas; HorizontalPodAutoscaler hello-hpa scales it/,
    );
    await here.workloads.ask('sleep', { id: row.id, by: 'request' });
    expect(here.find('web/hello')).toMatchObject({
      desired_replicas: 2,
      sleep_reason: 'put to sleep by request',
    });
  });
});

describe('auto-sleep', () => {
  const MINUTE = 60_000;
  async function ready(minutes = 10, sweepMs = 10_000 * MINUTE) {
    const double = await doubleWith('hello');
    const clock = virtualClock();
    const here = await cloud({ clock, sweepMs });
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes });
    const slept = () => double.get('Deployment', 'web', 'hello').spec.replicas === 0;
    return { double, clock, here, id, slept };
  }

  it('has settings that change one by one', async () => {
    const { here, id } = await ready(3);
    expect(await here.workloads.ask('autoSleep', { id, enabled: null, minutes: 9 })).toEqual({
      auto_sleep_enabled: true,
      idle_timeout_minutes: 9,
    });
    expect(await here.workloads.ask('autoSleep', { id, enabled: false, minutes: null })).toEqual({
      auto_sleep_enabled: false,
      idle_timeout_minutes: 9,
    });
    expect(here.find('web/hello')).toMatchObject({ auto_sleep_enabled: false, idle_timeout_minutes: 9 });
    await expect(
      here.workloads.ask('autoSleep', { id: 'x', enabled: true, minutes: 1 }),
    ).rejects.toMatchObject({ code: 'unknown_workload' });
  });

  it('puts to sleep what nobody has used, at the sweep', async () => {
    const { clock, here, slept, double } = await ready(15, 10 * MINUTE);
    await clock.advance(10 * MINUTE);
    await settle();
    expect(slept()).toBe(false);
    await clock.advance(10 * MINUTE);
    await eventually(slept);
    expect(await here.until('web/hello', (row) => row.replicas === 0)).toMatchObject({
      desired_replicas: 3,
      sleep_reason: 'put to sleep by auto-sleep',
    });
    expect(JSON.parse(double.get('Deployment', 'web', 'hello').metadata.annotations['berth/sleep']).by).toBe(
      'idle',
    );
  });

  it('counts from the last connection', async () => {
    const { clock, here, id } = await ready(10);
    await clock.advance(9 * MINUTE);
    here.workloads.tell('activity', { id, at: clock.now() });
    await clock.advance(9 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    await clock.advance(MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [id] });
    expect(here.find('web/hello').last_activity_at).toBe(new Date(clock.now() - 10 * MINUTE).toISOString());
  });

  it('leaves one alone through which an open connection moves bytes', async () => {
    const { clock, here, id } = await ready(10);
    await clock.advance(30 * MINUTE - 1);
    const traffic = (ago: number): void =>
      here.workloads.tell('traffic', { id, lastByteAt: clock.now() - ago });
    traffic(11 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [id] });
    traffic(5 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    traffic(0);
    expect((await here.workloads.ask('sleep', { id, by: 'idle' })).slept).toBe(false);
    await clock.advance(10 * MINUTE);
    expect((await here.workloads.ask('sleep', { id, by: 'idle' })).slept).toBe(true);
  });

  it('counts from the last byte, also when its connection has closed and over a restart', async () => {
    const { clock, here, id } = await ready(10);
    here.workloads.tell('activity', { id, at: clock.now() });
    const connectedAt = new Date(clock.now()).toISOString();
    await clock.advance(120 * MINUTE);
    here.workloads.tell('traffic', { id, lastByteAt: clock.now() });
    await clock.advance(5 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    await here.stop();
    const later = await cloud({ folder: here.folder, vault: here.vault, clock, sweepMs: 10_000 * MINUTE });
    await clock.advance(5 * MINUTE - 1);
    expect(await later.workloads.ask('idle', {})).toEqual({ ids: [] });
    await clock.advance(1);
    expect(await later.workloads.ask('idle', {})).toEqual({ ids: [id] });
    // It says when the last connection came: docs/reference.md "Workloads".
    expect(later.find('web/hello').last_activity_at).toBe(connectedAt);
  });

  it('leaves one alone that was made anew a moment ago, and not one that only changed', async () => {
    for (const isNew of [true, false]) {
      const { clock, here, id, double, slept } = await ready(10);
      await clock.advance(10 * MINUTE);
      double.fault(
        ({ method, path }) => {
          if (method !== 'GET' || !path.endsWith('/hello')) return false;
          // The watch tells of it only after it was read.
          for (const watch of double.watches) watch.stall();
          double.put('Deployment', workload('web', 'hello', 3), isNew);
          return false;
        },
        { kind: 'stall' },
      );
      expect((await here.workloads.ask('sleep', { id, by: 'idle' })).slept).toBe(!isNew);
      expect(slept()).toBe(!isNew);
    }
  });

  it('counts from when it woke', async () => {
    const { clock, here, id, double } = await ready(10);
    await here.workloads.ask('sleep', { id, by: 'request' });
    await clock.advance(60 * MINUTE);
    await here.workloads.ask('wake', { id, waitMs: null });
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    await clock.advance(10 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [id] });
    expect(double.get('Deployment', 'web', 'hello').spec.replicas).toBe(3);
  });

  it('waits after a restart until the tethers have reported', async () => {
    const { clock, here, id } = await ready(1);
    await clock.advance(30_000);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    await clock.advance(31_000);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [id] });
  });

  it('leaves alone what is refused or always undone, and says so', async () => {
    const { clock, here, id, double } = await ready(10);
    double.put('Deployment', workload('kube-system', 'dns', 1));
    const dns = await here.until('kube-system/dns', () => true);
    await here.workloads.ask('autoSleep', { id: dns.id, enabled: true, minutes: 1 });
    for (let round = 1; round <= 2; round += 1) {
      await clock.advance(10 * MINUTE);
      expect((await here.sweeper.ask('sweep', {})).slept).toEqual([id]);
      double.change('Deployment', 'web', 'hello', (object) => {
        object.spec.replicas = 3;
      });
      await here.until('web/hello', (row) => row.replicas === 3);
    }
    await clock.advance(10 * MINUTE);
    expect((await here.workloads.ask('idle', {})).ids).toEqual([dns.id]);
    expect(await here.sweeper.ask('sweep', {})).toEqual({
      slept: [],
      left: [{ id: dns.id, reason: expect.stringMatching(/kube-system/) }],
    });
    expect(here.find('kube-system/dns').sleep_reason).toMatch(/^auto-sleep: .*kube-system/);
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 1 });
    await clock.advance(2 * MINUTE);
    expect((await here.workloads.ask('idle', {})).ids).toContain(id);
  });
});

describe('auto-sleep goes on', () => {
  const MINUTE = 60_000;

  async function awake() {
    const double = await doubleWith('hello');
    const clock = virtualClock();
    const here = await cloud({ clock, sweepMs: 10_000 * MINUTE });
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 10 });
    /** Sleeps, and after `ms` something else gives it replicas. */
    const undone = async (by: 'request' | 'idle', ms: number): Promise<void> => {
      await clock.advance(10 * MINUTE);
      expect(await here.workloads.ask('sleep', { id, by })).toMatchObject({ slept: true });
      await clock.advance(ms);
      double.change('Deployment', 'web', 'hello', (object) => {
        object.spec.replicas = 3;
      });
      const row = await here.until('web/hello', ({ replicas }) => replicas === 3);
      expect(row.sleep_reason).toMatch(/^the sleep was undone by something else, which set 3 replicas/);
    };
    const isSwept = async (): Promise<boolean> => {
      await clock.advance(10 * MINUTE);
      return (await here.workloads.ask('idle', {})).ids.length === 1;
    };
    return { undone, isSwept };
  }

  it('when a workload is scaled up long after its sleeps', async () => {
    const { undone, isSwept } = await awake();
    for (let round = 1; round <= 3; round += 1) await undone('idle', 15 * MINUTE + 1);
    expect(await isSwept()).toBe(true);
  });

  it('when sleeps by request are undone', async () => {
    const { undone, isSwept } = await awake();
    for (let round = 1; round <= 3; round += 1) await undone('request', 0);
    expect(await isSwept()).toBe(true);
  });

  it('until its sleeps are undone at once, twice in a row', async () => {
    const { undone, isSwept } = await awake();
    await undone('idle', 15 * MINUTE);
    await undone('idle', 60 * MINUTE);
    await undone('idle', 15 * MINUTE);
    expect(await isSwept()).toBe(true);
    await undone('idle', 0);
    expect(await isSwept()).toBe(false);
  });
});

describe('a route', () => {
  it('says where the pods are and how to get there', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const clusterId = await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    expect(await here.workloads.ask('forwardTarget', { id })).toEqual({
      clusterId,
      access: double.access,
      state: 'awake',
      replicas: 3,
      workload: { id, kind: 'Deployment', namespace: 'web', name: 'hello', selector: 'app=hello' },
    });
    await expect(here.workloads.ask('forwardTarget', { id: 'x' })).rejects.toMatchObject({
      code: 'unknown_workload',
    });
  });
});
