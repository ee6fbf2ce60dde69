// A small file system of its own, to be filled.
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterThisTest, tempDir } from './actors.ts';

/** The folder of a file system of `size`, as mount takes it; undefined where mounting is not allowed. */
export function smallDisk(size: string): string | undefined {
  const path = join(tempDir(), 'disk');
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', path], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  afterThisTest(() => void execFileSync('umount', ['-l', path]));
  return path;
}

/** Fills the disk to its last byte, by the file `path` on it. */
export function fillDisk(path: string): void {
  const fd = openSync(path, 'a');
  for (const bytes of [65_536, 4_096, 1]) {
    try {
      for (;;) writeSync(fd, Buffer.alloc(bytes, 'x'));
    } catch {
      // No room for as many any more.
    }
  }
  closeSync(fd);
}
