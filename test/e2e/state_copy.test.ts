// docs/reference.md "Copies of the state directory", on real daemons and processes.
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { statePaths } from '../../src/settings/state_paths.ts';
import {
  type Daemon,
  eventually,
  hostPid,
  isAlive,
  newFolder,
  startDaemon,
  stopDaemon,
} from '../kit/daemon.ts';

/** Copies a state directory as a backup does, with its pipes and sockets. */
function copyOf(stateDir: string): string {
  const copy = join(newFolder(), 'copy');
  execFileSync('cp', ['-a', stateDir, copy]);
  return copy;
}

const register = async (daemon: Daemon, name: string, cmd: string, more: object = {}): Promise<void> => {
  const { status } = await daemon.request('POST', '/v1/services', { name, port: null, cmd, ...more });
  expect(status).toBe(201);
};
const start = async (daemon: Daemon, name: string): Promise<number> =>
  (await daemon.request('POST', `/v1/services/${name}/start`)).body.pid;
const get = async (daemon: Daemon, name: string) =>
  (await daemon.request('GET', `/v1/services/${name}`)).body;

/** Registers and starts `name`. Returns the pid. */
const run = async (daemon: Daemon, name: string, cmd: string, more: object = {}): Promise<number> => {
  await register(daemon, name, cmd, more);
  return start(daemon, name);
};

const spinup = async (daemon: Daemon, name: string, cmd: string): Promise<number> => {
  expect((await daemon.request('POST', '/v1/agents/spinup', { name, cmd })).status).toBe(201);
  return (await get(daemon, name)).pid;
};

const SLEEP = 'exec sleep 600';
const KEEP = '[shutdown]\nservices = "keep"\n';

it('a daemon on a copy takes over no process of the original, and ends none', async () => {
  const original = await startDaemon();
  const pids = {
    web: await run(original, 'web', SLEEP),
    // Its first process has ended when the copy is made, and has left another behind.
    left: await run(original, 'left', 'setsid sleep 600 & echo $!'),
    own: await run(original, 'own', SLEEP, { autostart: true }),
    agent: await spinup(original, 'agent', SLEEP),
  };
  const leftover = await eventually(async () => {
    const { body } = await original.request('GET', '/v1/services/left/logs');
    return Number(body.lines[0]);
  });
  await eventually(async () => (await get(original, 'left')).status === 'stopped');

  const copy = await startDaemon({ stateDir: copyOf(original.stateDir) });
  const web = await get(copy, 'web');
  expect(web).toMatchObject({ status: 'stopped', exitCode: null });
  expect(web).not.toHaveProperty('pid');
  const own = await eventually(async () => (await get(copy, 'own')).pid as number);
  expect(own).not.toBe(pids.own);
  const names = [/web/, /own/, /agent/];
  const warnings = copy
    .stderr()
    .split('\n')
    .filter((line) => line.includes('is a copy of another one'));
  expect(warnings).toHaveLength(1);
  for (const name of names) expect(warnings[0]).toMatch(name);

  // What a start and a stop end first, and what a shutdown ends, are processes of the copy alone.
  const again = await start(copy, 'web');
  for (const name of ['left', 'web', 'agent']) {
    await copy.request('POST', `/v1/services/${name}/start`);
    expect((await copy.request('POST', `/v1/services/${name}/stop`)).status).toBe(200);
  }
  await stopDaemon(copy);
  expect([again, own].filter(isAlive)).toEqual([]);

  for (const pid of [pids.web, pids.own, pids.agent, leftover]) expect(isAlive(pid)).toBe(true);
  for (const name of ['web', 'own', 'agent'] as const)
    expect(await get(original, name)).toMatchObject({ status: 'running', pid: pids[name] });
  process.kill(leftover, 'SIGKILL');
});

it('a daemon on a copy by hard links leaves the process host of the original to it, and does not start', async () => {
  const original = await startDaemon();
  const { stateDir } = original;
  const pid = await run(original, 'web', SLEEP);
  const copy = join(newFolder(), 'copy');
  execFileSync('cp', ['-al', stateDir, copy]);
  const refusal = `it is that of ${stateDir}, whose files this state directory shares by hard links`;
  await expect(startDaemon({ stateDir: copy })).rejects.toThrow(refusal);
  original.signal('SIGKILL');
  await original.exited;
  await expect(startDaemon({ stateDir: copy })).rejects.toThrow(refusal);
  const next = await startDaemon({ stateDir });
  expect(await get(next, 'web')).toMatchObject({ status: 'running', pid });
});

