// The cloud API as clients see it: the real front, actors and store over the double.
import { describe, expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import type { WorkloadRow } from '../../../src/protocol/cloud.ts';
import { tetherSettings } from '../../../src/protocol/tethers.ts';
import { ULID_PATTERN } from '../../../src/protocol/ulid.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { type Cloud, cloud, eventually } from '../../kit/cloud.ts';
import { type Double, type Json, kubeDouble, workload } from '../../kit/kube_double.ts';
import { cloudFront, startFront } from '../kit.ts';

interface Api {
  double: Double;
  here: Cloud;
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Json; headers: Json }>;
  /** How many times the cloud part was started. */
  ensured(): number;
}

async function api(ensure: () => Promise<void> = async () => undefined): Promise<Api> {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.put('Deployment', workload('web', 'hello', 3));
  double.put('StatefulSet', workload('data', 'store', 2));
  const views = new CloudViews();
  let ensured = 0;
  const counted = async () => {
    ensured += 1;
    await ensure();
  };
  const front = await startFront({
    cloud: cloudFront({ token: 'secret', views, ensure: counted }),
  });
  const here = await cloud({ world: front, views, events: front.events });
  return {
    double,
    here,
    ensured: () => ensured,
    call: (method, path, body, headers) =>
      front.request(method, path, { body, headers: { Authorization: 'Bearer secret', ...headers } }),
  };
}

const workloadRow = (id: string): WorkloadRow => ({
  ...{ id, clusterId: 'a', kind: 'Deployment', namespace: 'web', name: id, labels: '', replicas: 1 },
  ...{ ready: 1, desiredReplicas: null, autoSleep: false, idleMinutes: 30, lastActivityAt: null },
  ...{
    state: 'awake',
    sleepReason: null,
    wakeReason: null,
    staleSince: null,
    policy: null,
    after: null,
    managers: [],
  },
});

const NOBODY = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

