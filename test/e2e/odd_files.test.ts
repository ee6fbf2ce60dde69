// Odd things in the state directory of the real daemon: docs/reference.md "State directory".
import { execFileSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, openSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';

it.each([
  ['store.mdb', (path: string) => void execFileSync('mkfifo', [path]), 'is a FIFO'],
  ['store.mdb', (path: string) => symlinkSync('/dev/zero', path), 'is a device'],
  ['store.mdb-lock', (path: string) => symlinkSync('/etc/hostname', path), 'is a link'],
  [
    'cloud-events/events-0000000000000001.jsonl',
    (path: string) => void execFileSync('mkfifo', [path]),
    'is a FIFO',
  ],
  ['host/ledger', (path: string) => mkdirSync(path), 'is a folder'],
])('%s that is not a file ends the start with one line', async (name, make, said) => {
  const state = join(newFolder(), 'state');
  const path = join(state, name);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  make(path);
  await expect(startDaemon({ stateDir: state })).rejects.toThrow(
    `the daemon ended (1): berth: ${path}: ${said}, and not a file: remove it\n`,
  );
});

it('too few open files end the start with one line', async () => {
  await expect(startDaemon({ maxFiles: 64 })).rejects.toThrow(
    'the daemon ended (2): berth: the limit of open files is 64, and the daemon needs 128: raise it with `ulimit -n 1024`\n',
  );
});

it('a FIFO in the place of a log delays nothing', async () => {
  const daemon = await startDaemon();
  const folder = join(daemon.stateDir, 'logs', 'web');
  mkdirSync(folder, { recursive: true });
  execFileSync('mkfifo', [join(folder, 'out.log')]);
  await daemon.request('POST', '/v1/services', {
    name: 'web',
    port: freePort(),
    cmd: 'echo up; exec sleep 100',
  });
  expect((await daemon.request('POST', '/v1/services/web/start')).status).toBe(200);
  expect((await daemon.request('GET', '/v1/services/web/logs')).body.lines).toEqual([]);
  expect((await daemon.request('GET', '/v1/services/web/explain')).status).toBe(200);
  expect((await daemon.request('POST', '/v1/services/web/stop')).status).toBe(200);
});

it('a file that takes minutes to hash keeps no other task from its start', async () => {
  const daemon = await startDaemon();
  const cwd = newFolder();
  const big = openSync(join(cwd, 'big'), 'w');
  ftruncateSync(big, 2 ** 40);
  closeSync(big);
  const task = (name: string, inputs: string[]) =>
    daemon.request('POST', '/v1/services', { name, kind: 'task', cmd: 'true', port: null, cwd, inputs });
  for (const name of ['one', 'two', 'three']) {
    await task(name, ['big']);
    const { status, body } = await daemon.request('POST', `/v1/services/${name}/start?timeout=100`);
    expect([status, body.code, body.message]).toEqual([
      502,
      'ready_timeout',
      expect.stringContaining('inputs'),
    ]);
  }
  await task('small', ['*.sql']);
  const { body } = await daemon.request('POST', '/v1/services/small/start?timeout=20000');
  expect(body).toMatchObject({ status: 'completed' });
});
