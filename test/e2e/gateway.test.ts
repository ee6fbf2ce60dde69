// docs/reference.md "Gateway" and "Ports and conflicts" on the real daemon.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { DESCRIPTORS } from '../../src/settings/limits.ts';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';
import { must } from '../kit/must.ts';
import { canBecomeOthers, listenAsOther, OTHER_USER } from '../kit/other_user.ts';
import { endThread, INSPECTABLE } from './inspector.ts';

/** Listens on one address and resolves with the port, or with the error code of the system. */
async function occupy(host: string, port: number): Promise<number | string> {
  const server = createServer((socket) => socket.destroy()).unref();
  server.listen({ host, port, ipv6Only: true });
  try {
    await once(server, 'listening');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
  return (server.address() as AddressInfo).port;
}

const gatewayPort = async (daemon: Daemon): Promise<number | null> =>
  (await daemon.request('GET', '/v1/version')).body.gatewayPort;

const doctor = ({ stateDir, configFile }: Daemon): string =>
  execFileSync(process.execPath, [BIN, 'doctor', '--state-dir', stateDir, '--config', configFile]).toString();

const threadsOf = ({ pid }: Daemon): string[] =>
  readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim());

it('the gateway serves services by name, from the first request, which may arrive in pieces', async () => {
  const daemon = await startDaemon();
  const port = must(await gatewayPort(daemon));
  const own = freePort();
  const cmd = 'exec python3 -m http.server $PORT --bind 127.0.0.1';
  const spec = { cmd, port: own, ready: `http://localhost:${own}/`, cwd: newFolder() };
  const { body } = await daemon.request('POST', '/v1/services', { name: 'my_web', ...spec });
  expect(body.gatewayUrl).toBe(`http://my-web.localhost:${port}/`);
  const threads = threadsOf(daemon).length;
  expect((await daemon.request('POST', '/v1/services/my_web/start')).status).toBe(200);
  expect(threadsOf(daemon)).toHaveLength(threads);
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (bytes) => {
    answer += bytes;
  });
  socket.write(`GET / HTTP/1.1\r\nHost: my-web.local`);
  const headers = { host: `my-web.localhost:${port}` };
  expect((await send(port, 'GET', '/', { headers })).status).toBe(200);
  socket.write(`host:${port}\r\nConnection: close\r\n\r\n`);
  await once(socket, 'close');
  expect(answer).toContain('200 OK');
  // Its namesake makes the name ambiguous; both go on with their ports.
  const other = await daemon.request('POST', '/v1/services', { name: 'my-web', ...spec, port: freePort() });
  expect(other.status).toBe(201);
  const both = async () => await send(port, 'GET', '/', { headers });
  await eventually(async () => (await both()).status === 409);
  expect((await both()).body.message).toBe('my-web.localhost is the host name of my-web and my_web');
  await daemon.request('DELETE', '/v1/services/my_web');
  await eventually(async () => (await both()).body.code === 'not_running');
});

it('the gateway does not serve the API under the names of services', async () => {
  const daemon = await startDaemon();
  const port = must(await gatewayPort(daemon));
  const spec = { name: 'api', cmd: 'exec sleep 600', port: daemon.port };
  await daemon.request('POST', '/v1/services', spec);
  const host = `api.localhost:${daemon.port}`;
  for (const headers of [{ host }, { origin: `http://api.localhost:${port}` }, { origin: `http://${host}` }])
    expect((await send(daemon.port, 'GET', '/v1/services', { headers })).status).toBe(403);
  // The daemon's own port behind a name is still the API with a foreign Host, and nobody's page there.
  for (const name of ['localhost', '127.0.0.1', 'evil.example'])
    expect((await send(port, 'GET', '/', { headers: { host: `${name}:${port}` } })).status).toBe(404);
  const headers = { host: `api.localhost:${port}` };
  expect((await send(port, 'GET', '/v1/services', { headers })).body.code).toBe('not_running');
  const page = { ...headers, origin: 'http://evil.example' };
  expect((await send(port, 'GET', '/', { headers: page })).body.code).toBe('forbidden_origin');
});

