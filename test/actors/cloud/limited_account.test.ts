// Accounts that may not do everything, or nothing any more. docs/reference.md "Sync", "Clusters".
import { describe, expect, it } from 'vitest';
import type { StoredCluster } from '../../../src/protocol/clusters.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { type TestClock, virtualClock } from '../../kit/actors.ts';
import { type Cloud, cloud, clusterInput, doubleWith, eventually, openCloudStore } from '../../kit/cloud.ts';
import { type Double, type Json, type OpenWatch, workload } from '../../kit/kube_double.ts';

const detail = (here: Cloud, id: string): Json => JSON.parse(here.views.cluster(id) ?? '');
const scale = (double: Double, replicas: number): void =>
  double.change('Deployment', 'web', 'hello', (object) => {
    object.spec.replicas = replicas;
  });
const register = (here: Cloud, double: Double, namespaces: string[] = []) =>
  here.clusters.ask('register', { input: clusterInput({ kubeconfig: double.kubeconfig, namespaces }) });

/** May do nothing but in `namespaces`. */
function limitTo(double: Double, ...namespaces: string[]): void {
  for (const plural of ['deployments', 'statefulsets'])
    for (const verb of ['list', 'watch', 'get', 'patch']) double.denied.add(`${verb} ${plural}`);
  for (const namespace of namespaces) double.allowedIn.add(namespace);
}

describe('an account that may not watch', () => {
  async function unwatched(): Promise<{ double: Double; clock: TestClock; here: Cloud }> {
    const double = await doubleWith('hello');
    for (const plural of ['deployments', 'statefulsets']) double.denied.add(`watch ${plural}`);
    const clock = virtualClock();
    const here = await cloud({ clock });
    await here.add(double.kubeconfig);
    return { double, clock, here };
  }

  it('has its cluster listed repeatedly, and the rows show their age', async () => {
    const { double, clock, here } = await unwatched();
    const listedAt = new Date(clock.now()).toISOString();
    await here.until('web/hello', (row) => row.stale_since === listedAt);
    scale(double, 7);
    await clock.advance(CLOUD.poll.intervalMs - 1);
    expect(here.find('web/hello')).toMatchObject({ replicas: 3, stale_since: listedAt });
    await clock.advance(1);
    const row = await here.until('web/hello', ({ replicas }) => replicas === 7);
    expect(row.stale_since).toBe(new Date(clock.now()).toISOString());
    double.remove('Deployment', 'web', 'hello');
    await eventually(async () => {
      await clock.advance(CLOUD.poll.intervalMs);
      return here.find('web/hello') === undefined;
    });
  });

  it('has its cluster watched as soon as that is allowed', async () => {
    const { double, clock, here } = await unwatched();
    await here.until('web/hello', (row) => row.stale_since !== null);
    double.denied.clear();
    await clock.advance(CLOUD.poll.intervalMs);
    await here.until('web/hello', (row) => row.stale_since === null);
    scale(double, 2);
    await here.until('web/hello', (row) => row.replicas === 2);
  });
});

it('rows of an unreachable cluster show since when, until it is reachable', async () => {
  const double = await doubleWith('hello');
  const here = await cloud();
  await here.add(double.kubeconfig);
  await here.until('web/hello', (row) => row.stale_since === null && double.watches.length === 2);
  await double.stop();
  await here.until('web/hello', (row) => row.stale_since !== null);
  await double.start();
  await here.until('web/hello', (row) => row.stale_since === null);
});

it('rows of a cluster that no longer responds show since when although their watches stay open', async () => {
  const double = await doubleWith('hello');
  const clock = virtualClock();
  const here = await cloud({ clock });
  await here.add(double.kubeconfig);
  await eventually(() => double.watches.length === 2);
  const [since, began] = [new Date(clock.now()).toISOString(), clock.monotonic()];
  for (const watch of double.watches) watch.stall();
  let isAway = true;
  double.fault(() => isAway, { kind: 'reset' }, Number.POSITIVE_INFINITY);
  await clock.advance(CLOUD.accountCheckMs);
  await eventually(async () => {
    await clock.advance(50);
    return here.find('web/hello').stale_since === since;
  });
  expect(clock.monotonic() - began).toBeLessThan(CLOUD.watch.silenceTimeoutMs);
  isAway = false;
  scale(double, 7);
  await eventually(async () => {
    await clock.advance(50);
    const { replicas, stale_since: staleSince } = here.find('web/hello');
    return replicas === 7 && staleSince === null;
  });
});

