// docs/reference.md "Sleep of services" on the real daemon: doors, sleep and wake, with real clients.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual, promisify } from 'node:util';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Daemon, eventually, hostPid, isAlive, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';
import { must } from '../kit/must.ts';

/** Cycles of sleep and wake; the long run has 1,000. */
const CYCLES = Number(process.env['BERTH_SLEEP_CYCLES'] ?? 12);

/**
 * A server of HTTP, server-sent events and WebSockets that speaks plain TCP with everybody else: `echo` in
 * front of what was sent, once the client has half-closed. With UPSTREAM it passes plain TCP on.
 */
const SERVER = `
import { createServer, connect } from 'node:net';
import http from 'node:http';
import { createHash } from 'node:crypto';
const web = http.createServer((request, response) => {
  if (request.url !== '/events') return response.end('pid ' + process.pid);
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.write('data: 1\\n\\n');
  setTimeout(() => response.end('data: 2\\n\\n'), 50);
});
web.on('upgrade', (request, socket) => {
  const key = createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11');
  socket.write('HTTP/1.1 101 S\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + key.digest('base64') + '\\r\\n\\r\\n');
  socket.write(Buffer.concat([Buffer.from([0x81, 5]), Buffer.from('hello')]));
});
const upstream = Number(process.env.UPSTREAM);
if (process.env.SLOW) process.on('SIGTERM', () => setTimeout(() => process.exit(0), 300));
createServer({ allowHalfOpen: true }, (socket) => {
  socket.on('error', () => {});
  socket.once('data', (first) => {
    socket.unshift(first);
    if (/^(GET|HEAD) /.test(first.toString('latin1'))) return web.emit('connection', socket);
    if (upstream) {
      const next = connect({ port: upstream, host: '127.0.0.1', allowHalfOpen: true });
      next.on('error', () => socket.destroy());
      socket.pipe(next).pipe(socket);
      return;
    }
    const all = [];
    socket.on('data', (bytes) => all.push(bytes));
    socket.on('end', () => socket.end(Buffer.concat([Buffer.from('echo '), ...all])));
  });
}).listen(process.env.PORT, '127.0.0.1');
`;

interface Spec {
  port: number;
  env?: Record<string, string>;
  dependsOn?: string[];
  group?: string;
  sleep?: { afterMinutes: number } | null;
}

/** Registers a service with the server above; it sleeps only when asked, unless `spec` says otherwise. */
async function register(daemon: Daemon, name: string, spec: Spec): Promise<void> {
  const folder = newFolder();
  writeFileSync(join(folder, 'server.mjs'), SERVER);
  const ready = `tcp://localhost:${spec.port}`;
  const body = {
    name,
    cmd: 'exec node server.mjs',
    cwd: folder,
    ready,
    sleep: { afterMinutes: 60 },
    ...spec,
  };
  expect((await daemon.request('POST', '/v1/services', body)).status).toBe(201);
}

const post = async (daemon: Daemon, path: string) => {
  const answer = await daemon.request('POST', path);
  expect(answer.status, `${path}: ${answer.text}`).toBe(200);
  return answer.body;
};
const service = async (daemon: Daemon, name: string) =>
  (await daemon.request('GET', `/v1/services/${name}`)).body;
const status = async (daemon: Daemon, name: string): Promise<string> => (await service(daemon, name)).status;

/** The name and the type of every event of services, without registrations. */
const history = async (daemon: Daemon): Promise<string[]> =>
  (await daemon.request('GET', '/v1/events/history?limit=1000')).body.events.map(
    ({ type, data }: { type: string; data: { name: string } }) => `${data.name} ${type.split('.')[1]}`,
  );

/** Sends `chunks`, then half-closes; resolves with the whole answer, rejects when the connection is reset. */
function exchange(port: number, chunks: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let answer = '';
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1');
    });
    socket.on('error', reject);
    socket.on('end', () => {
      socket.end();
      resolve(answer);
    });
    for (const chunk of chunks) socket.write(chunk);
    socket.end();
  });
}

const refused = async (port: number): Promise<boolean> =>
  exchange(port, ['x']).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
  );

