// Operations and events of the cloud as clients see them: the real front, actors and store over the double.
import { describe, expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import type { WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import { type CloudOperationsProtocol, CUT_OFF } from '../../../src/protocol/cloud_operations.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { PoliciesProtocol } from '../../../src/protocol/policies.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { CLOUD_EVENTS } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { auditOf, type Cloud, cloud, eventually } from '../../kit/cloud.ts';
import { type Double, type Json, kubeDouble, workload } from '../../kit/kube_double.ts';
import { cloudFront, sse, startFront } from '../kit.ts';

const TOKEN = { Authorization: 'Bearer secret' };

interface Api {
  double: Double;
  here: Cloud;
  port: number;
  /** The id of the workload web/hello. */
  id: string;
  clusterId: string;
  call(
    method: string,
    path: string,
    more?: { body?: unknown; key?: string },
  ): Promise<{ status: number; body: Json; headers: Json }>;
}

async function api(): Promise<Api> {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.put('Deployment', workload('web', 'hello', 3));
  const views = new CloudViews();
  const front = await startFront({
    cloud: cloudFront({ token: 'secret', views }),
  });
  const here = await cloud({ world: front, views, events: front.events });
  const clusterId = await here.add(double.kubeconfig);
  const call: Api['call'] = (method, path, { body, key } = {}) =>
    front.request(method, path, { body, headers: { ...TOKEN, ...(key && { 'Idempotency-Key': key }) } });
  return { double, here, port: front.port, id: here.find('web/hello').id, clusterId, call };
}

const patches = ({ double }: Api): number =>
  double.requests.filter(({ method }) => method === 'PATCH').length;
const append = ({ here }: Api, count: number) =>
  here.cloudEvents.ask('append', {
    events: Array.from({ length: count }, (_, n) => ({ type: 'workload.asleep', reason: `${n}` }) as const),
  });

it('the audit log names the fields of a cluster that a change has set', async () => {
  const made = await api();
  const changed = await made.call('PATCH', `/k8s/clusters/${made.clusterId}`, { body: { name: 'other' } });
  expect(changed.status).toBe(200);
  expect((await auditOf(made.here)).filter(({ action }: Json) => action === 'updateCluster')).toMatchObject([
    { type: 'operation.done', reason: 'changed: name' },
  ]);
});

describe('an Idempotency-Key', () => {
  it('makes a change once, also when it is requested twice at once', async () => {
    const made = await api();
    const sleep = () => made.call('POST', `/k8s/workloads/${made.id}/sleep`, { key: 'one' });
    const answers = await Promise.all([sleep(), sleep(), sleep()]);
    expect(answers.map(({ status, body }) => [status, body])).toEqual(
      answers.map(() => [200, { replicas: 0 }]),
    );
    expect(new Set(answers.map(({ headers }) => headers['berth-operation'])).size).toBe(1);
    expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === 'true')).toHaveLength(2);
    expect(patches(made)).toBe(1);
    const told = (await auditOf(made.here)).filter(({ action }: Json) => action === 'sleepWorkload');
    expect(told).toMatchObject([
      {
        ...{ type: 'operation.done', who: 'token', from: '127.0.0.1', result: 'ok', cluster: 'test' },
        ...{ namespace: 'web', workload: 'hello', workload_id: made.id, kind: 'Deployment' },
      },
    ]);
    const operation = await made.call('GET', `/k8s/operations/${told[0].operation_id}`);
    expect(operation.body).toMatchObject({
      state: 'done',
      action: 'sleepWorkload',
      result: 'ok',
      workload: 'hello',
    });
  });

  it('registers one cluster, and does not register it again after its removal', async () => {
    const made = await api();
    const body = { name: 'other', kubeconfig: made.double.kubeconfig };
    const add = () => made.call('POST', '/k8s/clusters', { body, key: 'add' });
    const [first, second] = [await add(), await add()];
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    const remove = () => made.call('DELETE', `/k8s/clusters/${first.body.id}`, { key: 'remove' });
    expect([(await remove()).body, (await remove()).body]).toEqual(
      [1, 2].map(() => ({ removed: true, id: first.body.id })),
    );
    const log = JSON.stringify(await auditOf(made.here));
    expect(log).toContain('registerCluster');
    expect(log).not.toContain(
      made.double.access.credential.kind === 'token' ? made.double.access.credential.token : '-',
    );
  });

  it.each<[string, string, string | undefined]>([
    ['another workload', '/k8s/workloads/NOBODY/sleep', undefined],
    ['another query', '/k8s/workloads/ID/sleep?hold=5', undefined],
    ['another change', '/k8s/workloads/ID/wake', undefined],
  ])('is refused for %s', async (_, path) => {
    const made = await api();
    await made.call('POST', `/k8s/workloads/${made.id}/sleep`, { key: 'same' });
    const answer = await made.call('POST', path.replace('ID', made.id), { key: 'same' });
    expect(answer).toMatchObject({ status: 422, body: { code: 'key_reused' } });
  });

  it.each([
    ['with a blank', 'a b'],
    ['that is too long', 'x'.repeat(256)],
    ['with a tab', 'a\tb'],
    ['with a byte beyond ASCII', 'a\xe9b'],
  ])('%s is 400, and nothing is done', async (_, key) => {
    const made = await api();
    const answer = await made.call('POST', `/k8s/workloads/${made.id}/sleep`, { key });
    expect(answer).toMatchObject({ status: 400, body: { details: [{ path: 'Idempotency-Key' }] } });
    expect(patches(made)).toBe(0);
  });

  it('repeats a permanent error, and retries after a temporary one', async () => {
    const made = await api();
    const unknown = () => made.call('POST', '/k8s/workloads/nobody/wake', { key: 'unknown' });
    const [first, second] = [await unknown(), await unknown()];
    expect(second).toMatchObject({ status: 404, body: first.body });
    const operation = first.headers['berth-operation'];
    expect(operation).toEqual(expect.any(String));
    expect(second.headers).toMatchObject({ 'berth-operation': operation, 'idempotent-replayed': 'true' });
    const sleep = () => made.call('POST', `/k8s/workloads/${made.id}/sleep`, { key: 'denied' });
    made.double.fault(({ method }) => method === 'PATCH', { kind: 'status', status: 403 });
    expect((await sleep()).body).toMatchObject({ code: 'cluster_denied' });
    expect((await sleep()).body).toEqual({ replicas: 0 });
    const results = (await auditOf(made.here)).flatMap(({ action, result }: Json) =>
      action ? [result] : [],
    );
    expect(results).toEqual(['unknown_workload', 'cluster_denied', 'ok']);
  });

  it('waits for a Ready pod when the daemon ended between the wake and its response', async () => {
    const front = await startFront({ cloud: cloudFront({ token: 'secret', views: new CloudViews() }) });
    const result = { answer: '{"replicas":3}', failure: null, reason: CUT_OFF };
    await front.stand<CloudOperationsProtocol>('operations', {
      begin: () => ({ id: 'OP', run: false, result }),
    });
    const waits: unknown[] = [];
    const ready = deferred<null>();
    await front.stand<WorkloadsProtocol>('workloads', {
      untilReady: (message) => {
        waits.push(message);
        return ready.promise;
      },
    });
    const headers = { ...TOKEN, 'Idempotency-Key': 'one' };
    let isAnswered = false;
    const wake = (query: string) => front.request('POST', `/k8s/workloads/W1/wake${query}`, { headers });
    const waiting = wake('?wait=true&timeout=7000').finally(() => {
      isAnswered = true;
    });
    expect((await wake('')).body).toEqual({ replicas: 3 });
    await eventually(() => waits.length > 0);
    expect([waits, isAnswered]).toEqual([[{ id: 'W1', waitMs: 7_000 }], false]);
    ready.resolve(null);
    expect((await waiting).body).toEqual({ replicas: 3 });
  });

  it('is answered 200 by a removal that an earlier attempt has carried out', async () => {
    const front = await startFront({ cloud: cloudFront({ token: 'secret', views: new CloudViews() }) });
    const answer = '{"removed":true,"name":"night"}';
    const operations = await front.stand<CloudOperationsProtocol>('operations', {
      begin: () => ({ id: 'OP', run: true, result: null }),
      settle: () => ({ result: { answer, failure: null, reason: null } }),
    });
    await front.stand<PoliciesProtocol>('policies', {
      remove: () => {
        throw fail('unknown_policy', 'there is no policy night');
      },
    });
    const headers = { ...TOKEN, 'Idempotency-Key': 'one' };
    const removed = await front.request('DELETE', '/k8s/policies/night', { headers });
    expect([removed.status, removed.body]).toEqual([200, JSON.parse(answer)]);
    expect(operations.of('begin')).toMatchObject([{ request: { action: 'removePolicy', target: 'night' } }]);
    expect(operations.of('settle')).toMatchObject([{ result: { failure: { code: 'unknown_policy' } } }]);
  });

  it('is optional, and a dry run is no operation', async () => {
    const made = await api();
    const dry = await made.call('POST', '/k8s/workloads/sleep', {
      body: { cluster_id: made.clusterId, dry_run: true },
    });
    expect(dry.headers['berth-operation']).toBeUndefined();
    const real = await made.call('POST', '/k8s/workloads/sleep', { body: { cluster_id: made.clusterId } });
    expect(real.body.results).toMatchObject([{ outcome: 'changed' }]);
    const told = (await auditOf(made.here)).filter(({ action }: Json) => action !== null);
    expect(told).toMatchObject([
      { action: 'sleepWorkloads', workload_id: made.id, reason: null },
      { action: 'sleepWorkloads', cluster_id: made.clusterId, workload_id: null, reason: '1 changed' },
    ]);
  });
});

