// docs/reference.md "Services" on the real daemon with real processes.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Daemon, eventually, isAlive, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort, ownPorts } from '../kit/free_ports.ts';

const node = JSON.stringify(process.execPath);

/** A web server that begins to listen after `delay` ms; with `stubborn` it ignores SIGTERM. */
function server(delay = 0, stubborn = false): string {
  const path = join(newFolder(), 'server.cjs');
  writeFileSync(
    path,
    `${stubborn ? "process.on('SIGTERM', () => console.log('no'));" : ''}
     setTimeout(() => require('node:http').createServer((q, r) => r.end('hello')).listen(process.env.PORT, '127.0.0.1'), ${delay});
     console.log('up', process.env.BERTH_SERVICE);`,
  );
  return `exec ${node} ${path}`;
}

async function register(
  daemon: Daemon,
  name: string,
  { port = freePort(), ...spec }: { port?: number; [key: string]: unknown },
): Promise<void> {
  const answer = await daemon.request('POST', '/v1/services', { name, port, ...spec });
  expect(answer.body).toMatchObject({ name, status: expect.any(String) });
  expect(answer.status).toBe(201);
}

const start = (daemon: Daemon, name: string, query = '') =>
  daemon.request('POST', `/v1/services/${name}/start${query}`);
const stop = (daemon: Daemon, name: string, query = '') =>
  daemon.request('POST', `/v1/services/${name}/stop${query}`);
const get = async (daemon: Daemon, name: string) =>
  (await daemon.request('GET', `/v1/services/${name}`)).body;

/** Resolves when the service `web` has printed that the stop signal has reached it. */
const told = (daemon: Daemon) =>
  eventually(async () => (await daemon.request('GET', '/v1/services/web/logs')).body.lines.includes('told'));

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });

describe('one service', () => {
  it('is registered, started, read, resolved and stopped', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    const port = freePort();
    const spec = {
      name: 'web',
      port,
      cmd: `exec python3 -m http.server ${port} --bind 127.0.0.1`,
      group: 'site',
    };
    const registered = await daemon.request('POST', '/v1/services', {
      ...spec,
      ready: `http://localhost:${port}/`,
    });
    expect([registered.status, registered.body]).toEqual([
      201,
      {
        ...{
          name: 'web',
          port,
          group: 'site',
          status: 'stopped',
          url: `http://localhost:${port}`,
          restarts: 0,
        },
        protocol: 'http',
        gatewayUrl: expect.stringMatching(/^http:\/\/web\.localhost:\d+\/$/),
        ...{ project: null, stack: null, service: null },
      },
    ]);
    // The fields of the base API come first, in its order.
    expect(Object.keys(registered.body).slice(0, 6)).toEqual([
      ...['name', 'port', 'group', 'status', 'url', 'restarts'],
    ]);
    const before = await daemon.request('GET', '/v1/resolve/web');
    expect(before.body).toEqual({ name: 'web', url: `http://localhost:${port}`, port, status: 'stopped' });

    const started = await start(daemon, 'web');
    expect([started.status, started.body]).toEqual([
      200,
      { name: 'web', status: 'running', pid: expect.any(Number) },
    ]);
    const { pid } = started.body;
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain('http.server');

    const running = await get(daemon, 'web');
    expect(Object.keys(running).slice(0, 9)).toEqual([
      'name',
      'port',
      'group',
      'status',
      'pid',
      'url',
      'startedAt',
      'cpu',
      'rssMB',
    ]);
    expect(running).toMatchObject({ status: 'running', pid, cpu: expect.any(Number), restarts: 0 });
    expect(running.rssMB).toBeGreaterThan(2);
    expect(running.startedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/);
    expect(JSON.stringify(running)).not.toContain('"env"');

    const stats = await stream.until((event) => event.event === 'service.stats');
    expect(stats.data).toEqual({ name: 'web', cpu: expect.any(Number), rssMB: expect.any(Number) });

    const again = await start(daemon, 'web');
    expect([again.status, again.body.code]).toEqual([409, 'already_running']);

    const stopped = await stop(daemon, 'web');
    expect(stopped.status).toBe(200);
    expect(stopped.body).toMatchObject({
      name: 'web',
      status: 'stopped',
      exitCode: null,
      signal: 'SIGTERM',
      escalated: false,
      left: [],
      portFree: true,
    });
    expect(isAlive(pid)).toBe(false);
    // The stream is a connection of its own, which may be read after the response.
    await stream.until((event) => event.event === 'service.stopped');
    expect(
      stream.events
        .filter((event) => event.event !== 'service.stats')
        .map(({ event, data }) => [event, data]),
    ).toEqual([
      ['service.registered', { name: 'web', port, group: 'site' }],
      ['service.started', { name: 'web', pid, url: `http://localhost:${port}` }],
      ['service.stopped', { name: 'web', exitCode: null, signal: 'SIGTERM' }],
    ]);
    const stoppedAgain = await stop(daemon, 'web');
    expect([stoppedAgain.status, stoppedAgain.body.status]).toEqual([200, 'stopped']);

    const removed = await daemon.request('DELETE', '/v1/services/web');
    expect([removed.status, removed.body]).toEqual([200, { removed: true, name: 'web' }]);
    expect((await daemon.request('GET', '/v1/services/web')).body.code).toBe('unknown_service');
    expect(existsSync(join(daemon.stateDir, 'logs', 'web'))).toBe(false);
  });

  it('has the next time of its schedule in the response to its registration', async () => {
    const daemon = await startDaemon();
    const task = { name: 'nightly', kind: 'task', cmd: 'true', port: null };
    const nextOf = async (schedule: unknown): Promise<number> => {
      const { body } = await daemon.request('POST', '/v1/services', { ...task, schedule });
      return Date.parse(body.nextRunAt);
    };
    expect(new Date(await nextOf({ cron: '0 3 * * *', timezone: 'UTC' })).getUTCHours()).toBe(3);
    expect(new Date(await nextOf({ cron: '0 5 * * *', timezone: 'UTC' })).getUTCHours()).toBe(5);
    const { body } = await daemon.request('POST', '/v1/services', { ...task, schedule: null });
    expect(body).not.toHaveProperty('nextRunAt');
  });

  it('is awaited while it becomes ready late, and fails to start if it never does', async () => {
    const daemon = await startDaemon();
    const port = freePort();
    await register(daemon, 'late', { port, cmd: server(400), ready: `http://localhost:${port}/` });
    const late = await start(daemon, 'late');
    expect(late.body.status).toBe('running');
    const never = freePort();
    await register(daemon, 'never', {
      port: never,
      cmd: 'echo nothing to see; exec sleep 600',
      ready: `http://127.0.0.1:${never}/`,
    });
    const answer = await start(daemon, 'never', '?timeout=300');
    expect([answer.status, answer.body.code]).toEqual([502, 'ready_timeout']);
    expect(answer.body.hint).toContain('nothing to see');
    expect((await get(daemon, 'never')).status).toBe('stopped');
  });

  it('answers start_failed at once with the exit code and the last lines', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    // Without a ready-check it would be ready after 50 ms, less than a busy machine needs to run the command.
    const ready = 'http://localhost:1/';
    await register(daemon, 'three', { cmd: 'echo broken configuration; exit 3', ready });
    const three = await start(daemon, 'three');
    expect([three.status, three.body.code]).toEqual([502, 'start_failed']);
    expect(three.body.message).toContain('3');
    expect(three.body.hint).toContain('broken configuration');
    expect(await get(daemon, 'three')).toMatchObject({ status: 'crashed', exitCode: 3, signal: null });
    const crashed = await stream.until((event) => event.event === 'service.crashed');
    expect(crashed.data).toEqual({ name: 'three', exitCode: 3, signal: null });

    await register(daemon, 'zero', { cmd: 'exit 0', ready });
    expect((await start(daemon, 'zero')).body.code).toBe('start_failed');
    expect(await get(daemon, 'zero')).toMatchObject({ status: 'stopped', exitCode: 0 });

    await register(daemon, 'absent', { cmd: 'no-such-program-anywhere', ready });
    expect((await start(daemon, 'absent')).body.message).toContain('127');
    await register(daemon, 'nowhere', { cmd: 'true', cwd: '/no/such/folder' });
    const nowhere = await start(daemon, 'nowhere');
    expect([nowhere.status, nowhere.body.code]).toEqual([502, 'start_failed']);
    expect(nowhere.body.message).toContain('/no/such/folder');
  });

  it('is reported as crashed', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    await register(daemon, 'web', { cmd: 'exec sleep 600' });
    const { pid } = (await start(daemon, 'web')).body;
    process.kill(pid, 'SIGKILL');
    const crashed = await stream.until((event) => event.event === 'service.crashed');
    expect(crashed.data).toEqual({ name: 'web', exitCode: null, signal: 'SIGKILL' });
    const after = await get(daemon, 'web');
    expect(after).toMatchObject({ status: 'crashed', exitCode: null, signal: 'SIGKILL' });
    expect(after.pid).toBeUndefined();
  });

  it('is restarted as its policy says', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    await register(daemon, 'web', { cmd: 'exec sleep 600', restart: 'on-failure' });
    const { pid } = (await start(daemon, 'web')).body;
    process.kill(pid, 'SIGKILL');
    const back = await stream.until((event) => event.event === 'service.started' && event.data.pid !== pid);
    expect(await get(daemon, 'web')).toMatchObject({ status: 'running', pid: back.data.pid, restarts: 1 });
    expect((await stop(daemon, 'web')).status).toBe(200);
    await stream.until((event) => event.event === 'service.stopped');
    expect((await get(daemon, 'web')).status).toBe('stopped');
    expect((await daemon.request('GET', '/v1/services/web/explain')).body.backoff).toBeNull();
    expect(stream.events.filter(({ event }) => event === 'service.started')).toHaveLength(2);
  });

  it('that its policy has restarted has the last lines of the crash until it prints something', async () => {
    const [first, goOn] = ['first', 'go-on'].map((name) => join(newFolder(), name)) as [string, string];
    const quietThenLoud = `while ! test -e ${goOn}; do sleep 0.05; done; echo up; exec sleep 600`;
    const cmd = `if test -e ${first}; then ${quietThenLoud}; fi; touch ${first}; echo no database; exit 3`;
    const daemon = await startDaemon();
    await register(daemon, 'again', { cmd, restart: 'always' });
    await start(daemon, 'again');
    const lines = async () => (await daemon.request('GET', '/v1/services/again/explain')).body.lastLines;
    await eventually(async () => {
      const { restarts, status } = await get(daemon, 'again');
      return restarts === 1 && status === 'running';
    });
    expect(await lines()).toEqual(['no database']);
    writeFileSync(goOn, '');
    await eventually(async () => (await lines())[0] === 'up');
  });

  it('keeps its process when it is registered anew, and shows its start values', async () => {
    const daemon = await startDaemon();
    const first = freePort();
    const second = freePort();
    await register(daemon, 'web', { port: first, cmd: 'exec sleep 600' });
    const { pid } = (await start(daemon, 'web')).body;
    await register(daemon, 'web', { port: second, cmd: 'exec sleep 600' });
    expect(await get(daemon, 'web')).toMatchObject({ status: 'running', pid, port: first, stale: true });
    expect((await daemon.request('GET', '/v1/resolve/web')).body.port).toBe(first);
    await stop(daemon, 'web');
    expect(await get(daemon, 'web')).toMatchObject({ port: second, url: `http://localhost:${second}` });
  });

  it('gets its environment and no variable of the daemon itself', async () => {
    const daemon = await startDaemon({ env: { npm_config_x: '1', FROM_USER: 'yes', BERTH_AUTH_TOKEN: '' } });
    const port = freePort();
    await register(daemon, 'web', { port, cmd: 'exec sleep 600', env: { OWN: 'ä b', PORT_NOT: '1' } });
    const { pid } = (await start(daemon, 'web')).body;
    const env = new Map(
      readFileSync(`/proc/${pid}/environ`, 'utf8')
        .split('\0')
        .map((line): [string, string] => [line.split('=')[0] ?? '', line.slice(line.indexOf('=') + 1)]),
    );
    expect(env.get('PORT')).toBe(String(port));
    expect(env.get('OWN')).toBe('ä b');
    expect(env.get('FROM_USER')).toBe('yes');
    expect(env.get('BERTH_SERVICE')).toBe('web');
    expect([...env.keys()].filter((key) => /^(npm_|BERTH_)/.test(key)).sort()).toEqual([
      'BERTH_RUN',
      'BERTH_SERVICE',
      'BERTH_STATE_ID',
    ]);
  });
});