it('a service that was started without `sleep` goes to sleep on request once it has it', async () => {
  const daemon = await startDaemon();
  const port = freePort();
  await register(daemon, 'web', { port, sleep: null });
  await post(daemon, '/v1/services/web/start');
  const spec = await service(daemon, 'web');
  const { cmd, cwd } = spec;
  const again = { name: 'web', port, cmd, cwd, sleep: { afterMinutes: 60 } };
  expect((await daemon.request('POST', '/v1/services', again)).body.pid).toBe(spec.pid);
  expect(await post(daemon, '/v1/services/web/sleep')).toEqual({ name: 'web', status: 'sleeping' });
  expect([isAlive(spec.pid), await status(daemon, 'web')]).toEqual([false, 'sleeping']);
  expect(await exchange(port, ['a'])).toBe('echo a');
  await eventually(async () => (await history(daemon)).at(-1) === 'web woke');
  expect((await history(daemon)).filter((line) => line !== 'web registered')).toEqual([
    ...['web started', 'web slept', 'web started', 'web woke'],
  ]);
});

it('a service sleeps without traffic, and is woken by a connection, its host name and the API', async () => {
  const daemon = await startDaemon();
  const port = freePort();
  await register(daemon, 'web', { port, sleep: { afterMinutes: 1 / 60 } });
  expect(await refused(port)).toBe(true);
  await post(daemon, '/v1/services/web/start');
  const { pid, innerPort, url } = await service(daemon, 'web');
  expect(url).toBe(`http://localhost:${port}`);
  expect(innerPort).not.toBe(port);
  expect(await exchange(port, ['a', 'b'])).toBe('echo ab');
  // A pooled connection that moves nothing keeps nothing awake.
  const pooled = connect(port, '127.0.0.1');
  await once(pooled, 'connect');
  const ended = once(pooled, 'close');
  pooled.resume();
  await eventually(async () => (await status(daemon, 'web')) === 'sleeping');
  expect(isAlive(pid)).toBe(false);
  await ended;
  expect(await exchange(port, ['wake'])).toBe('echo wake');
  expect(await status(daemon, 'web')).toBe('running');
  // The event comes after the connection that it tells of.
  await eventually(async () => (await history(daemon)).at(-1) === 'web woke');
  expect(await history(daemon)).toEqual(
    ['registered', 'started', 'slept', 'started', 'woke'].map((type) => `web ${type}`),
  );
  await post(daemon, '/v1/services/web/sleep');
  const gateway = must((await daemon.request('GET', '/v1/version')).body.gatewayPort);
  const headers = { host: `web.localhost:${gateway}` };
  expect((await send(gateway, 'GET', '/', { headers })).text).toMatch(/^pid /);
  await post(daemon, '/v1/services/web/sleep');
  expect(await post(daemon, '/v1/services/web/wake')).toMatchObject({ name: 'web', status: 'running' });
  await post(daemon, '/v1/services/web/sleep');
  expect((await daemon.request('GET', '/v1/resolve/web')).body.status).toBe('sleeping');
  // The door has the port, and is not taken for somebody else.
  expect((await daemon.request('GET', '/v1/services/web/explain')).body).toMatchObject({
    status: 'sleeping',
    portHolder: null,
    next: `The next connection to port ${port} starts it.`,
  });
  const resolved = await daemon.request('GET', '/v1/resolve/web?wake=true');
  expect(resolved.body).toEqual({ name: 'web', url, port, status: 'running' });
  // A stop closes the door; so does a removal, of one that sleeps too.
  await post(daemon, '/v1/services/web/stop');
  expect(await refused(port)).toBe(true);
  expect(await status(daemon, 'web')).toBe('stopped');
  await post(daemon, '/v1/services/web/sleep');
  expect(await status(daemon, 'web')).toBe('sleeping');
  await daemon.request('DELETE', '/v1/services/web');
  await eventually(() => refused(port));
});

it('a service stays awake while bytes move, and when it was started with --awake', async () => {
  const daemon = await startDaemon();
  const [port, other] = [freePort(), freePort()];
  const sleep = { afterMinutes: 1 / 60 };
  await register(daemon, 'busy', { port, sleep });
  await register(daemon, 'kept', { port: other, sleep });
  await post(daemon, '/v1/services/kept/start?awake=true');
  await post(daemon, '/v1/services/busy/start');
  const client = connect(port, '127.0.0.1');
  const { pid } = await service(daemon, 'busy');
  const began = performance.now();
  while (performance.now() - began < 2_500) {
    client.write('.');
    await pause(100);
  }
  expect((await service(daemon, 'busy')).pid).toBe(pid);
  client.destroy();
  await eventually(async () => (await status(daemon, 'busy')) === 'sleeping');
  expect(await status(daemon, 'kept')).toBe('running');
  await post(daemon, '/v1/services/kept/sleep');
  await post(daemon, '/v1/services/kept/wake');
  await eventually(async () => (await status(daemon, 'kept')) === 'sleeping');
});