describe('the history of the cloud', () => {
  it('comes in pages that the header Link names', async () => {
    const made = await api();
    await append(made, 5);
    const first = await made.call('GET', '/k8s/events/history?limit=2&types=workload.asleep&since=1h');
    expect(first.body.map(({ id }: Json) => id)).toEqual([5, 4]);
    const link = /<([^>]+)>; rel="next"/.exec(first.headers.link)?.[1] ?? '';
    const second = await made.call('GET', link);
    expect(second.body.map(({ id }: Json) => id)).toEqual([3, 2]);
    const last = await made.call('GET', link.replace(/continue=\d+/, 'continue=2'));
    expect([last.body.map(({ id }: Json) => id), last.headers.link]).toEqual([[1], undefined]);
  });

  it.each([
    ...[
      'types=x',
      'since=yesterday',
      'until=1x',
      'limit=0',
      'limit=1001',
      'limit=x',
      'continue=zz',
      'continue=-1',
    ],
    ...['foo=1', 'namespace=', 'after=1', 'since=%zz'],
  ])('refuses ?%s', async (query) => {
    const { call } = await api();
    expect(await call('GET', `/k8s/events/history?${query}`)).toMatchObject({
      status: 400,
      body: { code: 'invalid_spec' },
    });
  });

  it('returns 404 for an unknown operation, and 401 without a token', async () => {
    const { call, port } = await api();
    expect(await call('GET', '/k8s/operations/x')).toMatchObject({
      status: 404,
      body: { code: 'unknown_operation' },
    });
    for (const path of ['/k8s/events', '/k8s/events/history', '/k8s/operations/x'])
      expect((await sse(port, path)).status).toBe(401);
  });
});