it('a daemon on a copy does not finish what the original has begun: restarts and the start of a group', async () => {
  const original = await startDaemon();
  const [started, goOn] = ['started', 'go-on'].map((name) => join(newFolder(), name)) as [string, string];
  const log = (name: string): string => `echo ${name} $BERTH_STATE_DIR >> ${started}`;
  // Waits for its restart, is being restarted, and is about to be started with its group.
  const restart = { policy: 'always', minMs: 20_000 };
  await register(original, 'loop', `${log('loop')}; exit 1`, { restart });
  await original.request('POST', '/v1/services/loop/start?wait=false');
  await eventually(async () => (await get(original, 'loop')).status === 'crashed');
  const untilGoOn = `trap "" TERM; while ! test -e ${goOn}; do sleep 0.05; done`;
  await run(original, 'trap', `${log('trap')}; ${untilGoOn}`, { stopGrace: 60_000 });
  void original.request('POST', '/v1/services/trap/restart').catch(() => undefined);
  await eventually(async () => (await get(original, 'trap')).status === 'stopping');
  await register(original, 'first', 'sleep 600', { kind: 'task', group: 'all' });
  await register(original, 'then', `${log('then')}; ${SLEEP}`, { group: 'all', dependsOn: ['first'] });
  void original.request('POST', '/v1/groups/all/start').catch(() => undefined);
  await eventually(async () => (await get(original, 'first')).status === 'running');

  const copy = await startDaemon({ stateDir: copyOf(original.stateDir) });
  const last = await run(copy, 'last', SLEEP);
  expect(last).toBeGreaterThan(0);
  for (const name of ['loop', 'trap', 'first', 'then']) {
    const { status, restarts } = await get(copy, name);
    expect([name, status, restarts]).toEqual([name, name === 'loop' ? 'crashed' : 'stopped', 0]);
    const { body } = await copy.request('GET', `/v1/services/${name}/explain`);
    expect([name, body.backoff]).toEqual([name, null]);
  }
  expect(
    readFileSync(started, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ')[0]),
  ).toEqual(['loop', 'trap']);
  await stopDaemon(copy);
  writeFileSync(goOn, '');
});

it('a copy without the ledger of the process host takes over nothing either', async () => {
  const original = await startDaemon();
  const pid = await run(original, 'web', SLEEP);
  const stateDir = copyOf(original.stateDir);
  rmSync(join(stateDir, 'host'), { recursive: true });
  rmSync(join(stateDir, 'host.ledger'));
  const copy = await startDaemon({ stateDir });
  expect((await get(copy, 'web')).status).toBe('stopped');
  await stopDaemon(copy);
  expect(isAlive(pid)).toBe(true);
  expect(await get(original, 'web')).toMatchObject({ status: 'running', pid });
});

it('a backup in place of the original starts the services with autostart', async () => {
  const original = await startDaemon();
  const { stateDir } = original;
  const before = await run(original, 'web', SLEEP, { autostart: true });
  const backup = copyOf(stateDir);
  await stopDaemon(original);
  rmSync(stateDir, { recursive: true });
  execFileSync('cp', ['-a', backup, stateDir]);
  const restored = await startDaemon({ stateDir });
  const web = await eventually(async () => {
    const now = await get(restored, 'web');
    return now.status === 'running' && now;
  });
  expect(web.pid).not.toBe(before);
});

it('a renamed state directory keeps its running services', async () => {
  const first = await startDaemon();
  const pid = await run(first, 'web', SLEEP);
  const host = hostPid(first.stateDir);
  for (const ended of [first.pid, host]) process.kill(ended, 'SIGKILL');
  await first.exited;
  await eventually(() => !isAlive(host));
  const stateDir = join(newFolder(), 'renamed');
  renameSync(first.stateDir, stateDir);
  const second = await startDaemon({ stateDir });
  expect(await get(second, 'web')).toMatchObject({ status: 'running', pid });
  expect(second.stderr()).not.toContain('is a copy');
  expect(readFileSync(join(statePaths(stateDir).host, 'ledger'), 'utf8')).toContain(`"pid":${pid}`);
  await stopDaemon(second);
  expect(isAlive(pid)).toBe(false);
});

it('the process host follows a renamed state directory', async () => {
  const first = await startDaemon({ config: KEEP });
  const pid = await run(first, 'web', SLEEP);
  const host = hostPid(first.stateDir);
  process.kill(first.pid, 'SIGKILL');
  await first.exited;
  const stateDir = join(newFolder(), 'renamed');
  renameSync(first.stateDir, stateDir);
  const second = await startDaemon({ stateDir, config: KEEP });
  expect(isAlive(host)).toBe(true);
  expect(await get(second, 'web')).toMatchObject({ status: 'running', pid });
  await run(second, 'noisy', 'echo renamed; exec sleep 600');
  await eventually(async () => {
    const { body } = await second.request('GET', '/v1/services/noisy/logs');
    return body.lines.includes('renamed');
  });
  await stopDaemon(second);
  // Its socket is where the next daemon looks for it.
  const third = await startDaemon({ stateDir });
  expect(await get(third, 'web')).toMatchObject({ status: 'running', pid });
  expect(existsSync(first.stateDir)).toBe(false);
  await stopDaemon(third);
  expect(isAlive(pid)).toBe(false);
});

it('the process host stays with its directory, and leaves another one in its place alone', async () => {
  const first = await startDaemon({ config: KEEP });
  const pid = await run(first, 'web', SLEEP);
  const host = hostPid(first.stateDir);
  await stopDaemon(first);
  const away = join(newFolder(), 'away');
  renameSync(first.stateDir, away);
  mkdirSync(first.stateDir, { mode: 0o700 });
  // The host notices within its next look at its socket.
  await eventually(() => readFileSync(statePaths(away).hostLog, 'utf8').includes(`is ${away} now`));
  const other = await startDaemon({ stateDir: first.stateDir });
  await run(other, 'own', SLEEP);
  expect(await get(other, 'web')).toMatchObject({ code: 'unknown_service' });
  const socket = () => lstatSync(join(statePaths(first.stateDir).host, 'host.sock')).ino;
  const before = socket();
  const again = await startDaemon({ stateDir: away });
  expect(await get(again, 'web')).toMatchObject({ status: 'running', pid });
  await stopDaemon(again);
  await eventually(() => !isAlive(host));
  // A server removes its socket at its end.
  expect(socket()).toBe(before);
});