it('a service that was started with --awake stays so under the next daemon, over restarts and crashes', async () => {
  const first = await startDaemon();
  const sleep = { afterMinutes: 1 / 60 };
  for (const name of ['kept', 'other']) await register(first, name, { port: freePort(), sleep });
  await post(first, '/v1/services/kept/start?awake=true');
  /** Time enough passes for a service to sleep: one that is started now does. */
  const idle = async (daemon: Daemon): Promise<void> => {
    await post(daemon, '/v1/services/other/start');
    await eventually(async () => (await status(daemon, 'other')) === 'sleeping');
  };
  const next = async (daemon: Daemon): Promise<Daemon> => {
    daemon.signal('SIGKILL');
    await daemon.exited;
    return startDaemon({ stateDir: first.stateDir });
  };
  const second = await next(first);
  await post(second, '/v1/services/kept/restart');
  await idle(second);
  expect(await status(second, 'kept')).toBe('running');
  const { pid } = await service(second, 'kept');
  const third = await next(second);
  process.kill(pid, 'SIGKILL');
  await eventually(async () => !isAlive(pid));
  await post(third, '/v1/services/kept/restart');
  await idle(third);
  expect(await status(third, 'kept')).toBe('running');
  await post(third, '/v1/services/kept/stop');
  await post(third, '/v1/services/kept/start');
  await eventually(async () => (await status(third, 'kept')) === 'sleeping');
});

it('50 connections wake a stack of three once, and each gets its bytes in order', async () => {
  const daemon = await startDaemon();
  const [web, api, db] = [freePort(), freePort(), freePort()];
  const group = 'shop';
  await register(daemon, 'web', { port: web, group, dependsOn: ['api'], env: { UPSTREAM: String(api) } });
  await register(daemon, 'api', { port: api, group, dependsOn: ['db'], env: { UPSTREAM: String(db) } });
  await register(daemon, 'db', { port: db, group });
  await post(daemon, '/v1/groups/shop/start');
  const slept = await post(daemon, '/v1/groups/shop/sleep');
  expect(slept.services.map(({ status: one }: { status: string }) => one)).toEqual(Array(3).fill('sleeping'));
  const before = await history(daemon);
  expect(before.slice(-3)).toEqual(['web slept', 'api slept', 'db slept']);
  const texts = Array.from({ length: 50 }, (_, index) =>
    Array.from({ length: 40 }, (_, part) => `${index}:${part};`.padEnd(200 * (part % 7), '.')),
  );
  const answers = await Promise.all(texts.map((chunks) => exchange(web, chunks)));
  expect(answers).toEqual(texts.map((chunks) => `echo ${chunks.join('')}`));
  const after = (await history(daemon)).slice(before.length);
  expect(after.filter((one) => one.endsWith('started'))).toEqual([
    'db started',
    'api started',
    'web started',
  ]);
  expect(after.filter((one) => one.endsWith('woke')).sort()).toEqual(['api woke', 'db woke', 'web woke']);
});

it('the door forwards a WebSocket and server-sent events, which wake the service', async () => {
  const daemon = await startDaemon();
  const port = freePort();
  await register(daemon, 'web', { port });
  await post(daemon, '/v1/services/web/sleep');
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  expect(String((await once(socket, 'message'))[0])).toBe('hello');
  socket.terminate();
  await post(daemon, '/v1/services/web/sleep');
  expect((await send(port, 'GET', '/events', {})).text).toBe('data: 1\n\ndata: 2\n\n');
});