describe('a stop', () => {
  it('kills a process that ignores the terminate signal after the grace period', async () => {
    const daemon = await startDaemon();
    const port = freePort();
    await register(daemon, 'web', { port, cmd: server(0, true), ready: `http://localhost:${port}/` });
    await start(daemon, 'web');
    const answer = await stop(daemon, 'web', '?grace=200');
    expect(answer.body).toMatchObject({ signal: 'SIGKILL', escalated: true, portFree: true });
    expect(await isListening(port)).toBe(false);
  });

  const shapes: [what: string, command: (port: number) => string][] = [
    ['a shell that stays as the parent', (port) => `python3 -m http.server ${port} --bind 127.0.0.1; true`],
    [
      'two shells, as with npm run',
      (port) => `sh -c "sh -c 'python3 -m http.server ${port} --bind 127.0.0.1; true'; true"; true`,
    ],
    [
      'a child in a session of its own',
      (port) => `setsid python3 -m http.server ${port} --bind 127.0.0.1 & wait`,
    ],
    [
      'a daemon that forked twice',
      (port) => `(setsid sh -c 'python3 -m http.server ${port} --bind 127.0.0.1 & true' &) ; exec sleep 600`,
    ],
  ];
  it.each(shapes)('frees the port of %s', async (_what, command) => {
    const daemon = await startDaemon();
    const port = freePort();
    await register(daemon, 'web', { port, cmd: command(port), ready: `tcp://127.0.0.1:${port}` });
    expect((await start(daemon, 'web')).body.status).toBe('running');
    const answer = await stop(daemon, 'web');
    expect(answer.body).toMatchObject({ left: [], portFree: true });
    expect(await isListening(port)).toBe(false);
  });

  it('is joined by a second one, and refuses a start meanwhile', async () => {
    const daemon = await startDaemon();
    const gate = join(newFolder(), 'gate');
    const port = freePort();
    // It listens once it catches the signal, and ends at the gate.
    const script = `process.on('SIGTERM', () => {}); require('net').createServer().listen(${port}, '127.0.0.1'); setInterval(() => fs.existsSync('${gate}') && process.exit(), 20)`;
    await register(daemon, 'web', {
      port,
      cmd: `exec ${node} -e "${script}"`,
      ready: `tcp://127.0.0.1:${port}`,
    });
    await start(daemon, 'web');
    const first = stop(daemon, 'web', '?grace=60000');
    await eventually(async () => (await get(daemon, 'web')).status === 'stopping');
    const second = stop(daemon, 'web');
    const refused = await start(daemon, 'web');
    expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([
      503,
      'daemon_busy',
      '1',
    ]);
    writeFileSync(gate, '');
    const [one, two] = await Promise.all([first, second]);
    expect(one.body).toEqual(two.body);
  });

  it.each([
    ['that a client has requested', {}, '/v1/services/web/stop'],
    ['of a restart', {}, '/v1/services/web/restart'],
    ['of its group', { group: 'site' }, '/v1/groups/site/stop'],
  ])('%s ends at once when another one has grace=0', async (_, more, path) => {
    const daemon = await startDaemon();
    const cmd = `sleep 600 & trap 'echo told' TERM; while :; do sleep 0.05; done`;
    await register(daemon, 'web', { cmd, ...more });
    await start(daemon, 'web');
    const first = daemon.request('POST', `${path}?grace=3600000`);
    await told(daemon);
    const second = await stop(daemon, 'web', '?grace=0');
    expect(second.body).toMatchObject({ signal: 'SIGKILL', escalated: true, left: [], status: 'stopped' });
    if (path.endsWith('web/stop')) expect((await first).body).toEqual(second.body);
    expect((await first).status).toBe(path.endsWith('restart') ? 502 : 200);
    expect((await get(daemon, 'web')).status).toBe('stopped');
  });

  it('ends at once when another one under the next daemon has grace=0, although its command runs', async () => {
    const first = await startDaemon();
    const mark = join(newFolder(), 'mark');
    const more = { stop: `touch ${mark}; exec sleep 600`, cmd: `trap '' TERM; exec sleep 600` };
    await register(first, 'web', more);
    await start(first, 'web');
    stop(first, 'web', '?grace=3600000').catch(() => undefined);
    await eventually(() => existsSync(mark));
    first.signal('SIGKILL');
    await first.exited;
    const daemon = await startDaemon({ stateDir: first.stateDir });
    await eventually(async () => (await get(daemon, 'web')).status === 'stopping');
    const { next } = (await daemon.request('GET', '/v1/services/web/explain')).body;
    expect(next).toContain('grace period of 60 min');
    const answer = await stop(daemon, 'web', '?grace=0');
    expect(answer.body).toMatchObject({ signal: 'SIGKILL', escalated: true, left: [], status: 'stopped' });
  });

  it('ends a pending start', async () => {
    const daemon = await startDaemon();
    await register(daemon, 'web', { cmd: 'exec sleep 600', ready: 'http://localhost:9/' });
    const starting = start(daemon, 'web');
    await eventually(async () => (await get(daemon, 'web')).status === 'starting');
    expect((await stop(daemon, 'web')).status).toBe(200);
    const answer = await starting;
    expect([answer.status, answer.body.code]).toEqual([502, 'start_failed']);
  });
});

