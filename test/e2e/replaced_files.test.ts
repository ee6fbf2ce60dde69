// docs/reference.md "Updates": npm takes the files of the package away for some seconds while a daemon runs
// from them.
import { cpSync, renameSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually, hostPid, isAlive, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort, ownPorts } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';

const [first] = ownPorts(4);
const CONFIG = `[agents]\nports = [${first}, ${first + 3}]\n`;
const MCP = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
/** Prints each line that is typed, and asks when told to. */
const BOT = 'while read line; do echo "said $line"; [ "$line" = ask ] && printf "Continue? (y/n) "; done';

/** A build of its own, whose files can be taken away. */
function copiedBuild() {
  const folder = join(newFolder(), 'berth');
  cpSync(dirname(BIN), join(folder, 'dist'), { recursive: true });
  cpSync(join(dirname(BIN), '../package.json'), join(folder, 'package.json'));
  symlinkSync(join(dirname(BIN), '../node_modules'), join(folder, 'node_modules'));
  return {
    bin: join(folder, 'dist/bin.cjs'),
    takeAway: () => renameSync(folder, `${folder}.away`),
    putBack: () => renameSync(`${folder}.away`, folder),
  };
}

const until = (daemon: Daemon, line: string) => eventually(() => daemon.stderr().includes(line));
const post = (daemon: Daemon, path: string, body?: object) => daemon.request('POST', `/v1/${path}`, body);
const pidOf = async (daemon: Daemon, name: string): Promise<number | null> =>
  (await daemon.request('GET', `/v1/services/${name}`)).body.pid;

async function startService(daemon: Daemon, name: string, fields: object): Promise<void> {
  expect((await post(daemon, 'services', { name, port: freePort(), ...fields })).status).toBe(201);
  expect((await post(daemon, `services/${name}/start`)).status).toBe(200);
}

/** A daemon that has started no job thread, with a process host that has started terminals. */
async function daemonWithBot(bin: string): Promise<Daemon> {
  const before = await startDaemon({ bin, config: CONFIG });
  // Keeps the process host alive.
  await startService(before, 'web', { cmd: 'exec sleep 600', restart: 'on-failure' });
  expect((await post(before, 'agents/spinup', { name: 'bot', cmd: BOT })).status).toBe(201);
  expect((await post(before, 'services/bot/stop')).status).toBe(200);
  before.signal('SIGKILL');
  await before.exited;
  return startDaemon({ bin, config: CONFIG, stateDir: before.stateDir });
}

it('agents keep their screens and states, and services restart, while the files are away', async () => {
  const { bin, takeAway, putBack } = copiedBuild();
  const daemon = await daemonWithBot(bin);
  // Loads what reads requests with a body.
  expect((await post(daemon, 'agents/bot/keys', { text: 'x' })).status).toBe(409);
  takeAway();
  expect((await post(daemon, 'services/bot/start')).status).toBe(200);
  expect((await post(daemon, 'agents/bot/keys', { text: 'hello\rask\r' })).status).toBe(200);
  const screen = () => daemon.request('GET', '/v1/agents/bot/screen');
  const asked = screen();
  await until(daemon, 'a job thread does not load');
  const pid = await pidOf(daemon, 'web');
  process.kill(Number(pid), 'SIGKILL');
  await eventually(async () => ![pid, null].includes(await pidOf(daemon, 'web')));
  putBack();
  expect((await asked).status).toBe(200);
  const isShown = (lines: string[]) => /said hello\n[\s\S]*said ask\n.*\(y\/n\)/.test(lines.join('\n'));
  await eventually(async () => isShown((await screen()).body.lines));
  await eventually(async () => (await daemon.request('GET', '/v1/agents/bot')).body.state === 'blocked');
  expect(daemon.stderr()).not.toMatch(/crashed|defect/);
});

it('what a daemon loads on demand is there once the files are back', async () => {
  const { bin, takeAway, putBack } = copiedBuild();
  const daemon = await startDaemon({ bin });
  const cwd = newFolder();
  const get = (path: string, port = daemon.port, headers = {}) =>
    send(port, 'GET', path, { headers }).then(({ status }) => status);
  const { gatewayPort } = (await daemon.request('GET', '/v1/version')).body;
  await startService(daemon, 'web', { cwd, cmd: 'exec sleep 600' });
  const checked = { name: 'checked', port: null, cmd: 'echo up at 1; exec sleep 600', cwd };
  const ready = { log: 'up at \\d+' };
  expect((await post(daemon, 'services', { ...checked, ready })).status).toBe(201);
  const pid = Number(await pidOf(daemon, 'web'));
  const host = hostPid(daemon.stateDir);
  takeAway();
  const pages = ['/', '/docs', '/openapi.json', '/schema/berth.json', '/v1/logs?regex=x'];
  const answers = Promise.all([
    ...pages.map((path) => get(path)),
    get('/', Number(gatewayPort), { Host: `web.localhost:${gatewayPort}` }),
    post(daemon, 'services', {
      name: 'seen',
      port: null,
      cmd: 'exec sleep 600',
      cwd,
      watch: { paths: ['**'] },
    })
      .then(() => post(daemon, 'services/seen/start'))
      .then(({ status }) => status),
    post(daemon, 'services/checked/start').then(({ status }) => status),
    post(daemon, 'services', { name: 'daily', kind: 'task', cmd: 'true', cwd, schedule: '@daily' }).then(
      ({ status }) => status,
    ),
    // Refused by the thread that speaks the protocol.
    send(daemon.port, 'POST', '/mcp', { body: {}, headers: MCP }).then(({ status }) => status),
  ]);
  for (const part of ['a job thread', 'the thread gateway', 'the thread watcher', 'the thread mcp'])
    await until(daemon, `${part} does not load`);
  process.kill(host, 'SIGKILL');
  await until(daemon, 'the process host is gone');
  putBack();
  // The service has no server.
  expect(await answers).toEqual([...pages.map(() => 200), 502, 200, 200, 201, 400]);
  await eventually(
    async () => (await daemon.request('GET', '/v1/services/seen/explain')).body.watching?.folders,
  );
  await eventually(async () => (await daemon.request('GET', '/v1/services/daily')).body.nextRunAt);
  // The next process host has taken over.
  await eventually(async () => (await post(daemon, 'services/web/restart')).status === 200);
  expect([isAlive(pid), await pidOf(daemon, 'web')]).toEqual([false, expect.any(Number)]);
  expect(daemon.stderr()).not.toMatch(/crashed|defect/);
});

it('a terminal starts once its files are there', async () => {
  const { bin } = copiedBuild();
  const file = join(dirname(bin), 'packages/node-pty.cjs');
  renameSync(file, `${file}.away`);
  const daemon = await startDaemon({ bin, config: CONFIG });
  const spec = { name: 'bot', cmd: 'exec sleep 600' };
  expect((await post(daemon, 'agents/spinup', spec)).body).toMatchObject({ code: 'start_failed' });
  renameSync(`${file}.away`, file);
  expect((await post(daemon, 'agents/spinup', spec)).body).toMatchObject({ active: true });
});