describe('the stream of cloud events', () => {
  const idsOf = (frames: readonly { id: number | null }[]) => frames.map(({ id }) => id);

  it('replays more than is in memory, and continues with new events', async () => {
    const made = await api();
    const count = 2 * CLOUD_EVENTS.kept + 500;
    await append(made, count);
    const client = await sse(made.port, '/k8s/events?after=3', TOKEN);
    await client.until(count - 3);
    await append(made, 1);
    const frames = await client.until(count - 2);
    expect(idsOf(frames)).toEqual(Array.from({ length: count - 2 }, (_, index) => index + 4));
    expect(JSON.parse(frames.at(-1)?.data ?? '{}')).toMatchObject({ id: count + 1, type: 'workload.asleep' });
  });

  it('continues after the header Last-Event-ID, with selected events only', async () => {
    const made = await api();
    await append(made, 4);
    const headers = { ...TOKEN, 'Last-Event-ID': '3' };
    const client = await sse(made.port, '/k8s/events?after=1&types=workload.asleep', headers);
    await client.until(1);
    await made.here.cloudEvents.ask('append', { events: [{ type: 'tether.opened' }] });
    await append(made, 1);
    expect(idsOf(await client.until(2))).toEqual([4, 6]);
  });

  it('reports missing events for an id that was never assigned', async () => {
    const made = await api();
    await append(made, 2);
    const client = await sse(made.port, '/k8s/events?after=999', TOKEN);
    const frames = await client.until(3);
    expect(frames.map(({ event, id }) => [event, id])).toEqual([
      ['stream.reset', null],
      ['workload.asleep', 1],
      ['workload.asleep', 2],
    ]);
  });

  it('sends no past events without an id', async () => {
    const made = await api();
    await append(made, 2);
    const client = await sse(made.port, '/k8s/events', TOKEN);
    await eventually(() => client.frames.length > 0);
    await append(made, 1);
    expect(idsOf(await client.until(1))).toEqual([3]);
  });
});