it('the door is open again after kill -9 of the daemon and of the host, asleep or awake', async () => {
  const stateDir = join(newFolder(), 'state');
  const first = await startDaemon({ stateDir });
  const [sleeping, awake] = [freePort(), freePort()];
  await register(first, 'sleeping', { port: sleeping });
  await register(first, 'awake', { port: awake });
  await post(first, '/v1/services/sleeping/start');
  await post(first, '/v1/services/sleeping/sleep');
  await post(first, '/v1/services/awake/start');
  const { pid } = await service(first, 'awake');
  first.signal('SIGKILL');
  await first.exited;
  const second = await startDaemon({ stateDir });
  expect(await status(second, 'sleeping')).toBe('sleeping');
  await eventually(async () => !(await refused(awake)));
  expect((await service(second, 'awake')).pid).toBe(pid);
  expect(await exchange(awake, ['on'])).toBe('echo on');
  expect(await exchange(sleeping, ['up'])).toBe('echo up');
  await post(second, '/v1/services/sleeping/sleep');
  // In order, what is awake is put to sleep.
  second.signal('SIGTERM');
  await second.exited;
  const third = await startDaemon({ stateDir });
  expect([await status(third, 'sleeping'), await status(third, 'awake')]).toEqual(['sleeping', 'sleeping']);
  await eventually(async () => !(await refused(awake)));
  expect(await exchange(awake, ['again'])).toBe('echo again');
});

it('a process that is still starting keeps its port under the next daemon', async () => {
  const first = await startDaemon();
  const listening = join(newFolder(), 'listening');
  await register(first, 'slow', { port: freePort() });
  const { cwd } = await service(first, 'slow');
  const cmd = `until [ -e ${listening} ]; do sleep 0.1; done; exec node server.mjs`;
  const slow = {
    name: 'slow',
    port: freePort(),
    cmd,
    cwd,
    ready: { tcp: true },
    sleep: { afterMinutes: 60 },
  };
  await first.request('POST', '/v1/services', slow);
  await register(first, 'quick', { port: freePort() });
  await post(first, '/v1/services/quick/sleep');
  expect((await first.request('POST', '/v1/services/slow/start?wait=false')).status).toBe(202);
  await eventually(async () => (await service(first, 'slow')).innerPort !== undefined);
  const { innerPort } = await service(first, 'slow');
  first.signal('SIGKILL');
  await first.exited;
  const second = await startDaemon({ stateDir: first.stateDir });
  /** The port that the next registered service gets. */
  const nextPort = async (name: string): Promise<number> =>
    (await second.request('POST', '/v1/services', { name, cmd: 'true', cwd, port: 0 })).body.port;
  expect(await nextPort('p1')).not.toBe(innerPort);
  await post(second, '/v1/services/quick/wake');
  expect((await service(second, 'quick')).innerPort).not.toBe(innerPort);
  expect(await service(second, 'slow')).toMatchObject({ status: 'starting', innerPort });
  writeFileSync(listening, '');
  await eventually(async () => (await status(second, 'slow')) === 'running');
  await post(second, '/v1/services/slow/stop');
  expect(await nextPort('p2')).toBe(innerPort);
});

it('a process that took the port of a door while no daemon ran is named until it leaves', async () => {
  const stateDir = join(newFolder(), 'state');
  const first = await startDaemon({ stateDir });
  const ports = { sleeping: freePort(), awake: freePort() };
  for (const [name, port] of Object.entries(ports)) await register(first, name, { port });
  await post(first, '/v1/services/sleeping/sleep');
  await post(first, '/v1/services/awake/start');
  first.signal('SIGKILL');
  await first.exited;
  const strangers = await Promise.all(
    Object.values(ports).map(async (port) => {
      const stranger = createServer().listen(port, '127.0.0.1');
      await once(stranger, 'listening');
      return stranger;
    }),
  );
  const second = await startDaemon({ stateDir });
  const explained = async (name: string) =>
    (await second.request('GET', `/v1/services/${name}/explain`)).body;
  const holder = expect.stringContaining(`pid ${process.pid} (`);
  for (const name of ['sleeping', 'awake']) {
    await eventually(async () => (await explained(name)).portHolder?.startsWith('pid '));
    expect((await explained(name)).portHolder).toEqual(holder);
    expect((await explained(name)).reason).toEqual(holder);
    expect((await explained(name)).next).not.toContain('connection');
  }
  for (const stranger of strangers) stranger.close();
  await eventually(async () => (await explained('sleeping')).portHolder === null);
  expect((await explained('sleeping')).next).toContain('The next connection');
  await eventually(async () => !(await refused(ports.sleeping)));
  expect(await exchange(ports.sleeping, ['up'])).toBe('echo up');
  await eventually(async () => (await explained('awake')).portHolder === 'awake');
  const { events } = (await second.request('GET', '/v1/events/history?types=port.conflict')).body;
  const claims = events.map(({ data }: { data: { claimedBy: string } }) => data.claimedBy);
  expect(claims.sort()).toEqual(['awake', 'sleeping']);
});