describe('ports', () => {
  it("name a process of another daemon's service by its pid, although its name is the same", async () => {
    const [mine, other] = await Promise.all([startDaemon(), startDaemon()]);
    const port = freePort();
    const spec = {
      name: 'api',
      port,
      cmd: `exec python3 -m http.server ${port} --bind 127.0.0.1`,
      ready: `http://127.0.0.1:${port}/`,
    };
    for (const daemon of [mine, other]) await daemon.request('POST', '/v1/services', spec);
    const { pid } = (await other.request('POST', '/v1/services/api/start')).body;
    const refused = await mine.request('POST', '/v1/services/api/start');
    expect([refused.status, refused.body.code]).toEqual([409, 'port_in_use']);
    expect(refused.body.message).toContain(`is held by pid ${pid} (`);
    const holderFor = async (daemon: Daemon) =>
      (await daemon.request('GET', '/v1/services/api/explain')).body.portHolder;
    expect(await holderFor(mine)).toContain(`pid ${pid} (`);
    expect(await holderFor(other)).toBe('api');
  });

  it('are refused when in use, with the holder named', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    const port = freePort();
    const holder = spawn('python3', ['-m', 'http.server', String(port), '--bind', '127.0.0.1'], {
      stdio: 'ignore',
    });
    try {
      await eventually(() => isListening(port));
      await register(daemon, 'web', { port, cmd: 'exec sleep 600' });
      const answer = await start(daemon, 'web');
      expect([answer.status, answer.body.code]).toEqual([409, 'port_in_use']);
      expect(answer.body.message).toContain(String(holder.pid));
      const conflict = await stream.until((event) => event.event === 'port.conflict');
      expect(conflict.data).toEqual({
        port,
        claimedBy: 'web',
        holder: expect.stringContaining(`pid ${holder.pid}`),
      });
    } finally {
      holder.kill('SIGKILL');
    }
  });

  it('registered twice give one event, once', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    const port = freePort();
    for (const name of ['one', 'two', 'two']) await register(daemon, name, { name, port, cmd: 'true' });
    await register(daemon, 'last', { cmd: 'true' });
    await stream.until((event) => event.data.name === 'last');
    expect(
      stream.events.filter((event) => event.event === 'port.conflict').map((event) => event.data),
    ).toEqual([{ port, claimedBy: 'two', holder: 'one' }]);
  });

  it('are chosen for port 0 and kept', async () => {
    const [from, to] = ownPorts(3);
    const daemon = await startDaemon({ config: `[services]\nports = [${from}, ${to}]\n` });
    const first = await daemon.request('POST', '/v1/services', { name: 'auto', port: 0, cmd: 'true' });
    const other = await daemon.request('POST', '/v1/services', { name: 'auto2', port: 0, cmd: 'true' });
    const again = await daemon.request('POST', '/v1/services', { name: 'auto', port: 0, cmd: 'false' });
    expect(first.body.port).toBe(from);
    expect(other.body.port).not.toBe(first.body.port);
    expect(again.body.port).toBe(first.body.port);
  });
});