it('the gateway holds its port on both addresses from the start, and reports an unknown agent', async () => {
  const daemon = await startDaemon();
  const port = must(await gatewayPort(daemon));
  for (const host of ['127.0.0.1', '::1']) expect(await occupy(host, port)).toBe('EADDRINUSE');
  const headers = { host: `bot.agents.localhost:${port}` };
  expect(await send(port, 'GET', '/', { headers })).toMatchObject({
    status: 404,
    body: { code: 'unknown_agent' },
  });
  const page = await send(port, 'GET', '/', { headers: { ...headers, accept: 'text/html' } });
  expect(page.text).toContain('<h1>No agent is registered');
  const { body } = await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec sleep 600' });
  expect(body.gatewayUrl).toBe(`http://bot.agents.localhost:${port}/`);
  for (const host of ['127.0.0.1', '::1']) expect(await occupy(host, port)).toBe('EADDRINUSE');
  await eventually(async () => (await send(port, 'GET', '/', { headers })).body.code === 'bad_gateway');
  expect(doctor(daemon)).toContain(`agents are served by host name on port ${port}`);
});

it('the gateway wakes a sleeping agent, whose server gets the requests that arrived meanwhile', async () => {
  const daemon = await startDaemon();
  const port = must(await gatewayPort(daemon));
  const cwd = newFolder();
  writeFileSync(join(cwd, 'page'), 'served');
  // What Berth puts behind it for the conversation is a comment.
  const cmd = 'sleep 0.3; exec python3 -m http.server $PORT --bind 127.0.0.1 #';
  const spec = { name: 'bot', agent_type: 'claude', cmd, cwd };
  expect((await daemon.request('POST', '/v1/agents/spinup', spec)).status).toBe(201);
  await daemon.request('POST', '/v1/agents/bot/state', { state: 'idle' });
  await eventually(async () => (await daemon.request('POST', '/v1/agents/bot/sleep')).status === 200);
  const headers = { host: `bot.agents.localhost:${port}` };
  const answers = await Promise.all([1, 2].map(() => send(port, 'GET', '/page', { headers })));
  expect(answers.map(({ status, text }) => [status, text])).toEqual([1, 2].map(() => [200, 'served']));
  const { events } = (await daemon.request('GET', '/v1/events/history?names=bot&types=agent.woke')).body;
  expect(events).toHaveLength(1);

  // Requests wait as well for an agent that is woken otherwise.
  await daemon.request('POST', '/v1/agents/bot/state', { state: 'idle' });
  await eventually(async () => (await daemon.request('POST', '/v1/agents/bot/sleep')).status === 200);
  const woken = daemon.request('POST', '/v1/agents/bot/wake');
  const later: Promise<number>[] = [];
  const ask = async () => (await send(port, 'GET', '/page', { headers })).status;
  for (let count = 0; count < 20; count += 1) {
    later.push(ask());
    await pause(10);
  }
  expect((await woken).status).toBe(200);
  expect(new Set(await Promise.all(later))).toEqual(new Set([200]));
});

it('the gateway keeps its port while its thread is restarted, and serves on it again', async () => {
  const daemon = await startDaemon({ env: INSPECTABLE });
  const port = must(await gatewayPort(daemon));
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec sleep 600' });
  const headers = { host: `bot.agents.localhost:${port}` };
  const serves = async () => (await send(port, 'GET', '/', { headers })).body.code === 'bad_gateway';
  await eventually(serves);
  const got = new Set<number | string>();
  let isBack = false;
  const squatting = (async () => {
    for (; !isBack; await nextTurn())
      for (const host of ['127.0.0.1', '::1']) got.add(await occupy(host, port));
  })();
  await endThread(daemon, 'gateway');
  await eventually(() => /the thread gateway/.test(daemon.stderr()));
  await eventually(serves);
  isBack = true;
  await squatting;
  expect([...got]).toEqual(['EADDRINUSE']);
});

it.each(['127.0.0.1', '::1'])(
  'the gateway is off when another program has its port on %s, and there are no gateway URLs',
  async (host) => {
    const port = freePort();
    expect(await occupy(host, port)).toBe(port);
    const daemon = await startDaemon({ config: `[gateway]\nport = ${port}\n` });
    expect(await gatewayPort(daemon)).toBeNull();
    const shown = host === '::1' ? `[::1]:${port}` : `127.0.0.1:${port}`;
    const holder = `pid ${process.pid} \\(.+\\) listens on ${shown.replace(/[[\]]/g, '\\$&')}`;
    expect(daemon.stderr()).toMatch(new RegExp(`there is no gateway: port ${port} is taken: ${holder}`));
    const { body } = await daemon.request('POST', '/v1/agents/spinup', {
      name: 'bot',
      cmd: 'exec sleep 600',
    });
    expect(body.gatewayUrl).toBeNull();
    expect(await occupy(host === '::1' ? '127.0.0.1' : '::1', port)).toBe(port);
    expect(daemon.stderr().match(/there is no gateway/g)).toHaveLength(1);
    expect(doctor(daemon)).toContain('there is no gateway');
  },
);

