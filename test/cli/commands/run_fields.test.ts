// Checks, limits, restarts and stops of berth.yaml, and `berth kill`, on a real daemon with real processes.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Daemon, eventually } from '../../kit/daemon.ts';
import { berth, cleanEnv, daemonOf, folder, type Ran } from '../berth_process.ts';

const hasNotify = spawnSync('systemd-notify', ['--version']).status === 0;

/** A folder with `text` as berth.yaml, and `berth` there. */
function project(
  daemon: Daemon,
  text: string,
): { put: (text: string) => void; run: (line: string) => Promise<Ran> } {
  const home = folder();
  const put = (content: string): void => writeFileSync(join(home, 'berth.yaml'), content);
  put(text);
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  return { put, run: (line) => berth(line.split(' '), { cwd: home, env }) };
}

const FILE = `
name: shop
services:
  web:
    cmd: trap 'echo got HUP' HUP; trap 'test -e quit && exit 3; exit 4' TERM; echo up 1; while :; do sleep 0.05; done
    port: null
    ready: { log: '^up \\d$' }
    live: { exec: "true", interval: 1m, failures: 2 }
    restart: { policy: on-failure, min_ms: 50, max: 2 }
    limits: { memory_mb: 512 }
    stop: { command: sleep 0.2; touch quit, grace: 3s }
`;

it('a project file sets how a run is checked, limited, restarted and stopped', async () => {
  const daemon = await daemonOf();
  const { put, run } = project(daemon, FILE);
  const first = await run('up');
  expect(first).toMatchObject({ code: 0 });
  const { body } = await daemon.request('GET', '/v1/services/shop--web');
  const registered = {
    ready: { log: '^up \\d$' },
    live: { exec: 'true', interval: 60_000, failures: 2 },
    restart: { policy: 'on-failure', minMs: 50, max: 2 },
    limits: { memoryMB: 512 },
    stop: 'sleep 0.2; touch quit',
  };
  expect(body).toMatchObject({ status: 'running', ...registered });
  expect((await run('up')).stderr).toContain('Everything is up to date.');
  expect((await run('up --dry-run')).stdout).toBe(
    'web would stay as it is, unless a value of its env has changed\n',
  );
  put((await run('config')).stdout.replace('services:', 'name: shop\nservices:'));
  expect((await run('up --dry-run')).stdout).toContain('web would stay as it is');
  put(FILE.replace('512', '256').replace('touch', 'cat >'));
  expect((await run('up --dry-run')).stdout).toBe('web would change: limits, stop; restarts\n');

  expect(await run('kill -s HUP web')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^✓ web got SIGHUP \(processes: \d+\)\n$/),
  });
  await eventually(async () => (await run('logs web')).stdout.includes('got HUP'));
  expect(await run('kill -s NOPE web')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('NOPE is not a signal'),
  });
  // The command has run before the signal came.
  const [stopped] = JSON.parse((await run('stop web --json')).stdout);
  expect(stopped).toMatchObject({ exitCode: 3, escalated: false });
  expect(stopped.ms).toBeGreaterThanOrEqual(200);
  expect((await run('logs web --run last')).code).toBe(0);
  expect(await run('logs web --run 99')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no run 99 is kept of web'),
  });
  const none = async (): Promise<string> => (await run('agent ls')).stderr;
  expect(await none()).toContain('There are no agents. ');
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', agent_type: 'shell', cmd: 'sleep 1000' });
  expect(await none()).toContain('`berth agent ls -A`');
  expect(await run('kill web')).toMatchObject({ code: 1, stderr: expect.stringContaining('has no process') });
});

it.skipIf(!hasNotify)('a program that calls systemd-notify is ready', async () => {
  const daemon = await daemonOf();
  const cmd = 'sleep 0.2; systemd-notify --ready --status=serving; exec sleep 1000';
  const { run } = project(
    daemon,
    `services: { web: { cmd: "${cmd}", port: null, ready: { notify: true } } }`,
  );
  expect(await run('up')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^✓ web is running/) });
});
