// Clusters over the wire-accurate double: registration, removal and the fields shown.
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createVault } from '../../../src/adapters/storage/vault.ts';
import type { ClusterInput } from '../../../src/protocol/clusters.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { ULID_PATTERN } from '../../../src/protocol/ulid.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { cloud, clusterInput, doubleWith, eventually } from '../../kit/cloud.ts';

describe('clusters', () => {
  it('are registered without a connection, and listed with the fields of the base API', async () => {
    const double = await doubleWith();
    const { clusters, views } = await cloud();
    const { id, name } = await clusters.ask('register', {
      input: clusterInput({ kubeconfig: double.kubeconfig, provider: 'kind' }),
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

  it('have unique names', async () => {
    const double = await doubleWith();
    const { clusters } = await cloud();
    const one = { input: clusterInput({ kubeconfig: double.kubeconfig }) };
    const both = await Promise.allSettled([clusters.ask('register', one), clusters.ask('register', one)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(clusters.ask('register', one)).rejects.toMatchObject({ code: 'name_in_use' });
  });

  it('need a kubeconfig whose server address is allowed', async () => {
    const double = await doubleWith();
    const { clusters } = await cloud();
    const register = (more: Partial<ClusterInput>) => clusters.ask('register', { input: clusterInput(more) });
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

  it('with in_cluster need the setting and a pod, and exist at most once', async () => {
    const double = await doubleWith('hello');
    const inCluster = (name: string) => ({ input: clusterInput({ name, inCluster: true }) });
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

  it('are removed with their rows; the workloads stay as they are', async () => {
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

  it('are not reopened by a sync during their removal', async () => {
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

  it('are removed once, however many requests come at once', async () => {
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
    // Messages are handled in order of arrival: the second one has been handled by now.
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

  it('have no workload left to tether when their tethers close', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const id = await here.add(double.kubeconfig);
    const workload = here.find('web/hello').id;
    const route = (): Promise<unknown> => here.workloads.ask('tetherTarget', { id: workload });
    await expect(route()).resolves.toMatchObject({ clusterId: id });
    here.tethers.answer({
      async closeCluster() {
        await expect(route()).rejects.toMatchObject({ code: 'unknown_workload' });
        return null;
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

  it('show their version and the rights of the account after a sync', async () => {
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

  it('that cannot be decrypted are reported as such, and do not prevent others from being watched', async () => {
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
      message: /cannot be decrypted/,
    });
    expect(await later.clusters.ask('remove', { id: broken })).toEqual({ removed: true, id: broken });
  });

  it('with in_cluster are unreachable outside a pod, and do not prevent others from being watched', async () => {
    const double = await doubleWith('hello');
    const inside = await cloud({ allowInCluster: true, podAccess: double.access });
    const { id } = await inside.clusters.ask('register', { input: clusterInput({ inCluster: true }) });
    await inside.clusters.ask('sync', { id });
    await inside.stop();
    const outside = await cloud({ folder: inside.folder, vault: inside.vault });
    expect(outside.list()).toHaveLength(1);
    await expect(outside.clusters.ask('sync', { id })).rejects.toMatchObject({ code: 'cluster_unreachable' });
  });
});

describe('the route to a workload', () => {
  it('names the pods and the path to them', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const clusterId = await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    expect(await here.workloads.ask('tetherTarget', { id })).toEqual({
      clusterId,
      access: double.access,
      state: 'awake',
      replicas: 3,
      workload: {
        ...{ id, kind: 'Deployment', namespace: 'web', name: 'hello', selector: 'app=hello' },
        replicaSet: null,
      },
    });
    await expect(here.workloads.ask('tetherTarget', { id: 'x' })).rejects.toMatchObject({
      code: 'unknown_workload',
    });
  });
});