describe('clusters', () => {
  it('are registered, listed, shown, synced and removed', async () => {
    const { call, double } = await api();
    expect(await call('GET', '/k8s/clusters')).toMatchObject({ status: 200, body: [] });
    const added = await call('POST', '/k8s/clusters', { name: 'prod', kubeconfig: double.kubeconfig });
    expect(added).toMatchObject({
      status: 201,
      body: { id: expect.stringMatching(ULID_PATTERN), name: 'prod' },
    });
    expect(Object.keys(added.body)).toEqual(['id', 'name']);
    const { id } = added.body;
    const listed = {
      id,
      name: 'prod',
      provider: 'other',
      in_cluster: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    };
    expect(await call('GET', '/k8s/clusters')).toMatchObject({ status: 200, body: [listed] });
    expect((await call('GET', `/k8s/clusters/${id}`)).body).toEqual({
      ...listed,
      version: null,
      reachable: null,
      reason: null,
      last_sync_at: null,
      capabilities: null,
      authenticated: null,
      authenticated_since: null,
      credentials_expire_at: null,
      token_renewal: null,
      server: double.access.server,
      namespaces: [],
      scope: null,
    });
    expect(await call('POST', `/k8s/clusters/${id}/sync`)).toMatchObject({
      status: 200,
      body: { synced: 2 },
    });
    expect((await call('GET', `/k8s/clusters/${id}`)).body).toMatchObject({
      reachable: true,
      version: 'v1.33.0-double',
    });
    const change = { name: 'staging', kubeconfig: double.kubeconfig };
    expect(await call('PATCH', `/k8s/clusters/${id}`, change)).toMatchObject({
      status: 200,
      body: { id, name: 'staging' },
    });
    expect(await call('PATCH', `/k8s/clusters/${NOBODY}`, change)).toMatchObject({
      status: 404,
      body: { code: 'unknown_cluster' },
    });
    expect(await call('PATCH', `/k8s/clusters/${id}`, { in_cluster: true })).toMatchObject({ status: 400 });
    expect(await call('DELETE', `/k8s/clusters/${id}`)).toMatchObject({
      status: 200,
      body: { removed: true, id },
    });
    expect((await call('GET', '/k8s/workloads')).body).toEqual([]);
  });

  it.each<[string, object, string[]]>([
    ['nothing', {}, ['name']],
    ['an empty name', { name: '' }, ['name']],
    ['a long name', { name: 'x'.repeat(129) }, ['name']],
    ['controls', { name: 'a\nb', provider: 'a\u0007' }, ['name', 'provider']],
    ['a long provider', { name: 'a', provider: 'x'.repeat(65) }, ['provider']],
    [
      'wrong shapes',
      { name: 1, provider: 2, kubeconfig: 3, in_cluster: 'yes' },
      ['name', 'provider', 'kubeconfig', 'in_cluster'],
    ],
    ['another field', { name: 'a', kubeconfig: 'x', server: 'https://x' }, ['server']],
    ['no kubeconfig', { name: 'a' }, ['kubeconfig']],
    ['in_cluster without leave', { name: 'a', in_cluster: true }, ['in_cluster']],
    [
      'a kubeconfig that is none',
      { name: 'a', kubeconfig: 'a: b' },
      ['kubeconfig.a', 'kubeconfig.current-context'],
    ],
    ['namespaces that are none', { name: 'a', namespaces: ['a', 'B_'] }, ['namespaces.1']],
    [
      'too many namespaces',
      { name: 'a', namespaces: Array.from({ length: 51 }, (_, index) => `n${index}`) },
      ['namespaces'],
    ],
  ])('are refused with %s', async (_, body, paths) => {
    const { call } = await api();
    const answer = await call('POST', '/k8s/clusters', body);
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_spec', hint: expect.any(String) } });
    expect(answer.body.details.map((row: Json) => row.path)).toEqual(paths);
    for (const path of paths) expect(answer.body.message).toContain(path);
  });

  it('are refused with a kubeconfig of more than 256 KiB', async () => {
    const { call } = await api();
    const answer = await call('POST', '/k8s/clusters', {
      name: 'a',
      kubeconfig: `a: ${'x'.repeat(262_144)}`,
    });
    expect(answer).toMatchObject({ status: 413, body: { code: 'payload_too_large' } });
  });

  it('that return garbage or do not respond give 502', async () => {
    const { call, double } = await api();
    const { id } = (await call('POST', '/k8s/clusters', { name: 'a', kubeconfig: double.kubeconfig })).body;
    for (const plural of ['deployments', 'statefulsets', 'namespaces']) double.denied.add(`list ${plural}`);
    expect(await call('POST', `/k8s/clusters/${id}/sync`)).toMatchObject({
      status: 502,
      body: { code: 'cluster_denied' },
    });
    await double.stop();
    expect(await call('POST', `/k8s/clusters/${id}/sync`)).toMatchObject({
      status: 502,
      body: { code: 'cluster_unreachable' },
    });
  });
});

