// `berth daemon restart` and `stop` in what Berth itself runs: docs/reference.md "Shutdown".
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runningDaemon } from '../../../src/adapters/process/running_daemon.ts';
import { EXIT_CODE } from '../../../src/cli/kit/exit_codes.ts';
import { stateDirId, statePaths } from '../../../src/settings/state_paths.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { BIN } from '../../kit/built_program.ts';
import { type Daemon, eventually, isAlive } from '../../kit/daemon.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

/** A command in which `$BERTH` is the program with the options for this daemon. */
const within = ({ configFile, stateDir }: Daemon, cmd: string): string =>
  cmd.replace('$BERTH', `'${process.execPath}' '${BIN}' --state-dir '${stateDir}' --config '${configFile}'`);

async function setting(config = '') {
  const daemon = await daemonOf({ config });
  const cwd = folder();
  const env = { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile };
  const register = async (name: string, { cmd, ...fields }: { cmd: string }): Promise<void> => {
    const spec = { name, port: null, cwd, cmd: within(daemon, cmd), ...fields };
    expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  };
  const run = (args: string[]) => berth(args, { env: cleanEnv(folder(), env) });
  await register('web', { cmd: 'exec sleep 1000' });
  const { pid } = (await daemon.request('POST', '/v1/services/web/start')).body;
  return { daemon, cwd, register, run, web: pid as number };
}

/** Waits for a daemon in place of `daemon`, which has ended in order. */
async function successorOf({ exited, pid, stateDir }: Daemon): Promise<number> {
  expect(await exited).toEqual({ code: 0, signal: null });
  return eventually(() => {
    const next = runningDaemon(stateDir)?.pid;
    return next !== undefined && next !== pid && next;
  });
}

it.each([
  ['service', { cmd: '$BERTH daemon restart' }],
  ['task', { cmd: '$BERTH daemon restart', kind: 'task' }],
  // Nothing of it tells but the processes above.
  ['service without its environment', { cmd: 'env -u BERTH_RUN -u BERTH_STATE_ID $BERTH daemon restart; :' }],
  // Nor do those, up to the process host.
  ['service that has cleared its environment', { cmd: 'exec env -i $BERTH daemon restart' }],
])('a daemon restart in a %s starts the next daemon', async (_, fields) => {
  const { daemon, register, run, web } = await setting();
  await register('again', fields);
  try {
    await daemon.request('POST', '/v1/services/again/start?wait=false');
    const next = await successorOf(daemon);
    expect(isAlive(web)).toBe(false);
    expect(JSON.parse((await run(['daemon', 'status', '--json'])).stdout)).toMatchObject({ pid: next });
  } finally {
    await run(['daemon', 'stop']);
  }
});

it('a daemon restart in berth run starts the next daemon', async () => {
  const { daemon, run, web } = await setting();
  const umask = async () => (await run(['run', '--', 'umask'])).stdout;
  const before = await umask();
  try {
    await run(['run', '--', within(daemon, '$BERTH daemon restart')]);
    await successorOf(daemon);
    expect(isAlive(web)).toBe(false);
    expect(await umask()).toBe(before);
  } finally {
    await run(['daemon', 'stop']);
  }
});

it('a daemon restart in a service succeeds there if services are kept', async () => {
  const { cwd, daemon, register, run, web } = await setting('[shutdown]\nservices = "keep"\n');
  await register('again', { cmd: '$BERTH daemon restart >said 2>&1; echo $? >code; exec sleep 1000' });
  try {
    await daemon.request('POST', '/v1/services/again/start');
    const next = await successorOf(daemon);
    await eventually(
      () => existsSync(join(cwd, 'code')) && readFileSync(join(cwd, 'code'), 'utf8') === '0\n',
    );
    expect(readFileSync(join(cwd, 'said'), 'utf8')).toContain(`(pid ${next})`);
    expect(isAlive(web)).toBe(true);
    await run(['rm', 'again', 'web']);
  } finally {
    await run(['daemon', 'stop']);
  }
});

it('a daemon stop in berth run is carried out, and says that it may end the shell', async () => {
  const { daemon, run, web } = await setting();
  const ran = await run(['run', '--', within(daemon, '$BERTH daemon stop')]);
  expect(await daemon.exited).toEqual({ code: 0, signal: null });
  expect(ran.stderr).toContain('`berth daemon restart` also works from here.');
  expect(isAlive(web)).toBe(false);
});

it('a daemon that cannot restart itself is left alone by a restart from within', async () => {
  const stateDir = folder();
  const earlier = spawn('sleep', ['1000']);
  afterThisTest(() => void earlier.kill('SIGKILL'));
  const record = { pid: earlier.pid, port: 1, startTime: 0, gatewayPort: null, version: '0' };
  writeFileSync(statePaths(stateDir).addressFile, JSON.stringify(record));
  const more = { BERTH_STATE_DIR: stateDir, BERTH_STATE_ID: stateDirId(stateDir) };
  expect(await berth(['daemon', 'restart'], { env: cleanEnv(folder(), more) })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('this command would end with the daemon'),
  });
  expect(isAlive(Number(earlier.pid))).toBe(true);
});

it('a daemon restart in what another daemon runs is refused, unless it names the state directory', async () => {
  const { daemon, run, web } = await setting();
  const refused = await run(['run', '--', process.execPath, BIN, 'daemon', 'restart']);
  expect(refused.code).toBe(EXIT_CODE.usage);
  expect(refused.stdout + refused.stderr).toContain('Name its state directory with --state-dir.');
  expect([isAlive(daemon.pid), isAlive(web)]).toEqual([true, true]);
});
