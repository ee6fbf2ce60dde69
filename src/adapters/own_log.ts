// The log file behind this process's stderr, for a background daemon and for the process host.
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import { OWN_LOG } from '../settings/limits.ts';

const STDERR = 2;

/** The size of the file open as `fd` if it is too long and is the file at `path`; otherwise null. */
function excessiveSize(fd: number, path: string): number | null {
  const open = fstatSync(fd);
  if (!open.isFile() || open.size <= OWN_LOG.maxBytes) return null;
  const named = statSync(path, { throwIfNoEntry: false });
  return named?.ino === open.ino && named.dev === open.dev ? open.size : null;
}

/**
 * Copies and truncates the file. The descriptor must stay, because threads and native code write to it too.
 */
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
 * Moves the log at `path` aside when it has grown: docs/reference.md "State directory". `fd` is left alone if
 * it is not the file at `path`, such as a pipe, or a file chosen by the user. Must be called at intervals.
 */
export function boundOwnLog(path: string, fd: number = STDERR): void {
  try {
    const size = excessiveSize(fd, path);
    if (size !== null) rotate(fd, path, size);
  } catch {
    // A full disk or a closed stderr must not end the process because of its log.
  }
}
