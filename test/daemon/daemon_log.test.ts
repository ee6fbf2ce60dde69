import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { boundDaemonLog } from '../../src/daemon/daemon_log.ts';
import { DAEMON_LOG, MIB } from '../../src/settings/limits.ts';
import { afterThisTest, tempDir, virtualClock } from '../kit/actors.ts';

function logOf() {
  const path = join(tempDir(), 'daemon.log');
  const fd = openSync(path, 'a', 0o600);
  afterThisTest(() => closeSync(fd));
  return { path, fd, print: (text: string) => writeSync(fd, text) };
}

it('moves a log that has grown aside while the daemon writes on', async () => {
  const { path, fd, print } = logOf();
  const clock = virtualClock();
  boundDaemonLog(path, clock, fd);
  print('few words\n');
  await clock.advance(2 * DAEMON_LOG.checkIntervalMs);
  expect(readFileSync(path, 'utf8')).toBe('few words\n');
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 3; count += 1) print('x'.repeat(MIB));
    print(`\nlast of ${round}\n`);
    await clock.advance(DAEMON_LOG.checkIntervalMs);
    expect(statSync(path).size).toBe(0);
    const kept = readFileSync(`${path}.1`, 'utf8');
    expect(kept.length).toBe(DAEMON_LOG.maxBytes);
    expect(kept.endsWith(`\nlast of ${round}\n`)).toBe(true);
    expect(statSync(`${path}.1`).mode & 0o777).toBe(0o600);
  }
  print('next\n');
  expect(readFileSync(path, 'utf8')).toBe('next\n');
});

it('leaves alone what is not the log', async () => {
  const { path, fd, print } = logOf();
  const other = logOf();
  const clock = virtualClock();
  boundDaemonLog(other.path, clock, fd);
  boundDaemonLog(join(tempDir(), 'none'), clock, fd);
  print('x'.repeat(2 * MIB));
  await clock.advance(2 * DAEMON_LOG.checkIntervalMs);
  expect(statSync(path).size).toBe(2 * MIB);
});
