// Who may do what with an API token: every route by role and scope against the real front, actors and store
// over the double, and what each answer has of what may be seen. docs/reference.md "Roles and grants".
import { describe, expect, it, vi } from 'vitest';
import { isCloudPath } from '../../../src/front/api/guard.ts';
import { ROUTES } from '../../../src/front/api/routes.ts';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import { ROLES, type Role } from '../../../src/protocol/grants.ts';
import { newUlid } from '../../../src/protocol/ulid.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { type Cloud, cloud, eventually } from '../../kit/cloud.ts';
import type { Answer } from '../../kit/http_request.ts';
import { type Double, type Json, kubeDouble, workload } from '../../kit/kube_double.ts';
import { cloudFront, type Running, sse, startFront } from '../kit.ts';

const NOBODY = newUlid(1);

interface Api {
  front: Running;
  views: CloudViews;
  here: Cloud;
  double: Double;
  /** Ids. */
  one: string;
  two: string;
  /** Workloads: web/hello with the label app=shop and web/plain, hr/pay of the first cluster, web/far. */
  hello: string;
  plain: string;
  pay: string;
  far: string;
  /** Sends a request with a token; the daemon's own without one. */
  call(method: string, path: string, more?: CallOptions): Promise<Answer>;
  /** Makes a token with grants; returns its text. */
  token(name: string, ...grants: Json[]): Promise<string>;
}

