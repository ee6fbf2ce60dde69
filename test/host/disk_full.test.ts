// docs/reference.md "Full disk": it costs output, which is counted, and refuses starts; it never blocks a
// service.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  after,
  connectDaemon,
  type Daemon,
  entry,
  eventually,
  hostsOf,
  newState,
  useHost,
} from '../kit/process_host.ts';

useHost();

const dropped = async (daemon: Daemon, service: string) =>
  (await daemon.host.ask('dropped', {})).rows.find((row) => row.service === service)?.bytes ?? 0;

test('output lost to a limit on file size is counted, and logs continue after it', async () => {
  const stateDir = newState();
  mkdirSync(stateDir, { recursive: true });
  // 64 KiB per file acts like a full disk, for one file at a time.
  const host = spawn(
    'sh',
    ['-c', `trap '' XFSZ; ulimit -f 128; exec ${process.execPath} ${entry} ${stateDir}`],
    { stdio: 'ignore' },
  );
  await once(host, 'spawn');
  await eventually(() => existsSync(join(stateDir, 'host', 'host.sock')));
  const daemon = await connectDaemon(stateDir);
  expect(daemon.connection.hostPid).toBe(host.pid);
  const started = await daemon.spawn('web', 'head -c 1000000 /dev/zero | tr "\\0" x; exit 5');
  expect(await daemon.ended(started)).toMatchObject({ exitCode: 5 });
  expect(daemon.whole('web').length).toBe(65_536);
  expect(await dropped(daemon, 'web')).toBe(1_000_000 - 65_536);
  // The next file has room.
  await daemon.host.ask('logLimits', { maxBytes: 10_000, keep: 5 });
  await daemon.ended(await daemon.spawn('web', 'echo back'));
  expect(daemon.tail('web', 1)).toEqual(['back']);
});

/** A file system of `size`; undefined where mounting is not allowed. */
function smallDisk(path: string, size: string): boolean {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', path], { stdio: 'ignore' });
  } catch {
    return false;
  }
  after(async () => {
    for (const pid of hostsOf(path)) process.kill(pid, 'SIGKILL');
    await eventually(() => hostsOf(path).length === 0);
    execFileSync('umount', ['-l', path]);
  });
  return true;
}

test('on a full disk output is dropped, starts are refused, and ends are reported', async ({ skip }) => {
  const stateDir = newState();
  skip(!smallDisk(stateDir, '1m'), 'no right to mount a small file system');
  const daemon = await connectDaemon(stateDir);
  const gate = join(stateDir, '..', 'gate');
  const waiting = await daemon.spawn('waiting', `while [ ! -e ${gate} ]; do sleep 0.02; done; exit 4`);
  const loud = await daemon.spawn('loud', 'head -c 3000000 /dev/zero | tr "\\0" x; exit 6');
  expect(await daemon.ended(loud)).toMatchObject({ exitCode: 6 });
  const kept = daemon.whole('loud').length;
  expect(kept).toBeGreaterThan(500_000);
  expect(await dropped(daemon, 'loud')).toBe(3_000_000 - kept);
  const refusal = async () => {
    try {
      const started = await daemon.spawn('next', 'exit 0');
      await daemon.ended(started);
      return undefined;
    } catch (error) {
      return error;
    }
  };
  expect(await eventually(refusal)).toMatchObject({ code: 'storage_full' });
  writeFileSync(gate, '');
  expect(await daemon.ended(waiting)).toMatchObject({ exitCode: 4 });

  await daemon.host.ask('forget', { service: 'loud' });
  await daemon.ended(await daemon.spawn('next', 'echo back'));
  expect(daemon.tail('next', 1)).toEqual(['back']);
  // The pending end was written once there was room.
  process.kill(daemon.connection.hostPid, 'SIGKILL');
  await daemon.lost;
  const second = await connectDaemon(stateDir);
  expect((await second.host.ask('runOf', { service: 'waiting' })).run?.end).toMatchObject({
    exitCode: 4,
    exitUnknown: false,
  });
});