it('the first client is served after the daemon and the host were killed while a client waited', async () => {
  const stateDir = join(newFolder(), 'state');
  const first = await startDaemon({ stateDir });
  const [port, gate] = [freePort(), join(newFolder(), 'gate')];
  const folder = newFolder();
  writeFileSync(join(folder, 'server.mjs'), SERVER);
  // Starts at once after the gate is there, so the wake is held until the test opens it.
  const cmd = `until [ -e ${gate} ]; do sleep 0.02; done; exec node server.mjs`;
  const spec = { name: 'web', cmd, port, cwd: folder, ready: `tcp://localhost:${port}` };
  const answer = await first.request('POST', '/v1/services', { ...spec, sleep: { afterMinutes: 60 } });
  expect(answer.status).toBe(201);
  await post(first, '/v1/services/web/sleep');
  const held = exchange(port, ['held']).catch((error: NodeJS.ErrnoException) => error.code);
  await eventually(async () => (await status(first, 'web')) === 'starting');
  const { pid } = await service(first, 'web');
  process.kill(hostPid(stateDir), 'SIGKILL');
  first.signal('SIGKILL');
  await first.exited;
  // The kernel ends the connections of a dead process.
  expect(['ECONNRESET', '']).toContain(await held);
  const second = await startDaemon({ stateDir });
  // The first connection that the door takes is served; before, nobody listens.
  const served = eventually(() =>
    exchange(port, ['first']).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') return undefined;
      throw error;
    }),
  );
  await eventually(async () => (await status(second, 'web')) === 'starting');
  writeFileSync(gate, '');
  expect(await served).toBe('echo first');
  const { pid: now, status: shown } = await service(second, 'web');
  expect(shown).toBe('running');
  await eventually(async () => (await history(second)).includes('web woke'));
  const starts = (await history(second)).filter((one) => /^web (started|woke)$/.test(one));
  expect(starts).toEqual(['web started', 'web woke']);
  await eventually(() => now === pid || !isAlive(pid));
});

it('the wake of a group wakes its members and their dependencies in order, each once', async () => {
  const daemon = await startDaemon();
  const [db, api, other] = [freePort(), freePort(), freePort()];
  await register(daemon, 'db', { port: db });
  await register(daemon, 'api', { port: api, group: 'shop', dependsOn: ['db'] });
  await register(daemon, 'web', { port: other, group: 'shop', dependsOn: ['api'] });
  const plain = { name: 'plain', port: freePort(), group: 'shop', cmd: 'exec sleep 100' };
  await daemon.request('POST', '/v1/services', plain);
  const wake = () => post(daemon, '/v1/groups/shop/wake');
  const woken = await Promise.all([wake(), exchange(other, ['x']).catch(() => '')]);
  expect(woken[0]).toMatchObject({
    name: 'shop',
    services: [
      { name: 'api', status: 'running' },
      { name: 'web', status: 'running' },
    ],
  });
  const started = (await history(daemon)).filter((one) => one.endsWith(' started'));
  expect(started).toEqual(['db started', 'api started', 'web started']);
  expect(await status(daemon, 'plain')).toBe('stopped');
  await post(daemon, '/v1/groups/shop/sleep');
  expect(await status(daemon, 'web')).toBe('sleeping');
  expect((await wake()).services.map(({ pid }: { pid: number }) => typeof pid)).toEqual(['number', 'number']);
  const pids = (await wake()).services;
  expect((await wake()).services).toEqual(pids);
  const unknown = await daemon.request('POST', '/v1/groups/nobody/wake');
  expect([unknown.status, unknown.body.code]).toEqual([404, 'unknown_group']);
});

it('a client of a service that cannot start is reset, and a sleep without a sleep rule is refused', async () => {
  const daemon = await startDaemon();
  const port = freePort();
  const spec = { name: 'bad', cmd: 'sleep 0.1; exit 3', port, cwd: '/', ready: `tcp://localhost:${port}` };
  await daemon.request('POST', '/v1/services', { ...spec, sleep: { afterMinutes: 5 } });
  await post(daemon, '/v1/services/bad/sleep');
  await expect(exchange(port, ['x'])).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(await status(daemon, 'bad')).toBe('crashed');
  await daemon.request('POST', '/v1/services', { ...spec, sleep: null });
  await eventually(() => refused(port));
  expect((await daemon.request('POST', '/v1/services/bad/sleep')).body.code).toBe('sleep_refused');
  for (const wrong of [{}, { afterMinutes: 0 }, { afterMinutes: '5' }, { afterMinutes: 1, x: 1 }, 15, []])
    expect((await daemon.request('POST', '/v1/services', { ...spec, sleep: wrong })).status).toBe(400);
});