describe('an account with rights in some namespaces only', () => {
  it('has the registered namespaces listed, as far as it may list them', async () => {
    const double = await doubleWith('hello');
    for (const namespace of ['data', 'secret']) double.put('StatefulSet', workload(namespace, 'store', 2));
    limitTo(double, 'web', 'data');
    double.denied.add('list namespaces');
    const here = await cloud();
    const { id } = await register(here, double, ['web', 'data', 'secret']);
    expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 2 });
    expect(here.list().map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([
      'data/store',
      'web/hello',
    ]);
    expect(detail(here, id)).toMatchObject({
      namespaces: ['web', 'data', 'secret'],
      scope: [
        { kind: 'Deployment', namespaces: ['data', 'web'] },
        { kind: 'StatefulSet', namespaces: ['data', 'web'] },
      ],
      capabilities: { sync: true, watch: true, sleep: true, denied: [] },
    });
    await eventually(() => double.watches.length === 4);
    scale(double, 5);
    const row = await here.until('web/hello', ({ replicas }) => replicas === 5);
    expect(await here.workloads.ask('sleep', { id: row.id, by: 'request', holdMs: null })).toMatchObject({
      slept: true,
    });
    // A later daemon begins with what the last sync could list.
    await here.stop();
    scale(double, 6);
    const later = await cloud({ folder: here.folder, vault: here.vault });
    await later.until('web/hello', ({ replicas }) => replicas === 6);
    await eventually(() => double.watches.length === 4);
  });

  it("has the namespace of its kubeconfig listed, or those of the cluster's own list", async () => {
    const double = await doubleWith('hello');
    limitTo(double, 'web');
    double.namespaces.push('other', 'web');
    const here = await cloud();
    const { id } = await register(here, double);
    expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 1 });
    double.denied.add('list namespaces');
    const config = JSON.parse(double.kubeconfig);
    config.contexts[0].context.namespace = 'web';
    const input = clusterInput({ name: 'two', kubeconfig: JSON.stringify(config) });
    const { id: second } = await here.clusters.ask('register', { input });
    expect(await here.clusters.ask('sync', { id: second })).toEqual({ synced: 1 });
  });

  it('loses the rows that it may no longer list', async () => {
    const double = await doubleWith('hello');
    double.put('Deployment', workload('other', 'gone', 1));
    const here = await cloud();
    const { id } = await register(here, double);
    await here.clusters.ask('sync', { id });
    expect(here.list()).toHaveLength(2);
    limitTo(double, 'web');
    double.namespaces.push('other', 'web');
    await here.clusters.ask('sync', { id });
    expect(here.list().map(({ name }) => name)).toEqual(['hello']);
  });

  it('has one kind listed if it may list only that kind', async () => {
    const double = await doubleWith('hello');
    double.denied.add('list statefulsets').add('list namespaces');
    const here = await cloud();
    const { id } = await register(here, double);
    expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 1 });
    expect(detail(here, id)).toMatchObject({
      scope: [
        { kind: 'Deployment', namespaces: null },
        { kind: 'StatefulSet', namespaces: [] },
      ],
      capabilities: { sync: false, denied: ['list statefulsets.apps'] },
    });
  });

  it('gets the missing rights by namespace', async () => {
    const double = await doubleWith('hello');
    double.put('Deployment', workload('data', 'store', 1));
    limitTo(double, 'web', 'data');
    double.denied.add('patch statefulsets');
    const here = await cloud();
    const { id } = await register(here, double, ['web', 'data']);
    await here.clusters.ask('sync', { id });
    double.allowedIn.delete('data');
    for (const plural of ['deployments', 'statefulsets']) double.denied.delete(`list ${plural}`);
    for (const plural of ['deployments', 'statefulsets']) double.denied.add(`list ${plural}`);
    await here.clusters.ask('sync', { id });
    expect(detail(here, id)).toMatchObject({
      scope: [
        { kind: 'Deployment', namespaces: ['web'] },
        { kind: 'StatefulSet', namespaces: ['web'] },
      ],
      capabilities: { sync: true, sleep: true, denied: [] },
    });
  });
});