interface CallOptions {
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

function labelled(namespace: string, name: string, app: string): Json {
  const made = workload(namespace, name, 3);
  made.metadata.labels = { app };
  return made;
}

async function api(): Promise<Api> {
  const [first, second] = [await kubeDouble(), await kubeDouble()];
  for (const double of [first, second]) afterThisTest(() => double.stop());
  first.put('Deployment', labelled('web', 'hello', 'shop'));
  first.put('Deployment', labelled('web', 'plain', 'plain'));
  first.put('Deployment', labelled('hr', 'pay', 'payroll'));
  second.put('Deployment', labelled('web', 'far', 'shop'));
  const views = new CloudViews();
  const front = await startFront({ cloud: cloudFront({ token: 'secret', views }) });
  const here = await cloud({ world: front, views, events: front.events });
  const one = await here.add(first.kubeconfig, 'one');
  const two = await here.add(second.kubeconfig, 'two');
  const call: Api['call'] = (method, path, { token = 'secret', body, headers } = {}) =>
    front.request(method, path, { body, headers: { Authorization: `Bearer ${token}`, ...headers } });
  const token = async (name: string, ...grants: Json[]): Promise<string> => {
    const { status, body } = await call('POST', '/k8s/tokens', { body: { name } });
    expect(status).toBe(201);
    for (const grant of grants) {
      const made = await call('POST', '/k8s/grants', { body: { token: name, ...grant } });
      expect(made.status, JSON.stringify(made.body)).toBe(201);
    }
    return body.token;
  };
  const idOf = (name: string): string => here.find(name).id;
  const ids = {
    hello: idOf('web/hello'),
    plain: idOf('web/plain'),
    pay: idOf('hr/pay'),
    far: idOf('web/far'),
  };
  return { front, views, here, double: first, one, two, ...ids, call, token };
}

/** What each route needs, and for what. */
const NEEDED: Readonly<Record<string, [role: Role, scope: string]>> = {
  'GET /k8s/clusters': ['viewer', 'part'],
  'POST /k8s/clusters': ['admin', 'everything'],
  'GET /k8s/clusters/{id}': ['viewer', 'cluster'],
  'GET /k8s/clusters/{id}/rights': ['operator', 'whole'],
  'PATCH /k8s/clusters/{id}': ['admin', 'whole'],
  'DELETE /k8s/clusters/{id}': ['admin', 'whole'],
  'POST /k8s/clusters/{id}/sync': ['operator', 'whole'],
  'GET /k8s/workloads': ['viewer', 'part'],
  'GET /k8s/workloads/{id}': ['viewer', 'workload'],
  'POST /k8s/workloads/sleep': ['sleeper', 'part'],
  'POST /k8s/workloads/wake': ['waker', 'part'],
  'POST /k8s/workloads/{id}/sleep': ['sleeper', 'workload'],
  'POST /k8s/workloads/{id}/wake': ['waker', 'workload'],
  'GET /k8s/workloads/{id}/auto-sleep': ['viewer', 'workload'],
  'PATCH /k8s/workloads/{id}/auto-sleep': ['operator', 'workload'],
  'GET /k8s/metrics': ['viewer', 'part'],
  'POST /k8s/workloads/{id}/tether': ['waker', 'workload'],
  'GET /k8s/tethers': ['viewer', 'part'],
  'POST /k8s/tethers/{id}/activate': ['waker', 'tether'],
  'POST /k8s/tethers/{id}/deactivate': ['waker', 'tether'],
  'DELETE /k8s/tethers/{id}': ['waker', 'tether'],
  'POST /k8s/relay': ['waker', 'part'],
  'GET /k8s/policies': ['viewer', 'part'],
  'GET /k8s/policies/{name}': ['viewer', 'part'],
  'PUT /k8s/policies/{name}': ['operator', 'everything'],
  'DELETE /k8s/policies/{name}': ['operator', 'everything'],
  'GET /k8s/policies/{name}/preview': ['viewer', 'part'],
  'GET /k8s/savings': ['viewer', 'part'],
  'GET /k8s/events': ['viewer', 'part'],
  'GET /k8s/events/history': ['viewer', 'part'],
  'GET /k8s/operations/{id}': ['viewer', 'part'],
  'GET /k8s/tokens': ['admin', 'everything'],
  'POST /k8s/tokens': ['admin', 'everything'],
  'DELETE /k8s/tokens/{name}': ['admin', 'everything'],
  'GET /k8s/grants': ['admin', 'everything'],
  'POST /k8s/grants': ['admin', 'everything'],
  'DELETE /k8s/grants/{id}': ['admin', 'everything'],
};

const HAS: Readonly<Record<Role, readonly Role[]>> = {
  viewer: ['viewer'],
  waker: ['viewer', 'waker'],
  sleeper: ['viewer', 'sleeper'],
  operator: ['viewer', 'waker', 'sleeper', 'operator'],
  admin: ['viewer', 'waker', 'sleeper', 'operator', 'admin'],
};

type ScopeName = 'all' | 'one cluster' | 'one namespace' | 'labels';

/** Whether a scope has what a path names. */
const COVERS: Readonly<Record<ScopeName, readonly string[]>> = {
  all: ['everything', 'one', 'two', 'hello', 'plain', 'pay', 'far'],
  'one cluster': ['one', 'hello', 'plain', 'pay'],
  'one namespace': ['hello', 'plain'],
  labels: ['hello'],
};

const TARGETS = ['hello', 'plain', 'pay', 'far'] as const;
/** A value that no route knows: what is refused is refused before, and nothing is done. */
const UNKNOWN_QUERY = '?no_such_query=1';

describe('every route of the cloud part', () => {
  it('has a row in this test', () => {
    const served = ROUTES.filter(({ path, isPublic }) => isCloudPath(path) && !isPublic);
    expect(served.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(NEEDED).sort());
  });

  it.each(ROLES)('allows a %s of each scope exactly what its role allows', async (role) => {
    const made = await api();
    const ofHello = { cluster_id: made.one, selector: 'app=shop' };
    const scopes: Readonly<Record<ScopeName, Json>> = {
      all: {},
      'one cluster': { cluster_id: made.one },
      'one namespace': { cluster_id: made.one, namespace: 'web' },
      labels: ofHello,
    };
    const tethers = Object.fromEntries(TARGETS.map((name, index) => [name, newUlid(1_000 + index)]));
    made.here.views.setTethers(
      TARGETS.map((name) => ({
        ...{ id: tethers[name] ?? '', workloadId: made[name], containerPort: 80, label: null, localPort: 1 },
        ...{
          pod: null,
          allowNotReady: false,
          halfClosedTimeoutMs: 1,
          connections: 0,
          bytesIn: 0,
          bytesOut: 0,
        },
        ...{ lastError: null, workload: null, previousPort: null, wake: true, isOpen: false },
      })),
      true,
    );
    for (const [scope, grant] of Object.entries(scopes) as [ScopeName, Json][]) {
      const token = await made.token(scope.replaceAll(' ', '-'), { role, ...grant });
      const covers = COVERS[scope];
      const ask = async (route: string, key: string) => {
        const [method = '', path = ''] = route.split(' ');
        const body = method === 'GET' || method === 'DELETE' ? undefined : {};
        const at = path.replace(/\{\w+\}/, key) + UNKNOWN_QUERY;
        const { status, body: answer } = await made.call(method, at, { token, body });
        return { status, code: answer.code, message: String(answer.message) };
      };
      for (const [route, [needed, kind]] of Object.entries(NEEDED)) {
        const what = `${role} of ${scope}: ${route}`;
        const may = HAS[role].includes(needed);
        const forbidden = {
          status: 403,
          code: 'forbidden',
          message: expect.stringContaining(`role ${needed} `),
        };
        const passes = { status: 400, code: 'invalid_spec' };
        if (kind === 'part') expect(await ask(route, 'x'), what).toMatchObject(may ? passes : forbidden);
        else if (kind === 'everything')
          expect(await ask(route, 'x'), what).toMatchObject(may && scope === 'all' ? passes : forbidden);
        else {
          const isOfCluster = kind === 'cluster' || kind === 'whole';
          const gone = await ask(route, NOBODY);
          expect(gone.status, what).toBe(404);
          for (const name of isOfCluster ? (['one', 'two'] as const) : TARGETS) {
            const key = kind === 'tether' ? (tethers[name] ?? '') : made[name];
            const found = await ask(route, key);
            const isSeen = covers.includes(name) || (name === 'one' && isOfCluster);
            if (!isSeen) {
              // The same bytes, but for the id.
              const same = { ...gone, message: gone.message.replace(NOBODY, key) };
              expect(found, `${what} ${name}`).toEqual(same);
            } else {
              const isWhole = kind !== 'whole' || covers.includes(name);
              expect(found, `${what} ${name}`).toMatchObject(may && isWhole ? passes : forbidden);
            }
          }
        }
      }
    }
  });
});

const names = (rows: Json[]): string[] => rows.map(({ name }) => name).sort();

describe('a principal that may see one namespace', () => {
  it('sees no other in lists, pages, counts, details, metrics, savings and policies', async () => {
    const made = await api();
    const token = await made.token('web', { role: 'viewer', cluster_id: made.one, namespace: 'web' });
    const put = (name: string, selector: Json) =>
      made.call('PUT', `/k8s/policies/${name}`, { body: { selector, idle_timeout_minutes: 5 } });
    await put('own', { cluster_ids: [made.one], namespaces: ['web'] });
    await put('layoffs', { namespaces: ['hr', 'web'] });
    await put('far', { cluster_ids: [made.two], namespaces: ['web'] });
    const get = async (path: string) => {
      const { body, text } = await made.call('GET', path, { token });
      return body ?? text;
    };
    expect(names(await get('/k8s/clusters'))).toEqual(['one']);
    expect(names(await get('/k8s/workloads'))).toEqual(['hello', 'plain']);
    expect(names(await get('/k8s/workloads?namespace=hr,web'))).toEqual(['hello', 'plain']);
    expect(await get('/k8s/workloads?namespace=hr')).toEqual([]);
    const first = await made.call('GET', '/k8s/workloads?limit=1', { token });
    const next = /<([^>]*)>/.exec(first.headers['link'] as string)?.[1] ?? '';
    const last = await made.call('GET', next, { token });
    expect([...names(first.body), ...names(last.body), last.headers['link']]).toEqual([
      'hello',
      'plain',
      undefined,
    ]);
    expect(names(await get('/k8s/policies'))).toEqual(['own']);
    const hidden = await made.call('GET', '/k8s/policies/layoffs', { token });
    const absent = await made.call('GET', '/k8s/policies/nothing', { token });
    expect(hidden).toMatchObject({ status: 404, body: { code: 'unknown_policy' } });
    expect(JSON.stringify(hidden.body)).toBe(JSON.stringify(absent.body).replace('nothing', 'layoffs'));
    const detail = await get(`/k8s/clusters/${made.one}`);
    expect(detail).toMatchObject({ name: 'one', server: null, token_renewal: null });
    const all = [
      await get('/k8s/metrics'),
      await get('/k8s/savings'),
      await get('/k8s/tethers'),
      await get('/k8s/events/history'),
      detail,
    ];
    const text = JSON.stringify(all);
    for (const secret of ['hr', 'pay', 'payroll', 'layoffs', made.two, made.pay, made.far])
      expect(text).not.toMatch(new RegExp(`\\b${secret}\\b`));
    expect(text).toContain('hello');
  });

  it('sees events of its namespace only, in stream and history, and its operations', async () => {
    const made = await api();
    const token = await made.token('web', { role: 'viewer', cluster_id: made.one, namespace: 'web' });
    const stream = await sse(made.front.port, '/k8s/events', { Authorization: `Bearer ${token}` });
    expect(stream.status).toBe(200);
    const slept = await made.call('POST', `/k8s/workloads/${made.pay}/sleep`);
    const woken = await made.call('POST', `/k8s/workloads/${made.hello}/sleep`);
    const frames = await stream.until(1);
    const isOwn = ({ namespace, cluster_id }: Json) => namespace === 'web' && cluster_id === made.one;
    await eventually(() => stream.frames.some(({ event }) => event === 'operation.done'));
    expect(
      stream.frames.filter(({ data }) => data !== null).map(({ data }) => JSON.parse(data ?? '')),
    ).toSatisfy((rows: Json[]) => rows.length >= frames.length && rows.every(isOwn));
    const replayed = await sse(made.front.port, '/k8s/events?after=0', { Authorization: `Bearer ${token}` });
    await eventually(() => replayed.frames.some(({ event }) => event === 'operation.done'));
    const past = replayed.frames.filter(({ data, id }) => data !== null && id !== null);
    expect(past.map(({ data }) => JSON.parse(data ?? ''))).toSatisfy((rows: Json[]) => rows.every(isOwn));
    const { body } = await made.call('GET', '/k8s/events/history', { token });
    expect(body.length).toBeGreaterThan(0);
    expect(body).toSatisfy((rows: Json[]) => rows.every(isOwn));
    const status = async (of: { headers: Json }): Promise<number> =>
      (await made.call('GET', `/k8s/operations/${of.headers['berth-operation']}`, { token })).status;
    expect([await status(woken), await status(slept)]).toEqual([200, 404]);
  });

  it('changes workloads in bulk within its grants, and sees no others', async () => {
    const made = await api();
    const token = await made.token('web', { role: 'sleeper', cluster_id: made.one, namespace: 'web' });
    const body = { selector: 'app' };
    const { status, body: answer } = await made.call('POST', '/k8s/workloads/sleep', { token, body });
    expect(status).toBe(200);
    expect(names(answer.results)).toEqual(['hello', 'plain']);
    expect(made.here.find('hr/pay').replicas).toBe(3);
    const other = await made.call('POST', '/k8s/workloads/sleep', {
      token,
      body: { ...body, cluster_id: made.two },
    });
    expect(other).toMatchObject({ status: 404, body: { code: 'unknown_cluster' } });
    const wake = await made.call('POST', '/k8s/workloads/wake', { token, body });
    expect(wake).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  });

  it('sees who has changed its workloads in bulk, and nothing of the others', async () => {
    const made = await api();
    const token = await made.token('web', { role: 'viewer', cluster_id: made.one, namespace: 'web' });
    const slept = await made.call('POST', '/k8s/workloads/sleep', { body: { selector: 'app' } });
    expect(names(slept.body.results)).toEqual(['far', 'hello', 'pay', 'plain']);
    const history = async (query: string): Promise<Json[]> =>
      (await made.call('GET', `/k8s/events/history?types=operation.done&${query}`, { token })).body;
    const seen = await history('namespace=web');
    expect(seen.map(({ workload }: Json) => workload).sort()).toEqual(['hello', 'plain']);
    expect(await history('')).toEqual(seen);
    expect(await history(`workload_id=${made.hello}`)).toMatchObject([
      {
        ...{ who: 'token', from: '127.0.0.1', action: 'sleepWorkloads', result: 'ok' },
        ...{ workload: 'hello', operation_id: slept.headers['berth-operation'] },
      },
    ]);
    expect(await history(`workload_id=${made.pay}`)).toEqual([]);
  });
});

describe('a principal that may see some workloads of a namespace', () => {
  it('sees nothing of the others that a workload is woken after but their names in its annotation', async () => {
    const made = await api();
    const { double, hello, call } = made;
    const annotate = (name: string, after: string): void =>
      double.change('Deployment', 'web', name, ({ metadata }: Json) => {
        metadata.annotations = { ...metadata.annotations, 'berth/after': after };
      });
    for (const id of [hello, made.plain]) await call('POST', `/k8s/workloads/${id}/sleep`);
    annotate('hello', 'plain, nowhere');
    annotate('plain', 'hello');
    await made.here.until('web/hello', ({ after }) => after?.faults.length === 2);
    const token = await made.token('shop', { role: 'waker', namespace: 'web', selector: 'app=shop' });
    const whole = await made.token('whole', { role: 'viewer', namespace: 'web' });
    /** `after` of web/hello, however it is read. */
    const orders = async (by: string): Promise<Json[]> => {
      const get = async (path: string): Promise<Json> => (await call('GET', path, { token: by })).body;
      const lists = await Promise.all(
        ['', '?limit=10', '?selector=app'].map((q) => get(`/k8s/workloads${q}`)),
      );
      const rows = lists.map((list: Json[]) => list.find(({ id }) => id === hello));
      return [...rows, await get(`/k8s/workloads/${hello}`)].map(({ after }) => after);
    };
    const workloads = ['plain', 'nowhere'];
    expect(await orders(token)).toEqual(Array.from({ length: 4 }, () => ({ workloads, faults: [] })));
    const faults = [
      'there is no workload nowhere in its namespace',
      expect.stringMatching(/hello, plain, hello$/),
    ];
    expect(await orders(whole)).toEqual(Array.from({ length: 4 }, () => ({ workloads, faults })));

    const stream = await sse(made.front.port, '/k8s/events', { Authorization: `Bearer ${token}` });
    double.fault(({ method, path }) => method === 'PATCH' && path.endsWith('/plain'), {
      kind: 'status',
      status: 403,
    });
    const woken = await call('POST', `/k8s/workloads/${hello}/wake`, { token });
    expect(woken).toMatchObject({ status: 200, body: { replicas: 3 } });
    await eventually(() => stream.frames.some(({ event }) => event === 'workload.waking'));
    const failed = async (by: string): Promise<Json[]> =>
      (await call('GET', '/k8s/events/history?types=workload.failed', { token: by })).body;
    expect(await failed(whole)).toMatchObject([
      { workload: 'plain', operation_id: woken.headers['berth-operation'], result: 'cluster_denied' },
    ]);
    expect(await failed(token)).toEqual([]);
    const replayed = await sse(made.front.port, '/k8s/events?after=0', { Authorization: `Bearer ${token}` });
    await eventually(() => replayed.frames.some(({ event }) => event === 'workload.waking'));
    const history = await call('GET', '/k8s/events/history', { token });
    const seen = JSON.stringify([woken.body, stream.frames, replayed.frames, history.body]);
    expect(seen).toContain('hello');
    expect(seen).not.toContain('plain');
  });
});

describe('an API token', () => {
  it('is shown once, stored as a hash, listed, and named in the audit log as the one who asked', async () => {
    const made = await api();
    const token = await made.token('ci', { role: 'operator' });
    expect(token).toMatch(/^brt_[0-9A-Z]{26}_[A-Za-z0-9_-]{43}$/);
    const agent = { 'Berth-Agent': 'somebody' };
    await made.call('POST', `/k8s/workloads/${made.hello}/sleep`, { token, headers: agent });
    const { body: log } = await made.call('GET', '/k8s/events/history');
    const done = log.find(({ action }: Json) => action === 'sleepWorkload');
    expect(done).toMatchObject({ who: 'token:ci', from: '127.0.0.1', workload: 'hello' });
    const made2 = log.filter(({ type }: Json) => /^(token|grant)\./.test(type));
    expect(made2).toMatchObject([
      {
        type: 'grant.created',
        who: 'token',
        from: '127.0.0.1',
        reason: 'token ci: operator of all clusters',
      },
      { type: 'token.created', who: 'token', from: '127.0.0.1', reason: 'token ci' },
    ]);
    const listed = await made.call('GET', '/k8s/tokens');
    expect(listed.body).toMatchObject([{ name: 'ci', created_by: 'token', expires_at: null }]);
    expect(listed.body[0].last_used_at).not.toBeNull();
    const secret = token.slice(-43);
    expect(JSON.stringify([log, listed.body])).not.toContain(secret);
    expect((await made.call('POST', '/k8s/tokens', { body: { name: 'ci' } })).body.code).toBe('name_in_use');
    expect((await made.call('GET', '/k8s/grants')).body).toMatchObject([
      { token: 'ci', role: 'operator', cluster_id: null, cluster: null, namespace: null, selector: null },
    ]);
  });

  it.each([
    ['with another secret', (token: string) => token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A')],
    ['of another id', (token: string) => token.replace(/_[0-9A-Z]{26}_/, `_${NOBODY}_`)],
    ['cut short', (token: string) => token.slice(0, -1)],
    ['with more behind it', (token: string) => `${token}A`],
    ['that is its prefix', () => 'brt_'],
    ['that is huge', (token: string) => token + 'x'.repeat(4_000)],
    ['that is its hash', (token: string) => `berth.${token.slice(0, 30)}.${token.slice(-43)}`],
  ])('%s is refused', async (_, change) => {
    const made = await api();
    const token = await made.token('ci', { role: 'admin' });
    expect((await made.call('GET', '/k8s/clusters', { token })).status).toBe(200);
    const wrong = await made.call('GET', '/k8s/clusters', { token: change(token) });
    expect(wrong).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
  });

  it('that is revoked is refused at once, and its streams and grants end', async () => {
    const made = await api();
    const token = await made.token('ci', { role: 'viewer' });
    const other = await made.token('other', { role: 'viewer' });
    const [stream, kept] = [
      await sse(made.front.port, '/k8s/events', { Authorization: `Bearer ${token}` }),
      await sse(made.front.port, '/k8s/events', { Authorization: `Bearer ${other}` }),
    ];
    expect((await made.call('DELETE', '/k8s/tokens/ci')).body).toEqual({ removed: true, name: 'ci' });
    await stream.closed;
    expect((await made.call('GET', '/k8s/clusters', { token })).status).toBe(401);
    await made.call('POST', `/k8s/workloads/${made.hello}/sleep`);
    await kept.until(1);
    expect((await made.call('GET', '/k8s/grants')).body.map(({ token: name }: Json) => name)).toEqual([
      'other',
    ]);
    expect((await made.call('DELETE', '/k8s/tokens/ci')).body.code).toBe('unknown_token');
    // Another one of the same name has nothing of it.
    const again = await made.token('ci');
    expect((await made.call('GET', '/k8s/workloads', { token: again })).body.code).toBe('forbidden');
  });

  it('gets no stream if the lease is lost while the workloads that it may see are looked up', async () => {
    const { front, views, token: tokenOf } = await api();
    const token = await tokenOf('shop', { role: 'viewer', namespace: 'web', selector: 'app=shop' });
    const lookUp = views.workloadsInOrder.bind(views);
    const lookingUp = vi.spyOn(views, 'workloadsInOrder').mockImplementationOnce(() => {
      views.markUnavailable('standing_by', 'another Berth has the clusters', '', null);
      return lookUp();
    });
    const headers = { Authorization: `Bearer ${token}` };
    const { status, body } = await front.request('GET', '/k8s/events', { headers });
    expect([status, body.message]).toEqual([503, 'another Berth has the clusters']);
    expect(lookingUp).toHaveBeenCalledOnce();
  });

  it('whose grant is removed loses its rights, and its streams end', async () => {
    const made = await api();
    const token = await made.token('ci', { role: 'viewer', cluster_id: made.one }, { role: 'viewer' });
    const stream = await sse(made.front.port, '/k8s/events', { Authorization: `Bearer ${token}` });
    const { body: grants } = await made.call('GET', '/k8s/grants');
    const wide = grants.find(({ cluster_id: id }: Json) => id === null);
    expect((await made.call('DELETE', `/k8s/grants/${wide.id}`)).status).toBe(200);
    await stream.closed;
    expect(names((await made.call('GET', '/k8s/clusters', { token })).body)).toEqual(['one']);
    expect((await made.call('GET', `/k8s/clusters/${made.two}`, { token })).status).toBe(404);
  });

  it('never gets the response of another token for the same Idempotency-Key', async () => {
    const made = await api();
    const tokens = [await made.token('a', { role: 'sleeper' }), await made.token('b', { role: 'sleeper' })];
    const headers = { 'Idempotency-Key': 'same' };
    const ask = (token: string, id: string) =>
      made.call('POST', `/k8s/workloads/${id}/sleep`, { token, headers });
    const [first, again] = [await ask(tokens[0] ?? '', made.hello), await ask(tokens[0] ?? '', made.hello)];
    const other = await ask(tokens[1] ?? '', made.plain);
    expect([first.status, again.headers['idempotent-replayed'], other.status]).toEqual([200, 'true', 200]);
    expect(other.headers['idempotent-replayed']).toBeUndefined();
  });

  it.each([
    ['a name that is none', '/k8s/tokens', { name: 'No Name' }],
    ['a time that is past', '/k8s/tokens', { name: 'a', expires_at: '2020-01-01T00:00:00Z' }],
    ['a time that is none', '/k8s/tokens', { name: 'a', expires_at: 'soon' }],
    ['a role that is none', '/k8s/grants', { token: 'ci', role: 'king' }],
    ['a selector that is none', '/k8s/grants', { token: 'ci', role: 'viewer', selector: 'a=b=c,,' }],
    ['a namespace that is none', '/k8s/grants', { token: 'ci', role: 'viewer', namespace: 'A b' }],
  ])('is not created with %s', async (_, path, body) => {
    const made = await api();
    await made.token('ci');
    expect(await made.call('POST', path, { body })).toMatchObject({
      status: 400,
      body: { code: 'invalid_spec' },
    });
  });
});
