// A sync over the wire-accurate double, and the workloads it shows afterwards.
import { describe, expect, it } from 'vitest';
import { ULID_PATTERN } from '../../../src/protocol/ulid.ts';
import { cloud, clusterInput, doubleWith, eventually } from '../../kit/cloud.ts';
import { workload } from '../../kit/kube_double.ts';

describe('a sync', () => {
  it('counts both kinds of all namespaces, and lists them with the fields of the base API', async () => {
    const double = await doubleWith('hello');
    double.put('StatefulSet', workload('data', 'store', 2));
    const here = await cloud();
    const { id } = await here.clusters.ask('register', {
      input: clusterInput({ kubeconfig: double.kubeconfig }),
    });
    expect(await here.clusters.ask('sync', { id })).toEqual({ synced: 2 });
    const row = {
      cluster_id: id,
      desired_replicas: null,
      auto_sleep_enabled: false,
      idle_timeout_minutes: 30,
      last_activity_at: null,
      state: 'awake',
      sleep_reason: null,
      wake_reason: null,
      stale_since: null,
      policy: null,
      after: null,
      managed_by: [],
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
      'wake_reason',
      'stale_since',
      'policy',
      'after',
      'managed_by',
    ]);
    expect(here.list('01ARZ3NDEKTSV4RRFFQ69G5FAV')).toEqual([]);
    expect(here.list(id)).toHaveLength(2);
  });

  it('drops missing workloads and keeps the settings of the others, also across a restart', async () => {
    const double = await doubleWith('stays', 'goes');
    const here = await cloud();
    const id = await here.add(double.kubeconfig);
    const { id: stays } = here.find('web/stays');
    await here.workloads.ask('autoSleep', { id: stays, enabled: true, minutes: 5 });
    await here.workloads.ask('sleep', { id: stays, by: 'request', holdMs: null });
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

  it('without rights changes nothing, and reports which rights are missing', async () => {
    const double = await doubleWith('hello');
    double.denied.add('list deployments').add('list statefulsets').add('list namespaces');
    const here = await cloud();
    const { id } = await here.clusters.ask('register', {
      input: clusterInput({ kubeconfig: double.kubeconfig }),
    });
    await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({
      code: 'cluster_denied',
      message: /may not list deployments\.apps in all namespaces/,
      detail: { hint: /name these in `namespaces`/ },
    });
    expect(here.list()).toEqual([]);
    expect(JSON.parse(here.views.cluster(id) ?? '')).toMatchObject({
      reachable: true,
      last_sync_at: null,
      capabilities: { sync: false },
    });
    expect(double.watches).toHaveLength(0);
  });

  it('of a cluster that does not respond fails in time, and succeeds later', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const { id } = await here.clusters.ask('register', {
      input: clusterInput({ kubeconfig: double.kubeconfig }),
    });
    await double.stop();
    await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({ code: 'cluster_unreachable' });
    expect(JSON.parse(here.views.cluster(id) ?? '')).toMatchObject({
      reachable: false,
      reason: expect.stringMatching(/^127\.0\.0\.1:\d+ cannot be reached: .*ECONNREFUSED/),
    });
    await double.start();
    await eventually(() => here.clusters.ask('sync', { id }).catch(() => undefined));
    expect(JSON.parse(here.views.cluster(id) ?? '')).toMatchObject({ reachable: true, reason: null });
  });

  it('joins one that is already running', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    const { id } = await here.clusters.ask('register', {
      input: clusterInput({ kubeconfig: double.kubeconfig }),
    });
    await Promise.all([1, 2, 3].map(() => here.clusters.ask('sync', { id })));
    expect(
      double.requests.filter(({ path, query }) => path.endsWith('/deployments') && !query.has('watch')),
    ).toHaveLength(1);
  });
});

describe('after a sync', () => {
  it('shows changes made elsewhere, also after an outage', async () => {
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

  it('a restarted daemon follows a synced cluster on its own, but not one never synced', async () => {
    const double = await doubleWith('hello');
    const other = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.clusters.ask('register', {
      input: clusterInput({ name: 'never', kubeconfig: other.kubeconfig }),
    });
    await here.stop();
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 9;
    });
    const later = await cloud({ folder: here.folder, vault: here.vault });
    await later.until('web/hello', (row) => row.replicas === 9);
    expect(other.requests).toEqual([]);
  });

  it('a workload recreated under its name keeps its id and settings, and nothing else', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 7 });
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    here.workloads.tell('activity', { id, at: Date.now() });
    await here.until('web/hello', (row) => row.last_activity_at !== null && row.desired_replicas === 3);
    double.remove('Deployment', 'web', 'hello');
    await eventually(() => here.list().length === 0);
    await expect(here.workloads.ask('wake', { id, by: 'request', waitMs: null })).rejects.toMatchObject({
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

  it('a workload replaced by a different one counts as new', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    double.put('Deployment', workload('web', 'hello', 1), true);
    expect(await here.until('web/hello', (row) => row.replicas === 1)).toMatchObject({
      id,
      desired_replicas: null,
      sleep_reason: null,
    });
  });

  it('an older version that arrives late changes nothing', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const watch = await eventually(() => double.watches.find(({ plural }) => plural === 'deployments'));
    const before = JSON.stringify({ type: 'MODIFIED', object: double.get('Deployment', 'web', 'hello') });
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request', holdMs: null });
    watch.write(`${before}\n`);
    double.put('Deployment', workload('web', 'after', 1));
    await here.until('web/after', () => true);
    expect(here.find('web/hello')).toMatchObject({ replicas: 0, sleep_reason: 'put to sleep by request' });
  });
});