describe('workloads', () => {
  async function synced(): Promise<Api & { id: string; clusterId: string }> {
    const made = await api();
    const clusterId = await made.here.add(made.double.kubeconfig);
    return { ...made, clusterId, id: made.here.find('web/hello').id };
  }

  it('are listed in order, all or those of one cluster', async () => {
    const { call, clusterId } = await synced();
    const names = async (path: string): Promise<string[]> =>
      (await call('GET', path)).body.map((row: Json) => row.name);
    expect(await names('/k8s/workloads')).toEqual(['store', 'hello']);
    expect(await names(`/k8s/workloads?cluster_id=${clusterId}`)).toEqual(['store', 'hello']);
    for (const id of [NOBODY, clusterId.toLowerCase(), 'x'])
      expect(await call('GET', `/k8s/workloads?cluster_id=${id}`)).toMatchObject({
        status: 404,
        body: { code: 'unknown_cluster' },
      });
    expect(await call('GET', `/k8s/workloads?cluster_id=a&cluster_id=b`)).toMatchObject({ status: 400 });
  });

  it('are shown on their own, with their labels', async () => {
    const { call, id } = await synced();
    const [, listed] = (await call('GET', '/k8s/workloads')).body;
    expect((await call('GET', `/k8s/workloads/${id}`)).body).toEqual({ ...listed, labels: { app: 'hello' } });
  });

  it('are listed by namespace, state and labels, and in pages', async () => {
    const { call, id } = await synced();
    const names = async (query: string): Promise<string[]> =>
      (await call('GET', `/k8s/workloads?${query}`)).body.map((row: Json) => row.name);
    expect(await names('namespace=web')).toEqual(['hello']);
    expect(await names('namespace=web,data')).toEqual(['store', 'hello']);
    expect(await names('selector=app!%3Dstore')).toEqual(['hello']);
    await call('POST', `/k8s/workloads/${id}/sleep`);
    expect(await names('state=sleeping,asleep')).toEqual(['hello']);
    expect(await names('state=sleeping,asleep&namespace=data')).toEqual([]);
    const first = await call('GET', '/k8s/workloads?limit=1&selector=app');
    expect(first.body.map((row: Json) => row.name)).toEqual(['store']);
    const [, target = ''] = /^<(\/k8s\/workloads\?[^>]+)>; rel="next"$/.exec(first.headers.link) ?? [];
    const second = await call('GET', target);
    expect(second.body.map((row: Json) => row.name)).toEqual(['hello']);
    expect(second.headers.link).toBeUndefined();
    for (const [query, named] of [
      ['limit=0', 'limit'],
      ['limit=1001', 'limit'],
      ['continue=nonsense', 'continue'],
      ['state=tired', 'state'],
      ['selector=', 'selector'],
      ['selector=a%3Db%3Dc', 'selector'],
      ['label=a', 'label'],
    ])
      expect(await call('GET', `/k8s/workloads?${query}`)).toMatchObject({
        status: 400,
        body: { code: 'invalid_spec', message: expect.stringContaining(`${named} `) },
      });
  });

  it('are put to sleep and woken in bulk', async () => {
    const { call, clusterId } = await synced();
    const changed = async (path: string, body: unknown): Promise<unknown> =>
      (await call('POST', `/k8s/workloads/${path}`, body)).body.results.map((row: Json) => [
        ...[row.name, row.outcome, row.replicas],
      ]);
    expect(await changed('sleep', { selector: 'app', dry_run: true })).toEqual([
      ['store', 'would_change', 2],
      ['hello', 'would_change', 3],
    ]);
    expect(await changed('sleep', { cluster_id: clusterId, namespaces: ['web'] })).toEqual([
      ['hello', 'changed', 0],
    ]);
    expect(await changed('wake', { selector: 'app' })).toEqual([
      ['store', 'unchanged', 2],
      ['hello', 'changed', 3],
    ]);
    for (const [body, named] of [
      [{}, 'selector'],
      [{ dry_run: true }, 'selector'],
      [{ selector: 'a=b=c' }, 'selector'],
      [{ selector: 7 }, 'selector'],
      [{ namespaces: [] }, 'namespaces'],
      [{ namespaces: ['No'] }, 'namespaces.0'],
      [{ selector: 'app', hold: 5 }, 'hold'],
    ] as const)
      expect(await call('POST', '/k8s/workloads/wake', body)).toMatchObject({
        status: 400,
        body: { code: 'invalid_spec', details: [expect.objectContaining({ path: named })] },
      });
    expect(await call('POST', '/k8s/workloads/sleep', { cluster_id: NOBODY })).toMatchObject({ status: 404 });
  });

  it('are sent in parts when there are very many', async () => {
    const views = new CloudViews();
    const front = await startFront({
      cloud: cloudFront({ token: 'secret', views }),
    });
    const rows = Array.from({ length: 12_000 }, (_, index) => workloadRow(`w${index}`));
    views.setWorkloads(rows);
    const headers = { Authorization: 'Bearer secret' };
    const { body } = await front.request('GET', '/k8s/workloads', { headers });
    expect(new Set(body.map((row: Json) => row.id)).size).toBe(rows.length);
    expect(await front.request('HEAD', '/k8s/workloads', { headers })).toMatchObject({ status: 200 });
  });

  it('are put to sleep and woken', async () => {
    const { call, id, double } = await synced();
    expect((await call('POST', `/k8s/workloads/${id}/sleep`)).body).toEqual({ replicas: 0 });
    expect((await call('POST', `/k8s/workloads/${id}/sleep`)).body).toEqual({ replicas: 0 });
    const [, row] = (await call('GET', '/k8s/workloads')).body;
    expect(row).toMatchObject({
      id,
      replicas: 0,
      desired_replicas: 3,
      sleep_reason: 'put to sleep by request',
    });
    expect(await call('POST', `/k8s/workloads/${id}/wake`)).toMatchObject({
      status: 200,
      body: { replicas: 3 },
    });
    expect(await call('POST', `/k8s/workloads/${id}/wake?wait=true&timeout=5`)).toMatchObject({
      status: 502,
      body: { code: 'ready_timeout' },
    });
    const waiting = call('POST', `/k8s/workloads/${id}/wake?wait=true`);
    double.change('Deployment', 'web', 'hello', (object) => {
      object.status = { replicas: 3, readyReplicas: 1 };
    });
    expect(await waiting).toMatchObject({ status: 200, body: { replicas: 3 } });
  });

  it.each(['wait=yes', 'timeout=-1', 'timeout=3600001', 'timeout=1.5', 'wait=true&wait=true'])(
    'are not woken with ?%s',
    async (query) => {
      const { call, id } = await synced();
      expect(await call('POST', `/k8s/workloads/${id}/wake?${query}`)).toMatchObject({
        status: 400,
        body: { code: 'invalid_spec' },
      });
    },
  );

  it('have auto-sleep settings', async () => {
    const { call, id } = await synced();
    const path = `/k8s/workloads/${id}/auto-sleep`;
    expect((await call('GET', path)).body).toEqual({ auto_sleep_enabled: false, idle_timeout_minutes: 30 });
    expect(await call('PATCH', path, { idle_timeout_minutes: 43_200 })).toMatchObject({
      status: 200,
      body: { auto_sleep_enabled: false, idle_timeout_minutes: 43_200 },
    });
    expect((await call('PATCH', path, { auto_sleep_enabled: true })).body).toEqual({
      auto_sleep_enabled: true,
      idle_timeout_minutes: 43_200,
    });
    expect((await call('PATCH', path, {})).body).toEqual({
      auto_sleep_enabled: true,
      idle_timeout_minutes: 43_200,
    });
    expect((await call('GET', path)).body).toEqual({
      auto_sleep_enabled: true,
      idle_timeout_minutes: 43_200,
    });
    for (const wrong of [
      { idle_timeout_minutes: 0 },
      { idle_timeout_minutes: 43_201 },
      { idle_timeout_minutes: 1.5 },
      { idle_timeout_minutes: '5' },
      { auto_sleep_enabled: 1 },
      { auto_sleep_enabled: null },
      { other: 1 },
      [],
      7,
    ])
      expect(await call('PATCH', path, wrong)).toMatchObject({ status: 400, body: { code: 'invalid_spec' } });
    expect((await call('GET', path)).body).toEqual({
      auto_sleep_enabled: true,
      idle_timeout_minutes: 43_200,
    });
  });

  it('that do not exist give 404, as do clusters and tethers', async () => {
    const { call, here } = await synced();
    here.tethers.answer({
      create: () => {
        throw Object.assign(new Error('no'), { name: 'Failure', code: 'unknown_workload' });
      },
    });
    for (const id of [NOBODY, 'x', '%00', '..', '__proto__', 'a'.repeat(2_000)]) {
      for (const [method, path, body] of [
        ['POST', 'sleep', undefined],
        ['POST', 'wake', undefined],
        ['GET', 'auto-sleep', undefined],
        ['PATCH', 'auto-sleep', { auto_sleep_enabled: true }],
        ['POST', 'tether', { container_port: 1 }],
      ] as const)
        expect(await call(method, `/k8s/workloads/${id}/${path}`, body)).toMatchObject({
          status: 404,
          body: { code: 'unknown_workload' },
        });
      for (const [method, path] of [
        ['GET', ''],
        ['DELETE', ''],
        ['POST', '/sync'],
      ] as const)
        expect(await call(method, `/k8s/clusters/${id}${path}`)).toMatchObject({
          status: 404,
          body: { code: 'unknown_cluster' },
        });
    }
  });

  it('have tethers, which the tethers actor handles', async () => {
    const { call, here, id } = await synced();
    here.tethers.answer({
      create: () => ({ tether_id: NOBODY, local_port: 20_000 }),
      activate: ({ id: tether }) => ({ tether_id: tether, local_port: 20_000, state: 'active' }),
      deactivate: () => ({ ok: true }),
      remove: ({ id: tether }) => ({ removed: true, id: tether }),
    });
    expect(
      await call('POST', `/k8s/workloads/${id}/tether`, { container_port: 8080, label: 'web' }),
    ).toMatchObject({
      status: 201,
      body: { tether_id: NOBODY, local_port: 20_000 },
    });
    const chosen = { pod: 'db-0', allow_not_ready: true, half_closed_timeout: 5_000 };
    await call('POST', `/k8s/workloads/${id}/tether`, { container_port: 8080, wake: false, ...chosen });
    expect(here.tethers.of('create')).toEqual([
      {
        id: expect.any(String),
        ...{ workloadId: id, containerPort: 8080, label: 'web', wake: true },
        ...tetherSettings({}),
      },
      {
        id: expect.any(String),
        workloadId: id,
        containerPort: 8080,
        label: null,
        wake: false,
        pod: 'db-0',
        allowNotReady: true,
        halfClosedTimeoutMs: 5_000,
      },
    ]);
    expect((await call('POST', `/k8s/tethers/${NOBODY}/activate`)).body).toEqual({
      tether_id: NOBODY,
      local_port: 20_000,
      state: 'active',
    });
    expect((await call('POST', `/k8s/tethers/${NOBODY}/deactivate`)).body).toEqual({ ok: true });
    expect((await call('DELETE', `/k8s/tethers/${NOBODY}`)).body).toEqual({ removed: true, id: NOBODY });
    for (const wrong of [
      {},
      { container_port: 0 },
      { container_port: 65_536 },
      { container_port: '80' },
      { container_port: 80, label: 'x'.repeat(65) },
      { container_port: 80, wake: 'no' },
      { container_port: 80, pod: '../db' },
      { container_port: 80, allow_not_ready: 1 },
      { container_port: 80, half_closed_timeout: -1 },
      { container_port: 80, half_closed_timeout: '5s' },
      { container_port: 80, other: 1 },
    ])
      expect(await call('POST', `/k8s/workloads/${id}/tether`, wrong)).toMatchObject({
        status: 400,
        body: { code: 'invalid_spec' },
      });
    const counts = { connections: 0, bytesIn: 0, bytesOut: 0, lastError: null };
    const row = {
      id: NOBODY,
      workloadId: id,
      containerPort: 8080,
      label: null,
      localPort: 20_000,
      wake: true,
    };
    here.views.setTethers(
      [{ ...row, ...counts, ...tetherSettings({}), workload: null, previousPort: null, isOpen: true }],
      true,
    );
    await eventually(async () => (await call('GET', '/k8s/tethers')).body.length === 1);
  });
});

