// docs/reference.md "File systems that do not answer": the process host on a file system whose server goes just
// after a folder there was looked up.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { deadMount } from '../kit/dead_mount.ts';
import { connectDaemon, type Daemon, newState, useHost } from '../kit/process_host.ts';

useHost();

const TERMINALS = [null, { cols: 80, rows: 24 }];
/** In the command line of each process that looks a path up before its use. */
const LOOK_UP = 'test -e';

test('a process on a mount starts in its folder, or fails with the reason', async ({ skip }) => {
  const mount = await deadMount();
  if (!mount) return skip('no right to mount a file system of FUSE');
  const cwd = join(mount.path, 'proj');
  const daemon = await connectDaemon(newState());
  const cmd = 'pwd; env | grep PWD=';
  const shown = [cwd, `PWD=${cwd}`];
  for (const [index, pty] of TERMINALS.entries()) {
    const run = await daemon.spawn(`a${index}`, cmd, { cwd, pty });
    expect(await daemon.ended(run)).toMatchObject({ exitCode: 0 });
    expect(daemon.tail(`a${index}`)).toEqual(shown);
  }
  const { run } = await daemon.spawn('web', 'exec sleep 60', { cwd });
  const report = await daemon.host.ask('exec', { service: 'web', run, cmd, timeoutMs: 60_000 });
  expect(report).toMatchObject({ exitCode: 0, output: `${shown.join('\n')}\n` });
  for (const [name, why] of [
    ['none', 'does not exist or cannot be reached'],
    ['file', 'is no directory'],
  ] as const) {
    const path = join(mount.path, name);
    await expect(daemon.spawn('b', 'true', { cwd: path })).rejects.toMatchObject({
      code: 'start_failed',
      message: `b could not be started: its working directory ${path} ${why}`,
    });
  }
});

/** Starts a process that is elsewhere, and waits for its end. */
async function startElsewhere(daemon: Daemon): Promise<void> {
  expect(await daemon.ended(await daemon.spawn('local', 'true'))).toMatchObject({ exitCode: 0 });
}

test('the host waits for no process that cannot enter its folder', async ({ skip }) => {
  const mount = await deadMount();
  if (!mount) return skip('no right to mount a file system of FUSE');
  const cwd = join(mount.path, 'proj');
  const daemon = await connectDaemon(newState());
  const { run } = await daemon.spawn('web', 'exec sleep 60', { cwd });
  await mount.die(LOOK_UP);
  const check = daemon.host.ask('exec', { service: 'web', run, cmd: 'true', timeoutMs: 500 });
  await startElsewhere(daemon);
  expect(await check).toMatchObject({ timedOut: true });
  for (const [index, pty] of TERMINALS.entries()) {
    const there = await daemon.spawn(`a${index}`, 'exec sleep 60', { cwd, pty });
    await startElsewhere(daemon);
    await daemon.stop(there);
    expect(await daemon.ended(there)).toMatchObject({ exitUnknown: false });
  }
});
