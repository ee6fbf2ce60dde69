// docs/reference.md "State directory": the logs of Berth's own processes stay short.
import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { boundOwnLog } from '../../src/adapters/own_log.ts';
import { MIB, OWN_LOG } from '../../src/settings/limits.ts';
import { afterThisTest, tempDir } from '../kit/actors.ts';

function logOf() {
  const path = join(tempDir(), 'daemon.log');
  const fd = openSync(path, 'a', 0o600);
  afterThisTest(() => closeSync(fd));
  return { path, fd, print: (text: string) => writeSync(fd, text) };
}

it('a log that is too large is moved while the process continues to write', () => {
  const { path, fd, print } = logOf();
  print('few words\n');
  boundOwnLog(path, fd);
  expect(readFileSync(path, 'utf8')).toBe('few words\n');
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 3; count += 1) print('x'.repeat(MIB));
    print(`\nlast of ${round}\n`);
    boundOwnLog(path, fd);
    expect(statSync(path).size).toBe(0);
    const kept = readFileSync(`${path}.1`, 'utf8');
    expect(kept.length).toBe(OWN_LOG.maxBytes);
    expect(kept.endsWith(`\nlast of ${round}\n`)).toBe(true);
    expect(statSync(`${path}.1`).mode & 0o777).toBe(0o600);
  }
  print('next\n');
  expect(readFileSync(path, 'utf8')).toBe('next\n');
});

it('a file that is not the log is left alone', () => {
  const { path, fd, print } = logOf();
  const other = logOf();
  print('x'.repeat(2 * MIB));
  boundOwnLog(other.path, fd);
  boundOwnLog(join(tempDir(), 'none'), fd);
  expect(statSync(path).size).toBe(2 * MIB);
});