it.runIf(canBecomeOthers)(
  'a service on whose port another user listens is not ready, and names the user',
  async () => {
    const daemon = await startDaemon();
    const [port, gate] = [freePort(), join(newFolder(), 'gate')];
    const cmd = `while [ ! -e ${gate} ]; do sleep 0.02; done; exec python3 -m http.server $PORT --bind 127.0.0.1`;
    const ready = `http://localhost:${port}/`;
    await daemon.request('POST', '/v1/services', { name: 'web', cmd, port, ready, cwd: newFolder() });
    const starting = daemon.request('POST', '/v1/services/web/start?timeout=60000');
    const explain = async () => (await daemon.request('GET', '/v1/services/web/explain')).body;
    await eventually(async () => (await explain()).lastCheck);
    const evil = await listenAsOther('127.0.0.1', port);
    await eventually(async () => (await explain()).lastCheck.status === 200);
    expect(await explain()).toMatchObject({ status: 'starting', portHolder: OTHER_USER });
    await daemon.request('POST', '/v1/services/web/stop');
    expect((await starting).body.code).toBe('start_failed');
    await evil.end();
    // Beside the service on the other family, it is an event.
    writeFileSync(gate, '');
    expect((await daemon.request('POST', '/v1/services/web/start')).status).toBe(200);
    const events = await daemon.events('?types=port.conflict');
    await listenAsOther('::1', port);
    const { data } = await events.until(({ event }) => event === 'port.conflict');
    expect(data).toEqual({ port, claimedBy: 'web', holder: OTHER_USER });
    events.close();
    expect(await explain()).toMatchObject({ status: 'running', portHolder: OTHER_USER });
    expect((await explain()).reason).toContain(`On its port ${port}, ${OTHER_USER} listens too`);
  },
);

const openFiles = ({ pid }: Daemon): number => readdirSync(`/proc/${pid}/fd`).length;

it('the API answers while the connections to a door use all descriptors that they may', async () => {
  const maxFiles = 256;
  const daemon = await startDaemon({ maxFiles });
  const port = freePort();
  const cmd = `exec node -e 'require("net").createServer(() => {}).listen(process.env.PORT, "127.0.0.1")'`;
  const spec = { name: 'web', port, cmd, ready: `tcp://localhost:${port}`, sleep: { afterMinutes: 60 } };
  await daemon.request('POST', '/v1/services', spec);
  expect((await daemon.request('POST', '/v1/services/web/start')).status).toBe(200);
  const clients: Socket[] = [];
  const isRefused = (): boolean => clients.some((client) => client.closed);
  while (!isRefused()) {
    const client = connect(port, '127.0.0.1', () => client.write('x')).on('error', () => undefined);
    clients.push(client);
    await nextTurn();
  }
  await eventually(() => openFiles(daemon) >= 0.6 * maxFiles);
  expect((await daemon.request('GET', '/v1/services/web')).status).toBe(200);
  expect((await daemon.request('POST', '/v1/services/web/stop')).status).toBe(200);
  for (const client of clients) client.destroy();
});

it('the gateway starts and serves after more connections than there are descriptors', async () => {
  const maxFiles = 256;
  const daemon = await startDaemon({ maxFiles });
  const port = must(await gatewayPort(daemon));
  const clients = Array.from({ length: 2 * maxFiles }, () => {
    const client = connect(port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\n'));
    return client.on('error', () => undefined);
  });
  await eventually(() => clients.every((client) => client.closed || !client.connecting));
  const left = (): number => clients.filter((client) => !client.closed).length;
  // Those above the share are closed; the share itself is some less than what the daemon has open without.
  await eventually(() => left() > 0 && left() <= DESCRIPTORS.acceptForwarded * maxFiles);
  // Two threads that look at the same moment may exceed a share by one each, but the API's is far from it.
  expect(openFiles(daemon)).toBeLessThan(maxFiles * DESCRIPTORS.acceptRequests);
  for (const client of clients) client.destroy();
  const status = async () =>
    (await send(port, 'GET', '/', { headers: { host: `no.localhost:${port}` } })).status;
  await eventually(async () => (await status().catch(() => 0)) === 404);
  expect((await daemon.request('GET', '/readyz')).status).toBe(200);
});
