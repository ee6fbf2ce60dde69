// The requests of the typed client and how it reads responses, over both transports.
import { describe, expect, it } from 'vitest';
import { createClient } from '../../src/client/create_client.ts';
import { isBerthError } from '../../src/client/errors.ts';
import { createFetchTransport } from '../../src/client/fetch_transport.ts';
import { nodeTransport } from '../../src/client/node_transport.ts';
import { freePort } from '../kit/free_ports.ts';
import { json, leastAnswer, serve } from '../kit/recording_server.ts';
import { bearerOf } from '../kit/server_proof.ts';

const failure = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isBerthError(error)) throw new Error(`expected a BerthError, got ${String(error)}`);
  return error;
};

describe.each([
  ['node:http', nodeTransport],
  ['fetch', createFetchTransport()],
])('the client over %s', (_name, transport) => {
  it('sends the token to nobody who cannot prove that he knows it, however the URL is written', async () => {
    const fake = await serve((asked, response) => json(response, 200, leastAnswer(asked)), {
      daemon: 'other',
    });
    for (const url of [fake.url, fake.url.replace('http', 'HTTP'), `${fake.url.replace('h', 'H')}//`]) {
      const berth = createClient(transport, { url, token: 'secret', cloudToken: 'secret' });
      expect(await failure(berth.version())).toMatchObject({ code: 'unproven' });
    }
    expect(fake.asked).toEqual([]);
  });

  it('sends the method, path, query, token and body of every endpoint', async () => {
    const fake = await serve((asked, response) => json(response, 200, leastAnswer(asked)), {
      daemon: 'secret',
      cloud: 'cloudy',
    });
    const berth = createClient(transport, { url: `${fake.url}/`, token: 'secret', cloudToken: 'cloudy' });
    await berth.version();
    await berth.ready();
    await berth.openapi();
    await berth.services();
    await berth.service('web');
    await berth.register({ name: 'web', port: 3000, cmd: 'run', env: { A: 'ü' } });
    await berth.start('web', { timeout: 5000, wait: false });
    await berth.stop('web', { grace: 0 });
    await berth.restart('web', { timeout: 1, grace: 2 });
    await berth.remove('web');
    await berth.explain('web');
    await berth.resolve('web');
    await berth.logs('web', { lines: 10, stream: 'stderr', timestamps: true, raw: true });
    await berth.groups();
    await berth.startGroup('All', { timeout: 7 });
    await berth.stopGroup('All', { grace: 8 });
    await berth.history({ types: ['service.crashed', 'port.conflict'], names: ['web'], since: 4, limit: 5 });
    await berth.agents();
    await berth.spinup({ name: 'bot', agent_type: 'ollama' });
    await berth.removeAgent('bot');
    await berth.agentLogs('bot', { lines: 3 });
    await berth.cloud.clusters();
    await berth.cloud.cluster('c');
    await berth.cloud.addCluster({ name: 'dev' });
    await berth.cloud.changeCluster('c', { name: 'prod' });
    await berth.cloud.removeCluster('c');
    await berth.cloud.sync('c');
    await berth.cloud.workloads({ cluster: 'c' });
    await berth.cloud.sleep('w', { hold: 5_000 });
    await berth.cloud.wake('w', { wait: true, timeout: 9 });
    await berth.cloud.autoSleep('w');
    await berth.cloud.setAutoSleep('w', { auto_sleep_enabled: true });
    await berth.cloud.tethers();
    await berth.cloud.tether('w', { container_port: 80 });
    await berth.cloud.activate('t');
    await berth.cloud.deactivate('t');
    await berth.cloud.removeTether('t');
    expect(fake.asked.map(({ method, path, body }) => `${method} ${path} ${body}`.trim())).toEqual([
      'GET /v1/version',
      'GET /readyz',
      'GET /openapi.json',
      'GET /v1/services',
      'GET /v1/services/web',
      'POST /v1/services {"name":"web","port":3000,"cmd":"run","env":{"A":"ü"}}',
      'POST /v1/services/web/start?timeout=5000&wait=false',
      'POST /v1/services/web/stop?grace=0',
      'POST /v1/services/web/restart?timeout=1&grace=2',
      'DELETE /v1/services/web',
      'GET /v1/services/web/explain',
      'GET /v1/resolve/web',
      'GET /v1/services/web/logs?lines=10&stream=stderr&timestamps=true&raw=true',
      'GET /v1/groups',
      'POST /v1/groups/All/start?timeout=7',
      'POST /v1/groups/All/stop?grace=8',
      'GET /v1/events/history?types=service.crashed%2Cport.conflict&names=web&since=4&limit=5',
      'GET /v1/agents',
      'POST /v1/agents/spinup {"name":"bot","agent_type":"ollama"}',
      'DELETE /v1/agents/bot',
      'GET /v1/agents/bot/logs?lines=3',
      'GET /k8s/clusters',
      'GET /k8s/clusters/c',
      'POST /k8s/clusters {"name":"dev"}',
      'PATCH /k8s/clusters/c {"name":"prod"}',
      'DELETE /k8s/clusters/c',
      'POST /k8s/clusters/c/sync',
      'GET /k8s/workloads?cluster_id=c',
      'POST /k8s/workloads/w/sleep?hold=5000',
      'POST /k8s/workloads/w/wake?wait=true&timeout=9',
      'GET /k8s/workloads/w/auto-sleep',
      'PATCH /k8s/workloads/w/auto-sleep {"auto_sleep_enabled":true}',
      'GET /k8s/tethers',
      'POST /k8s/workloads/w/tether {"container_port":80}',
      'POST /k8s/tethers/t/activate',
      'POST /k8s/tethers/t/deactivate',
      'DELETE /k8s/tethers/t',
    ]);
    for (const { path, body, headers } of fake.asked) {
      const isPublic = path === '/readyz' || path === '/openapi.json';
      const token = path.startsWith('/k8s') ? 'cloudy' : 'secret';
      expect(headers.authorization).toBe(isPublic ? undefined : `Bearer ${bearerOf(token)}`);
      expect(headers['content-type']).toBe(body ? 'application/json' : undefined);
    }
  });

  it('sends wait=false, and takes the answer to a call that goes on', async () => {
    const state = { name: 'web', status: 'stopping', pid: null };
    const fake = await serve((asked, response) =>
      json(response, 202, asked.path.includes('/web/stop') ? state : leastAnswer(asked)),
    );
    const berth = createClient(transport, { url: fake.url });
    const now = { wait: false } as const;
    expect(await berth.stop('web', now)).toEqual(state);
    for (const verb of ['restart', 'sleep', 'wake', 'remove'] as const) await berth[verb]('web', now);
    await berth.startGroup('All', now);
    await berth.restartGroup('All', now);
    await berth.sleepGroup('All', now);
    await berth.wakeGroup('All', now);
    await berth.sleepAgent('bot', now);
    await berth.wakeAgent('bot', now);
    await berth.removeAgent('bot', now);
    expect(fake.asked.map(({ path }) => path.split('?')[1])).toEqual(Array(12).fill('wait=false'));
  });

  it('sends no token if it has none, and encodes names in paths', async () => {
    const fake = await serve((asked, response) => json(response, 200, leastAnswer(asked)));
    const berth = createClient(transport, { url: fake.url });
    await berth.service('a/b?c%ü');
    expect(fake.asked[0]?.path).toBe('/v1/services/a%2Fb%3Fc%25%C3%BC');
    expect(fake.asked[0]?.headers.authorization).toBeUndefined();
  });

  it('sends no request for the names . and .., which a URL resolves', async () => {
    const fake = await serve((asked, response) => json(response, 200, leastAnswer(asked)));
    const berth = createClient(transport, { url: fake.url });
    const onOutput = (): void => {};
    for (const name of ['.', '..'])
      for (const refused of [
        berth.cloud.sleep(name),
        berth.logs(name),
        berth.remove(name),
        berth.followLogs(name)[Symbol.asyncIterator]().next(),
        berth.attach(name, { onOutput }),
      ])
        expect(await failure(refused)).toMatchObject({
          code: 'invalid_spec',
          message: `"${name}" cannot be a name`,
        });
    expect(fake.asked).toEqual([]);
    await berth.service('...');
    await berth.service('%2e');
    expect(fake.asked.map(({ path }) => path)).toEqual(['/v1/services/...', '/v1/services/%252e']);
  });

  it('returns the list without the object around it', async () => {
    const service = {
      name: 'web',
      port: 1,
      group: null,
      status: 'stopped',
      url: 'http://localhost:1',
      restarts: 0,
    };
    const fake = await serve((_asked, response) => json(response, 200, { services: [service] }));
    expect(await createClient(transport, { url: fake.url }).services()).toEqual([service]);
  });

  it("throws the daemon's error with all its fields", async () => {
    const body = {
      code: 'invalid_spec',
      message: 'port must be an integer',
      hint: 'Correct it.',
      details: [{ path: 'port', message: 'must be an integer' }],
    };
    const fake = await serve((_asked, response) => json(response, 400, body));
    const error = await failure(createClient(transport, { url: fake.url }).services());
    expect({ ...error, message: error.message }).toMatchObject({ ...body, status: 400, retryAfterMs: null });
    expect(JSON.parse(JSON.stringify(error))).toEqual(body);
  });

  it('gives Retry-After of a busy daemon in the error', async () => {
    const busy = { code: 'daemon_busy', message: 'busy', hint: 'again' };
    const fake = await serve((_asked, response) => json(response, 503, busy, { 'Retry-After': '2' }));
    const error = await failure(createClient(transport, { url: fake.url }).start('web'));
    expect([error.code, error.retryAfterMs]).toEqual(['daemon_busy', 2000]);
  });

  it('retries while the daemon is busy, up to the given time', async () => {
    const busy = { code: 'daemon_busy', message: 'busy', hint: 'again' };
    const fake = await serve((_asked, response, count) =>
      count < 3 ? json(response, 503, busy, { 'Retry-After': '0' }) : json(response, 200, { groups: [] }),
    );
    expect(await createClient(transport, { url: fake.url, busyRetryMs: 5_000 }).groups()).toEqual([]);
    expect(fake.asked).toHaveLength(3);
    const slow = await serve((_asked, response) => json(response, 503, busy, { 'Retry-After': '60' }));
    const impatient = createClient(transport, { url: slow.url, busyRetryMs: 5_000 });
    expect(await failure(impatient.groups())).toMatchObject({ code: 'daemon_busy', retryAfterMs: 60_000 });
    expect(slow.asked).toHaveLength(1);
  });

  it('throws bad_answer for a response that no daemon sends', async () => {
    const fake = await serve((asked, response) => {
      response.statusCode = asked.path === '/v1/version' ? 200 : 502;
      response.end('<html>');
    });
    const berth = createClient(transport, { url: fake.url });
    expect(await failure(berth.version())).toMatchObject({ code: 'bad_answer', status: 200 });
    expect(await failure(berth.services())).toMatchObject({ code: 'bad_answer', status: 502 });
  });

  it.each([
    ['an empty object', {}],
    ['a list', []],
    ['a field of its own', { ok: true }],
    ['a text', 'hello'],
  ])('throws bad_answer for %s from another program', async (_kind, body) => {
    const fake = await serve((_asked, response) => json(response, 200, body));
    const berth = createClient(transport, { url: fake.url });
    const calls = [berth.start('web'), berth.services(), berth.cloud.sleep('w')];
    for (const call of calls) expect((await failure(call)).code).toBe('bad_answer');
  });

  it('throws unreachable when nothing listens, and finds the address again at every call', async () => {
    const fake = await serve((_asked, response) => json(response, 200, { groups: [] }));
    const dead = `http://127.0.0.1:${freePort()}`;
    let url = dead;
    const berth = createClient(transport, { url: () => url });
    const error = await failure(berth.groups());
    expect([error.code, error.status]).toEqual(['unreachable', 0]);
    expect(error.message).toContain(new URL(dead).host);
    url = fake.url;
    expect(await berth.groups()).toEqual([]);
  });

  it('throws deadline when a daemon does not respond, except for calls that wait', async () => {
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const fake = await serve((asked, response) => {
      void released.then(() => json(response, 200, { name: asked.path, status: 'running', pid: 7 }));
    });
    const berth = createClient(transport, { url: fake.url, deadlineMs: 40 });
    const waiting = berth.start('slow');
    expect(await failure(berth.version())).toMatchObject({ code: 'deadline', status: 0 });
    release();
    expect(await waiting).toMatchObject({ name: '/v1/services/slow/start' });
  });

  it('ends a call when its signal aborts, with the reason of the signal', async () => {
    const fake = await serve(() => {});
    const leave = new AbortController();
    const call = createClient(transport, { url: fake.url }).start('web', { signal: leave.signal });
    const reason = new Error('the user left');
    leave.abort(reason);
    await expect(call).rejects.toBe(reason);
  });
});
