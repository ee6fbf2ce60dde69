import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { holdOutput } from '../../../src/adapters/host/run_pipes.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-hold-'));
const fifo = join(folder, 'run.out');
execFileSync('mkfifo', [fifo]);
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Prints as a service does, and ends. */
function printAndEnd(text: string): void {
  const fd = openSync(fifo, constants.O_RDWR);
  writeSync(fd, text);
  closeSync(fd);
}

/** What the next host reads. */
function readAll(): string {
  const fd = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(100);
  const count = readSync(fd, buffer);
  closeSync(fd);
  return buffer.toString('utf8', 0, count);
}

describe('output', () => {
  it('of a service that ends without a host is kept for the next one while it is held', () => {
    printAndEnd('gone');
    expect(readAll()).toBe('');
    const release = holdOutput(folder);
    printAndEnd('kept');
    expect(readAll()).toBe('kept');
    release();
    printAndEnd('gone again');
    expect(readAll()).toBe('');
  });

  it('is not held while no host has created the folder', () => {
    const release = holdOutput(join(folder, 'none'));
    expect(release).not.toThrow();
  });
});
