// docs/reference.md "Hung threads", in the real daemon.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { type Daemon, eventually, isAlive, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';

const HOOK = fileURLToPath(new URL('./hang_on_request.cjs', import.meta.url));
/** Longer than a thread may be silent. */
const STOPPED_MS = Number(process.env['BERTH_STOPPED_MS'] ?? 7_000);

/** A daemon with a running service, and a function that makes one of its threads hang. */
async function daemonWithService(): Promise<{
  daemon: Daemon;
  pid: number;
  hang: (thread: 'main' | 'services') => Promise<void>;
}> {
  const file = join(newFolder(), 'hang');
  const env = { NODE_OPTIONS: `--require ${HOOK}`, HANG_FILE: file };
  const daemon = await startDaemon({ env });
  await daemon.request('POST', '/v1/services', { name: 'web', port: freePort(), cmd: 'exec sleep 1000' });
  const { body } = await daemon.request('POST', '/v1/services/web/start');
  return {
    daemon,
    pid: body.pid,
    hang: async (thread) => {
      writeFileSync(`${file}.${thread}`, '');
      await eventually(() => existsSync(`${file}.${thread}.hangs`));
    },
  };
}

it('a services thread that hangs is replaced, /readyz reports it, and services continue', async () => {
  const { daemon, pid, hang } = await daemonWithService();
  await hang('services');
  await eventually(async () => {
    const { status, body } = await daemon.request('GET', '/readyz');
    return status === 503 && /services-0 has missed \d+ heartbeats/.test(body.message);
  });
  expect((await daemon.request('GET', '/livez')).status).toBe(200);
  await eventually(async () => (await daemon.request('GET', '/readyz')).status === 200);
  expect(daemon.stderr()).toMatch(/the thread services-0 does not answer: it computes/);
  expect(daemon.stderr()).toMatch(/at hangOnRequest \(.*hang_on_request\.cjs:\d+\)/);
  expect((await daemon.request('GET', '/v1/services/web')).body).toMatchObject({ status: 'running', pid });
  expect((await daemon.request('POST', '/v1/services/web/restart')).status).toBe(200);
}, 60_000);

it('a main thread that hangs ends the process, and the next daemon takes the services over', async () => {
  const { daemon, pid, hang } = await daemonWithService();
  await hang('main');
  expect(await daemon.exited).toEqual({ code: null, signal: 'SIGKILL' });
  expect(daemon.stderr()).toMatch(/the thread main does not answer: it computes/);
  expect(daemon.stderr()).toMatch(/at hangOnRequest/);
  const next = await startDaemon({ stateDir: daemon.stateDir });
  expect((await next.request('GET', '/v1/services/web')).body).toMatchObject({ status: 'running', pid });
}, 60_000);

it('SIGTERM ends a daemon whose services thread hangs, and its services with it', async () => {
  const { daemon, pid, hang } = await daemonWithService();
  await hang('services');
  daemon.signal('SIGTERM');
  expect(await daemon.exited).toEqual({ code: 0, signal: null });
  expect(isAlive(pid)).toBe(false);
}, 60_000);

it('a daemon that was suspended as a whole continues', async () => {
  const { daemon, pid } = await daemonWithService();
  daemon.signal('SIGSTOP');
  await pause(STOPPED_MS);
  daemon.signal('SIGCONT');
  expect((await daemon.request('POST', '/v1/services/web/start')).body.code).toBe('already_running');
  // Some more checks.
  await pause(3_000);
  expect((await daemon.request('GET', '/v1/services/web')).body).toMatchObject({ status: 'running', pid });
  expect(daemon.stderr()).not.toMatch(/does not answer/);
}, 60_000);