describe('the cloud part', () => {
  it('is started by the first request of any kind', async () => {
    const { call, ensured } = await api();
    expect(ensured()).toBe(0);
    await Promise.all([call('GET', '/k8s/clusters'), call('GET', '/k8s/workloads')]);
    const before = ensured();
    await call('GET', '/k8s/tethers');
    expect(ensured()).toBe(before);
  });

  it('is started again by a request after a failed start', async () => {
    let isBroken = true;
    const { call } = await api(async () => {
      if (isBroken) throw Object.assign(new Error('gone'), { name: 'Failure', code: 'gone' });
    });
    expect(await call('GET', '/k8s/clusters')).toMatchObject({ status: 503, body: { code: 'daemon_busy' } });
    isBroken = false;
    expect(await call('GET', '/k8s/clusters')).toMatchObject({ status: 200 });
  });

  it('answers every request with the reason when it is closed', async () => {
    const { call, here } = await api();
    await call('GET', '/k8s/clusters');
    here.views.markUnavailable(
      'key_unusable',
      'the cloud part is closed: the key file is another one',
      'Put it back.',
      null,
    );
    for (const [method, path] of [
      ['GET', '/k8s/clusters'],
      ['GET', '/k8s/workloads'],
      ['POST', `/k8s/workloads/${NOBODY}/sleep`],
    ] as const)
      expect(await call(method, path)).toMatchObject({
        status: 500,
        body: { code: 'key_unusable', message: /key file/, hint: 'Put it back.' },
      });
  });

  it('needs its own token', async () => {
    const { call } = await api();
    for (const token of ['', 'Bearer wrong', 'Basic secret'])
      expect(await call('GET', '/k8s/workloads', undefined, { Authorization: token })).toMatchObject({
        status: 401,
        headers: { 'www-authenticate': 'Bearer' },
      });
  });
});