describe('an account that was revoked', () => {
  async function watched() {
    const double = await doubleWith('hello');
    const clock = virtualClock();
    const here = await cloud({ clock });
    const id = await here.add(double.kubeconfig);
    await eventually(() => double.watches.length === 2);
    return { double, clock, here, id };
  }

  it('is detected although all watches stay open, and so is its return', async () => {
    const { double, clock, here, id } = await watched();
    expect(detail(here, id)).toMatchObject({ reachable: true, authenticated: true });
    double.isRevoked = true;
    await clock.advance(CLOUD.accountCheckMs);
    await eventually(() => detail(here, id).authenticated === false);
    expect(detail(here, id)).toMatchObject({
      reachable: true,
      reason: expect.stringContaining('The cluster does not know the account (401)'),
      authenticated_since: new Date(clock.now()).toISOString(),
    });
    expect(double.watches).toHaveLength(2);
    double.isRevoked = false;
    await clock.advance(CLOUD.accountCheckMs);
    await eventually(() => detail(here, id).authenticated === true);
    expect(detail(here, id).reason).toBeNull();
    const told = here.events.of('append').flatMap(({ events }) => events);
    expect(told.map(({ type, name }) => `${type} ${name}`)).toEqual([
      'cluster.refused test',
      'cluster.accepted test',
    ]);
    expect(JSON.parse(told[0]?.data ?? '')).toEqual({ name: 'test', clusterId: id });
  });

  it('is reported once, and as accepted again after new credentials', async () => {
    const { double, here, id } = await watched();
    double.isRevoked = true;
    for (const _ of [1, 2])
      await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({ code: 'cluster_denied' });
    const { kubeconfig } = await doubleWith('hello');
    const change = { name: null, provider: null, kubeconfig, namespaces: null, renewToken: false };
    await here.clusters.ask('change', { id, change });
    const told = () => here.events.of('append').flatMap(({ events }) => events.map(({ type }) => type));
    await eventually(() => told().length > 1, told);
    expect(told()).toEqual(['cluster.refused', 'cluster.accepted']);
  });

  it('causes failures that say how to renew it', async () => {
    const { double, here, id } = await watched();
    double.isRevoked = true;
    await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({
      code: 'cluster_denied',
      message: /does not know the account \(401\)/,
      detail: { hint: /PATCH \/k8s\/clusters\/\{id\}/ },
    });
  });

  it('can be renewed without a change of ids, settings or tethers', async () => {
    const old = await doubleWith('hello');
    const double = await doubleWith('hello');
    const here = await cloud();
    const id = await here.add(old.kubeconfig);
    const { id: workloadId } = here.find('web/hello');
    await here.workloads.ask('autoSleep', { id: workloadId, enabled: true, minutes: 77 });
    old.isRevoked = true;
    // Another server stands for other credentials: what is used shows where the calls go.
    double.put('Deployment', {
      ...old.get('Deployment', 'web', 'hello'),
      spec: workload('web', 'hello', 8).spec,
    });
    const change = {
      name: 'renewed',
      provider: null,
      kubeconfig: double.kubeconfig,
      namespaces: null,
      renewToken: false,
    };
    expect(await here.clusters.ask('change', { id, change })).toEqual({ id, name: 'renewed' });
    await here.until('web/hello', ({ replicas }) => replicas === 8);
    expect(here.find('web/hello')).toMatchObject({
      id: workloadId,
      auto_sleep_enabled: true,
      idle_timeout_minutes: 77,
    });
    expect(here.tethers.of('renewCluster')).toEqual([{ clusterId: id }]);
    expect(here.tethers.of('closeCluster')).toEqual([]);
    await eventually(() => detail(here, id).authenticated === true);
    await eventually(() => old.watches.length === 0 && double.watches.length === 2);
    expect((await here.workloads.ask('tetherTarget', { id: workloadId })).access).toMatchObject(
      double.access,
    );
    await here.stop();
    const later = await cloud({ folder: here.folder, vault: here.vault });
    await later.until('web/hello', ({ replicas }) => replicas === 8);
  });

  it('remains unchanged when a change is refused', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const id = await here.add(double.kubeconfig, 'one');
    await here.add(double.kubeconfig, 'two');
    const nothing = { name: null, provider: null, kubeconfig: null, namespaces: null, renewToken: false };
    const change = (more: object) => here.clusters.ask('change', { id, change: { ...nothing, ...more } });
    await expect(change({ name: 'two' })).rejects.toMatchObject({ code: 'name_in_use' });
    await expect(change({ kubeconfig: 'a: b' })).rejects.toMatchObject({ code: 'invalid_spec' });
    expect(await change({})).toEqual({ id, name: 'one' });
    expect(await change({ name: 'three', provider: 'kind' })).toEqual({ id, name: 'three' });
    expect(detail(here, id)).toMatchObject({ name: 'three', provider: 'kind', reachable: true });
  });
});

