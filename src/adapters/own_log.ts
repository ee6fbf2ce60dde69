// The file that this process logs to by its stderr: of a daemon in the background, and of the process host.
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import { OWN_LOG } from '../settings/limits.ts';

const STDERR = 2;

/** The size of the file that is open as `fd` if it is too long, and is the one at `path`; else null. */
function excessiveSize(fd: number, path: string): number | null {
  const open = fstatSync(fd);
  if (!open.isFile() || open.size <= OWN_LOG.maxBytes) return null;
  const named = statSync(path, { throwIfNoEntry: false });
  return named?.ino === open.ino && named.dev === open.dev ? open.size : null;
}

/** The descriptor stays, because threads and native code write to it too: the file is copied and emptied. */
function rotate(fd: number, path: string, size: number): void {
  const tail = Buffer.allocUnsafeSlow(Math.min(size, OWN_LOG.maxBytes));
  const source = openSync(path, 'r');
  try {
    readSync(source, tail, 0, tail.length, size - tail.length);
  } finally {
    closeSync(source);
    ftruncateSync(fd, 0);
  }
  writeFileSync(`${path}.1`, tail, { mode: 0o600 });
}

/**
 * Moves the log at `path` aside when it has grown: docs/reference.md "State directory". `fd` is left alone
 * when it is not the file at `path`, such as a pipe, or a file that the user has chosen. To be called at
 * intervals.
 */
export function boundOwnLog(path: string, fd: number = STDERR): void {
  try {
    const size = excessiveSize(fd, path);
    if (size !== null) rotate(fd, path, size);
  } catch {
    // A full disk, or a closed stderr: the log is no reason to end.
  }
}