it('a wake that fails for a dependency is an event of the service, which explains it until it runs', async () => {
  const daemon = await startDaemon();
  const gate = join(newFolder(), 'gate');
  const dep = { name: 'dep', port: null, cmd: `[ -e ${gate} ] && exec sleep 1000; exit 7` };
  expect((await daemon.request('POST', '/v1/services', dep)).status).toBe(201);
  const port = freePort();
  await register(daemon, 'web', { port, dependsOn: ['dep'] });
  await post(daemon, '/v1/services/web/sleep');
  await expect(exchange(port, ['x'])).rejects.toMatchObject({ code: 'ECONNRESET' });
  const reason = 'dep ended with exit code 7 before it was ready';
  const failed = async () =>
    (await daemon.request('GET', '/v1/events/history?types=service.wake_failed')).body.events;
  await eventually(async () => (await failed()).length === 1);
  expect(await failed()).toMatchObject([{ type: 'service.wake_failed', data: { name: 'web', reason } }]);
  const explained = async (): Promise<string> =>
    (await daemon.request('GET', '/v1/services/web/explain')).body.reason;
  expect(await explained()).toMatch(
    new RegExp(`^It was put to sleep. It could not be woken for a connection \\S+ m?s ago: ${reason}\\.$`),
  );
  writeFileSync(gate, '');
  expect(await exchange(port, ['x'])).toBe('echo x');
  expect(await explained()).not.toContain('could not be woken');
  await post(daemon, '/v1/services/web/sleep');
  expect(await explained()).toBe('It was put to sleep.');
});

const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
/** What a leak of memory in a long run cannot hide in, in KiB. */
const MEMORY_NOISE_KIB = 24 * 1024;
const memoryKib = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]);

/** Of each thread: its actors and what waits for an answer. */
async function openThings(daemon: Daemon): Promise<unknown> {
  const { threads } = (await daemon.request('GET', '/v1/system')).body;
  return threads.map(({ name, openAsks, actors }: any) => ({
    name,
    openAsks,
    actors: actors.map(({ address, actors: count, open }: any) => [address, count, open]),
  }));
}

it(`${CYCLES} cycles of sleep and wake leak nothing`, { timeout: 30_000 + CYCLES * 1_000 }, async () => {
  const daemon = await startDaemon();
  const port = freePort();
  await register(daemon, 'web', { port });
  const cycle = async (): Promise<void> => {
    await post(daemon, '/v1/services/web/sleep');
    expect(await exchange(port, ['x'])).toBe('echo x');
  };
  for (let count = 0; count < 3; count += 1) await cycle();
  const [before, things] = [openFiles(daemon.pid), await openThings(daemon)];
  const memory: number[] = [];
  for (let count = 0; count < CYCLES; count += 1) {
    await cycle();
    if (count === CYCLES >> 1) memory.push(memoryKib(daemon.pid));
  }
  // The last connections may be closing.
  await eventually(() => openFiles(daemon.pid) <= before + 2);
  await eventually(async () => isDeepStrictEqual(await openThings(daemon), things));
  memory.push(memoryKib(daemon.pid));
  expect(memory[1]).toBeLessThan(must(memory[0]) + MEMORY_NOISE_KIB);
  const events = await history(daemon);
  expect(events.filter((one) => one === 'web slept').length).toBeLessThanOrEqual(CYCLES + 3);
});

const POSTGRES = '/usr/lib/postgresql';
const postgresBin = existsSync(POSTGRES)
  ? readdirSync(POSTGRES).map((one) => join(POSTGRES, one, 'bin'))[0]
  : undefined;
const run = promisify(execFile);