describe('logs and explanations', () => {
  it('show the last lines, by stream, with times, and live', async () => {
    const daemon = await startDaemon();
    await register(daemon, 'web', {
      cmd: 'for i in 1 2 3; do echo out $i; done; echo err >&2; exec sleep 600',
    });
    await start(daemon, 'web');
    const lines = await eventually(async () => {
      const answer = await daemon.request('GET', '/v1/services/web/logs');
      return answer.body.lines.length === 4 && answer.body;
    });
    expect(lines).toMatchObject({ name: 'web' });
    expect([...lines.lines].sort()).toEqual(['err', 'out 1', 'out 2', 'out 3']);
    const err = await daemon.request('GET', '/v1/services/web/logs?stream=stderr&timestamps=true');
    expect(err.body.lines).toEqual([expect.stringMatching(/^\d{4}-.* err$/)]);
    const bad = await daemon.request('GET', '/v1/services/web/logs?lines=0');
    expect([bad.status, bad.body.code]).toEqual([400, 'invalid_spec']);
  });

  it('explain the state of a service', async () => {
    const daemon = await startDaemon();
    await register(daemon, 'web', {
      cmd: 'echo waiting for the database; exec sleep 600',
      ready: 'http://localhost:9/health',
    });
    const starting = start(daemon, 'web', '?timeout=20000');
    const explained = await eventually(async () => {
      const { body } = await daemon.request('GET', '/v1/services/web/explain');
      return body.lastCheck && body.lastLines.length > 0 && body;
    });
    expect(explained).toMatchObject({
      status: 'starting',
      lastCheck: { url: 'http://localhost:9/health', status: null },
    });
    expect(explained.lastCheck.error).toMatch(/refused/i);
    expect(explained.lastLines).toEqual(['waiting for the database']);
    await stop(daemon, 'web');
    expect((await starting).body.code).toBe('start_failed');
  });
});