it.each(['namespaces', 'kubeconfig'] as const)(
  'new %s of a cluster are stored at once, also while it does not answer',
  async (what) => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const id = await here.add(double.kubeconfig, 'one');
    await eventually(() => double.watches.length === 2);
    const before = [...double.watches];
    const answers = deferred<void>();
    double.fault(() => true, { kind: 'held', until: answers.promise }, Number.POSITIVE_INFINITY);
    const nothing = { name: null, provider: null, kubeconfig: null, namespaces: null, renewToken: false };
    const value = { namespaces: ['web'], kubeconfig: double.kubeconfig }[what];
    const change = { ...nothing, [what]: value };
    expect(await here.clusters.ask('change', { id, change })).toEqual({ id, name: 'one' });
    if (what === 'namespaces') expect(detail(here, id).namespaces).toEqual(['web']);
    answers.resolve();
    const isNew = (watch: OpenWatch): boolean => !before.includes(watch);
    await eventually(() => double.watches.length === 2 && double.watches.every(isNew));
  },
);

it('the end of a certificate or token is shown, and warned of 7 days before', async () => {
  const double = await doubleWith();
  const clock = virtualClock();
  const here = await cloud({ clock });
  const end = clock.now() + CLOUD.expiryWarningMs + 7_200_000;
  const payload = Buffer.from(JSON.stringify({ exp: end / 1_000 })).toString('base64url');
  const config = JSON.parse(double.kubeconfig);
  config.users[0].user.token = `e30.${payload}.sig`;
  const input = clusterInput({ kubeconfig: JSON.stringify(config) });
  const { id } = await here.clusters.ask('register', { input });
  expect(detail(here, id).credentials_expire_at).toBe(new Date(end).toISOString());
  const warnings = () => here.events.of('append').flatMap(({ events }) => events);
  await clock.advance(3_600_000);
  expect(warnings()).toEqual([]);
  await clock.advance(7_200_000);
  const expiresAt = new Date(end).toISOString();
  expect(warnings()).toMatchObject([{ type: 'cluster.expiring', name: 'one' }]);
  expect(JSON.parse(warnings()[0]?.data ?? '')).toEqual({ name: 'one', clusterId: id, expiresAt });
  const opaque = clusterInput({ name: 'two', kubeconfig: double.kubeconfig });
  const { id: other } = await here.clusters.ask('register', { input: opaque });
  expect(detail(here, other).credentials_expire_at).toBeNull();
});

it('the server of a cluster that an earlier version has registered is shown once that is watched', async () => {
  const double = await doubleWith('hello');
  const here = await cloud();
  const id = await here.add(double.kubeconfig);
  await here.stop();
  const { cloudStore, close } = openCloudStore(here.folder);
  const { server, ...older } = (await cloudStore.cluster(id)) ?? {};
  expect(server).toBe(double.access.server);
  await cloudStore.saveCluster(older as StoredCluster);
  await close();
  const later = await cloud({ folder: here.folder, vault: here.vault });
  await eventually(() => later.views.cluster(id) !== undefined && detail(later, id).server === server);
});

it('a name that always resolves to this machine is refused where loopback is', async () => {
  const double = await doubleWith();
  const here = await cloud({ rule: { allow: 'public', apiOnLoopback: true } });
  for (const host of ['localhost', 'LOCALHOST', 'api.localhost', 'localhost.']) {
    const kubeconfig = double.kubeconfig.replace('127.0.0.1', host);
    await expect(
      here.clusters.ask('register', { input: clusterInput({ kubeconfig }) }),
    ).rejects.toMatchObject({ code: 'invalid_spec', message: /is a loopback address/ });
  }
});