it.skipIf(!postgresBin)('psql wakes a real Postgres (needs postgresql from Debian)', async () => {
  const daemon = await startDaemon();
  const [port, folder] = [freePort(), newFolder()];
  const isRoot = process.getuid?.() === 0;
  const data = join(folder, 'data');
  const as = (command: string): string =>
    isRoot ? `exec setpriv --reuid=65534 --clear-groups ${command}` : `exec ${command}`;
  await run('chmod', ['-R', '777', folder]);
  await run('sh', ['-c', as(`${postgresBin}/initdb -D ${data} -U app -A trust`)], { cwd: folder });
  const cmd = as(`${postgresBin}/postgres -D ${data} -p $PORT -k ${folder} -h 127.0.0.1`);
  const spec = { name: 'db', cmd, port, cwd: folder, ready: `tcp://localhost:${port}`, stopSignal: 'SIGINT' };
  await daemon.request('POST', '/v1/services', { ...spec, sleep: { afterMinutes: 5 } });
  await post(daemon, '/v1/services/db/sleep');
  const sql = 'create table if not exists t (n int); insert into t values (1); select count(*) from t';
  const query = async (): Promise<string | undefined> => {
    const sent = run('psql', ['-h', '127.0.0.1', '-p', String(port), '-U', 'app', '-Atc', sql, 'postgres']);
    // Postgres takes connections before it answers queries.
    const { stdout } = await sent.catch((error: Error) => {
      if (error.message.includes('starting up')) return { stdout: '' };
      throw error;
    });
    return stdout.trim().split('\n').at(-1) || undefined;
  };
  expect(await eventually(query)).toBe('1');
  await post(daemon, '/v1/services/db/sleep');
  expect(await eventually(query)).toBe('2');
});

it('a service is asleep, or woken by a waiting client, after the host was killed during its sleep', async () => {
  const daemon = await startDaemon();
  const port = freePort();
  await register(daemon, 'web', { port, env: { SLOW: '1' } });
  await post(daemon, '/v1/services/web/start');
  for (const waits of [false, true]) {
    const before = (await history(daemon)).length;
    const { pid } = await service(daemon, 'web');
    const host = hostPid(daemon.stateDir);
    const asked = daemon.request('POST', '/v1/services/web/sleep').catch(() => undefined);
    await eventually(async () => (await status(daemon, 'web')) === 'stopping');
    const answer = waits ? exchange(port, ['held']) : null;
    process.kill(host, 'SIGKILL');
    await eventually(() => !isAlive(pid));
    await asked;
    if (answer) expect(await answer).toBe('echo held');
    else await eventually(async () => (await status(daemon, 'web')) === 'sleeping');
    expect(await exchange(port, ['again'])).toBe('echo again');
    await eventually(async () => (await status(daemon, 'web')) === 'running');
    const told = (await history(daemon)).slice(before);
    expect(told).toEqual(['web slept', 'web started', 'web woke']);
  }
});

it('a client that connects while the service is put to sleep is held', async () => {
  const daemon = await startDaemon();
  const port = freePort();
  await register(daemon, 'web', { port, env: { SLOW: '1' } });
  await post(daemon, '/v1/services/web/start');
  for (let round = 0; round < 3; round += 1) {
    const sleeping = post(daemon, '/v1/services/web/sleep');
    await eventually(async () => (await status(daemon, 'web')) === 'stopping');
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => exchange(port, [`${index}`])));
    expect(answers).toEqual(answers.map((_, index) => `echo ${index}`));
    await sleeping;
  }
});

it('a client that connects while the service is stopped is reset, and starts nothing', async () => {
  const daemon = await startDaemon();
  const port = freePort();
  await register(daemon, 'web', { port, env: { SLOW: '1' } });
  await post(daemon, '/v1/services/web/start');
  const gateway = must((await daemon.request('GET', '/v1/version')).body.gatewayPort);
  const headers = { host: `web.localhost:${gateway}` };
  for (const connection of ['door', 'gateway']) {
    await post(daemon, '/v1/services/web/start?join=true');
    const stopped = post(daemon, '/v1/services/web/stop');
    await eventually(async () => (await status(daemon, 'web')) === 'stopping');
    if (connection === 'door')
      await expect(exchange(port, ['late'])).rejects.toMatchObject({ code: 'ECONNRESET' });
    else expect((await send(gateway, 'GET', '/', { headers })).status).toBe(502);
    await stopped;
    expect(await refused(port)).toBe(true);
    expect(await status(daemon, 'web')).toBe('stopped');
  }
  const told = ['registered', 'started', 'stopped', 'started', 'stopped'].map((type) => `web ${type}`);
  expect(await history(daemon)).toEqual(told);
});

