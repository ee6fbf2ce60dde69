// Requests that another Berth answers, over real sockets: docs/reference.md "Remote tethers".
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { changeLogin, removeLogin, writeLogin } from '../../../src/client/login_file.ts';
import type { RemoteBerth } from '../../../src/client/remote_berth.ts';
import { remoteApi } from '../../../src/daemon/remote_berth.ts';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import type { WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import type { CloudEventsProtocol } from '../../../src/protocol/cloud_events.ts';
import type { CloudOperationsProtocol } from '../../../src/protocol/cloud_operations.ts';
import type { RelayProtocol } from '../../../src/protocol/relay.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { statePaths } from '../../../src/settings/state_paths.ts';
import { afterThisTest, tempDir } from '../../kit/actors.ts';
import { freePort } from '../../kit/free_ports.ts';
import { cloudFront, sse, startFront } from '../kit.ts';

const HEADERS = { Authorization: 'Bearer here' };

/** A Berth that shows what the one at `url` has. */
const near = (url: string, token: RemoteBerth['token'] = 'there') =>
  startFront({ cloud: cloudFront({ token: 'here', remote: remoteApi({ url, token }) }) });

/** A Berth with a cluster, and one that shows it. */
async function both(token?: RemoteBerth['token']) {
  const views = new CloudViews();
  const there = await startFront({ cloud: cloudFront({ token: 'there', views, hasRelay: true }) });
  const here = await near(`http://127.0.0.1:${there.port}`, token);
  return { views, there, here };
}

describe('the Berth of cloud.remote', () => {
  it('answers requests for workloads, and the local one those for tethers', async () => {
    const { views, there, here } = await both();
    const begun: unknown[] = [];
    await there.stand<CloudOperationsProtocol>('operations', {
      begin: ({ request }) => {
        begun.push(request.key);
        return { id: 'O1', run: true, result: null };
      },
      settle: ({ result }) => ({ result }),
    });
    await there.stand<WorkloadsProtocol>('workloads', { wake: () => ({ replicas: 3 }) });
    views.setTethers([], true);
    expect(
      await here.request('GET', '/k8s/workloads?namespace=a&limit=1', { headers: HEADERS }),
    ).toMatchObject({
      status: 200,
      body: [],
    });
    const woken = await here.request('POST', '/k8s/workloads/W1/wake', {
      headers: { ...HEADERS, 'Idempotency-Key': 'k1' },
    });
    expect(woken).toMatchObject({ status: 200, body: { replicas: 3 } });
    expect([woken.headers['berth-operation'], begun]).toEqual(['O1', ['k1']]);
    const chunked = { ...HEADERS, 'Transfer-Encoding': 'chunked' };
    const empty = await here.request('POST', '/k8s/workloads/W1/wake', { headers: chunked });
    expect(empty, 'chunks without a byte').toMatchObject({ status: 200, body: { replicas: 3 } });
    const unknown = await here.request('GET', '/k8s/workloads/W9', { headers: HEADERS });
    expect(unknown).toMatchObject({ status: 404, body: { code: 'unknown_workload' } });
    expect(await here.request('GET', '/k8s/tethers', { headers: HEADERS })).toMatchObject({ body: [] });
    expect([...here.defects, ...there.defects]).toEqual([]);
  });

  it('sends its events', async () => {
    const { there, here } = await both();
    await there.stand<CloudEventsProtocol>('cloudevents', {
      subscribe: () => ({ kept: [], lastId: 0, completeFrom: 1 }),
    });
    const stream = await sse(here.port, '/k8s/events', HEADERS);
    expect(stream.status).toBe(200);
    there.front.shutdown();
    await there.front.close();
    await stream.closed;
  });

  it('sends no more events once the login has ended', async () => {
    const stateDir = tempDir();
    const { views, there, here } = await both({ stateDir });
    const url = `http://127.0.0.1:${there.port}`;
    await changeLogin(stateDir, async () => writeLogin(stateDir, { url, token: 'there', source: null }));
    await there.stand<CloudEventsProtocol>('cloudevents', {
      subscribe: () => ({ kept: [], lastId: 0, completeFrom: 1 }),
    });
    const tell = (id: number): void => views.onEvents([{ id, type: 'cluster.reachable', data: '{}' }]);
    const stream = await sse(here.port, '/k8s/events', HEADERS);
    tell(1);
    await stream.until(1);
    removeLogin(stateDir);
    tell(2);
    await stream.closed;
    expect(stream.frames.flatMap(({ id }) => id ?? [])).toEqual([1]);
    const { status, body } = await here.request('GET', '/k8s/clusters', { headers: HEADERS });
    expect([status, body.code]).toEqual([502, 'remote_denied']);
  });

  it('gets the token that is in the file at the time', async () => {
    const stateDir = tempDir();
    const path = statePaths(stateDir).remoteToken;
    const { views, there, here } = await both({ stateDir });
    const clusters = async () => {
      const { status, body } = await here.request('GET', '/k8s/clusters', { headers: HEADERS });
      return [status, body.code, body.message];
    };
    writeFileSync(path, 'revoked\n', { mode: 0o600 });
    expect(await clusters()).toEqual([
      502,
      'remote_denied',
      expect.stringContaining('does not know the token'),
    ]);
    writeFileSync(path, 'there\n');
    expect((await clusters())[0]).toBe(200);
    await there.stand<CloudEventsProtocol>('cloudevents', {
      subscribe: () => ({ kept: [], lastId: 0, completeFrom: 1 }),
    });
    const stream = await sse(here.port, '/k8s/events', HEADERS);
    chmodSync(path, 0o644);
    expect(await clusters()).toEqual([502, 'remote_denied', expect.stringContaining('others can read it')]);
    chmodSync(path, 0o600);
    writeFileSync(path, 'other');
    views.onEvents([{ id: 1, type: 'cluster.reachable', data: '{}' }]);
    await stream.closed;
    rmSync(path);
    expect(await clusters()).toEqual([502, 'remote_denied', expect.stringContaining('there is no login')]);
  });

  it.each([
    ['a wrong token', 'other'],
    ['the token of this Berth', 'here'],
  ])('gets no request with %s', async (_, token) => {
    const { here } = await both(token);
    const { status, body } = await here.request('GET', '/k8s/clusters', { headers: HEADERS });
    expect([status, body.code]).toEqual([502, 'remote_denied']);
    const direct = await here.request('GET', '/k8s/clusters', { headers: { Authorization: 'Bearer there' } });
    expect(direct.status, 'its own callers use its own token').toBe(401);
  });

  it('has a time limit for each response, also of waiting requests', async () => {
    const { here } = await both();
    const limits = vi.spyOn(systemClock, 'after');
    afterThisTest(() => limits.mockRestore());
    for (const [method, path] of [
      ['GET', '/k8s/workloads/W1'],
      ['POST', '/k8s/workloads/W1/sleep'],
      ['POST', '/k8s/workloads/W1/wake?wait=true&timeout=600000'],
      ['POST', '/k8s/workloads/sleep'],
    ] as const)
      await here.request(method, path, { headers: HEADERS });
    const deadlines = limits.mock.calls.map(([ms]) => ms);
    expect(deadlines).toEqual(expect.arrayContaining([10_000, 250_000, 790_000, 1_930_000]));
  });

  it('may be unreachable', async () => {
    const here = await near(`http://127.0.0.1:${freePort()}`);
    const { status, body } = await here.request('GET', '/k8s/clusters', { headers: HEADERS });
    expect([status, body.code]).toEqual([502, 'remote_unreachable']);
    const tethers = await here.request('GET', '/k8s/tethers', { headers: HEADERS });
    expect(tethers).toMatchObject({ status: 200, body: [] });
  });

  it('may be replaced by the page of another server', async () => {
    const server = createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Log in</h1>'),
    );
    afterThisTest(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const here = await near(`http://127.0.0.1:${port}`);
    const { status, body } = await here.request('GET', '/k8s/clusters', { headers: HEADERS });
    expect([status, String(body.code).startsWith('remote_')]).toEqual([502, true]);
  });
});

describe('POST /k8s/relay', () => {
  it('returns a ticket, or an error if there is no relay', async () => {
    const { there, here } = await both();
    const until = Date.UTC(2030, 0, 1);
    await there.stand<RelayProtocol>('relay', { admit: () => ({ ticket: 'T', until, port: 4 }) });
    const given = await there.request('POST', '/k8s/relay', { headers: { Authorization: 'Bearer there' } });
    expect([given.status, given.body]).toEqual([
      201,
      { ticket: 'T', expires_at: '2030-01-01T00:00:00.000Z', ends_in: null, port: 4 },
    ]);
    expect((await there.request('POST', '/k8s/relay')).status).toBe(401);
    const none = await here.request('POST', '/k8s/relay', { headers: HEADERS });
    expect(none).toMatchObject({ status: 409, body: { code: 'relay_off' } });
  });
});
