// docs/reference.md "File systems that do not answer": services on a file system whose server goes, beside
// others that must not notice.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../kit/daemon.ts';
import { deadMount } from '../kit/dead_mount.ts';
import { eventually } from '../kit/eventually.ts';

const CMD = 'exec sleep 1000';

async function register(daemon: Daemon, name: string, more: object): Promise<void> {
  const spec = { name, port: null, cmd: CMD, cwd: '/tmp', ...more };
  expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
}

const change = (daemon: Daemon, name: string, what: string) =>
  daemon.request('POST', `/v1/services/${name}/${what}`);

it('what is on a dead file system fails with the reason, and nothing else waits', async ({ skip }) => {
  const mount = await deadMount();
  if (!mount) return skip('no right to mount a file system of FUSE');
  const proj = join(mount.path, 'proj');
  let daemon = await startDaemon();
  await register(daemon, 'local', {});
  await register(daemon, 'there', { cwd: proj });
  await register(daemon, 'probed', {
    cwd: proj,
    ready: { exec: 'true' },
    live: { exec: 'true', interval: 50, failures: 1 },
  });
  await register(daemon, 'file', { envFile: [join(proj, '.env')] });
  await register(daemon, 'task', { cwd: proj, kind: 'task', cmd: 'true', inputs: ['**'] });
  await register(daemon, 'watching', { watch: { paths: [join(proj, '**')] } });
  expect((await daemon.request('POST', '/v1/stacks', { project: 'dead', path: proj })).status).toBe(201);
  expect((await change(daemon, 'there', 'start')).status).toBe(200);
  expect((await change(daemon, 'probed', 'start')).status).toBe(200);
  expect((await change(daemon, 'there', 'stop')).status).toBe(200);
  await mount.die();
  const reason = expect.stringContaining(`is on ${mount.path}, a file system that does not answer`);
  const failed = { status: 502, body: { code: 'start_failed', message: reason } };
  const others = async (): Promise<void> => {
    for (const what of ['start', 'stop']) expect((await change(daemon, 'local', what)).status).toBe(200);
  };
  const under = ['there', 'file', 'task'].map((name) => change(daemon, name, 'start'));
  const stacks = daemon.request('GET', '/v1/stacks');
  await others();
  for (const start of under) expect(await start).toMatchObject(failed);
  expect((await stacks).body).toMatchObject({ stacks: [{ name: 'dead', gone: false }] });
  expect((await change(daemon, 'watching', 'start')).status).toBe(200);
  const isWatchRefused = async () => {
    const { body } = await daemon.request('GET', '/v1/services/watching/explain');
    return String(body.watching?.trouble).includes(`is on ${mount.path}, a file system that does not answer`);
  };
  await eventually(isWatchRefused);
  await others();
  // A live-check whose process cannot begin has failed.
  const statusOf = async (name: string) => (await daemon.request('GET', `/v1/services/${name}`)).body.status;
  await eventually(async () => (await statusOf('probed')) !== 'running');
  daemon.signal('SIGKILL');
  await daemon.exited;
  daemon = await startDaemon({ stateDir: daemon.stateDir });
  await eventually(isWatchRefused);
  await others();
}, 90_000);