describe('groups', () => {
  it('start in dependsOn order and stop in reverse', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    const ports = [freePort(), freePort(), freePort()];
    const names = ['db', 'api', 'web'];
    for (const [index, name] of names.entries()) {
      const port = ports[index] ?? 0;
      await register(daemon, name, {
        port,
        group: 'site',
        cmd: server(100),
        ready: `http://localhost:${port}/`,
        dependsOn: index ? [names[index - 1]] : [],
      });
    }
    expect((await daemon.request('GET', '/v1/groups')).body).toEqual({
      groups: [{ name: 'site', services: 3, running: 0 }],
    });
    const started = await daemon.request('POST', '/v1/groups/site/start');
    expect([started.status, started.body.services.map((s: { status: string }) => s.status)]).toEqual([
      200,
      ['running', 'running', 'running'],
    ]);
    expect((await daemon.request('GET', '/v1/groups')).body.groups[0].running).toBe(3);
    const stopped = await daemon.request('POST', '/v1/groups/site/stop');
    expect(stopped.status).toBe(200);
    // The stream is another connection: its last frame may come after the answer.
    await stream.until(({ event, data }) => event === 'service.stopped' && data.name === 'db');
    const order = (type: string) => stream.events.filter((e) => e.event === type).map((e) => e.data.name);
    expect(order('service.started')).toEqual(names);
    expect(order('service.stopped')).toEqual([...names].reverse());
    expect((await daemon.request('POST', '/v1/groups/nothing/start')).body.code).toBe('unknown_group');
  });

  it('leaves a member stopped that is stopped during the restart of the group', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    await register(daemon, 'db', { port: freePort(), group: 'site', cmd: 'exec sleep 600' });
    const cmd = `trap 'sleep 0.5; exit 0' TERM; while :; do sleep 0.05; done`;
    await register(daemon, 'web', { port: freePort(), group: 'site', dependsOn: ['db'], cmd });
    await daemon.request('POST', '/v1/groups/site/start');
    const restarted = daemon.request('POST', '/v1/groups/site/restart');
    const status = async (name: string) => (await daemon.request('GET', `/v1/services/${name}`)).body.status;
    await eventually(async () => (await status('web')) === 'stopping');
    expect((await daemon.request('POST', '/v1/services/db/stop')).body.status).toBe('stopped');
    expect(await restarted).toMatchObject({
      status: 502,
      body: { code: 'start_failed', message: 'db was stopped or put to sleep meanwhile' },
    });
    expect([await status('db'), await status('web')]).toEqual(['stopped', 'stopped']);
    expect(stream.events.filter(({ event }) => event === 'service.started')).toHaveLength(2);
  });

  it.each([
    ['a chain', (index: number) => (index ? [`s${index - 1}`] : [])],
    ['a fan', (index: number) => (index ? ['s0'] : [])],
  ])(
    'of 200 services in %s start and stop',
    async (_what, dependsOn) => {
      const daemon = await startDaemon();
      const [from] = ownPorts(200);
      await Promise.all(
        Array.from({ length: 200 }, (_, index) =>
          register(daemon, `s${index}`, {
            port: from + index,
            cmd: 'exec sleep 600',
            group: 'many',
            dependsOn: dependsOn(index),
          }),
        ),
      );
      const started = await daemon.request('POST', '/v1/groups/many/start');
      expect(started.status).toBe(200);
      expect(started.body.services.filter((s: { status: string }) => s.status === 'running')).toHaveLength(
        200,
      );
      const stopped = await daemon.request('POST', '/v1/groups/many/stop');
      expect(stopped.body.services.filter((s: { status: string }) => s.status === 'stopped')).toHaveLength(
        200,
      );
      // A chain of 200 that are each ready after 50 ms, and end one after the other, takes its time.
    },
    120_000,
  );

  it('refuse a cycle and name it', async () => {
    const daemon = await startDaemon();
    await register(daemon, 'one', { cmd: 'true', dependsOn: ['two'] });
    const answer = await daemon.request('POST', '/v1/services', {
      name: 'two',
      port: 4,
      cmd: 'true',
      dependsOn: ['one'],
    });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_spec']);
    expect(answer.body.message).toMatch(/one -> two -> one|two -> one -> two/);
  });
});