it('a service that is stopped while a wake or a group starts its dependency stays stopped', async () => {
  const daemon = await startDaemon();
  const [port, db, gate] = [freePort(), freePort(), join(newFolder(), 'gate')];
  const ready = { exec: `[ -e ${gate} ]` };
  const below = { name: 'db', port: db, cmd: 'exec sleep 600', ready, group: 'both', startTimeout: 60_000 };
  expect((await daemon.request('POST', '/v1/services', below)).status).toBe(201);
  await register(daemon, 'web', { port, dependsOn: ['db'], group: 'both' });
  for (const path of ['/v1/services/web/wake', '/v1/groups/both/start']) {
    rmSync(gate, { force: true });
    await post(daemon, '/v1/services/web/sleep');
    const held = exchange(port, ['held']);
    held.catch(() => undefined);
    const asked = daemon.request('POST', path);
    await eventually(async () => (await status(daemon, 'db')) === 'starting');
    await post(daemon, '/v1/services/web/stop');
    await expect(held).rejects.toMatchObject({ code: 'ECONNRESET' });
    writeFileSync(gate, '');
    expect(await asked).toMatchObject({ status: 502, body: { code: 'start_failed' } });
    expect([await status(daemon, 'db'), await status(daemon, 'web')]).toEqual(['running', 'stopped']);
    await post(daemon, '/v1/services/db/stop');
  }
});

it('a client waits through restarts and sleeps during a wake, and is reset when the service is stopped', async () => {
  const daemon = await startDaemon();
  const [port, db, folder, gate] = [freePort(), freePort(), newFolder(), join(newFolder(), 'gate')];
  writeFileSync(join(folder, 'server.mjs'), SERVER);
  const cmd = `until [ -e ${gate} ]; do sleep 0.02; done; exec node server.mjs`;
  const spec = { name: 'web', cmd, cwd: folder, port, ready: `tcp://localhost:${port}` };
  const sleep = { afterMinutes: 60 };
  expect((await daemon.request('POST', '/v1/services', { ...spec, sleep })).status).toBe(201);
  const below = { ...spec, name: 'db', port: db, ready: `tcp://localhost:${db}` };
  expect((await daemon.request('POST', '/v1/services', { ...below, sleep })).status).toBe(201);
  const anew = async (name: string, pid: number | null) =>
    eventually(async () => {
      const now = await service(daemon, name);
      return now.status === 'starting' && now.pid !== null && now.pid !== pid && now.pid;
    });
  const wakeOf = async (name: string) => {
    rmSync(gate, { force: true });
    await post(daemon, '/v1/services/web/sleep');
    const held = exchange(port, ['held']);
    held.catch(() => undefined);
    return { held, pid: await anew(name, null) };
  };

  const first = await wakeOf('web');
  const ended = post(daemon, '/v1/services/web/restart');
  const second = await anew('web', first.pid);
  const restarted = post(daemon, '/v1/services/web/restart');
  const third = await anew('web', second);
  writeFileSync(gate, '');
  expect(await first.held).toBe('echo held');
  expect(await service(daemon, 'web')).toMatchObject({ status: 'running', pid: third });
  for (const one of [restarted, ended]) expect(await one).toMatchObject({ status: 'running', pid: third });
  await eventually(async () => (await history(daemon)).at(-1) === 'web woke');

  const put = await wakeOf('web');
  await post(daemon, '/v1/services/web/sleep');
  await anew('web', put.pid);
  writeFileSync(gate, '');
  expect(await put.held).toBe('echo held');
  await eventually(async () => (await history(daemon)).at(-1) === 'web woke');
  expect((await history(daemon)).slice(-4)).toEqual(
    ['slept', 'slept', 'started', 'woke'].map((t) => `web ${t}`),
  );

  // The service below is restarted during the wake of the one above.
  await daemon.request('POST', '/v1/services', { ...spec, sleep, dependsOn: ['db'] });
  const lower = await wakeOf('db');
  const again = post(daemon, '/v1/services/db/restart');
  await anew('db', lower.pid);
  writeFileSync(gate, '');
  expect(await lower.held).toBe('echo held');
  await again;

  const last = await wakeOf('web');
  await post(daemon, '/v1/services/web/stop');
  await expect(last.held).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(await refused(port)).toBe(true);
  expect(await status(daemon, 'web')).toBe('stopped');
});
