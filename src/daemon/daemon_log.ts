// The daemon's log, which is its stderr.
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import type { Clock } from '../runtime/actor.ts';
import { DAEMON_LOG } from '../settings/limits.ts';

/** Writes a line to the daemon's log. A worker's lines go through the main thread. */
export const report = (line: string): void => void process.stderr.write(`berth: ${line}\n`);

/** An error with its stack. */
export const describeError = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

/** Reports a defect: an exception that is not a Failure. */
export const reportDefect = (error: unknown): void => report(`defect: ${describeError(error)}`);

/** Reports the crash of an actor. */
export const reportCrash = (address: string, error: unknown, ended: boolean): void =>
  report(`${address} crashed${ended ? ' and does not start again' : ''}: ${describeError(error)}`);

const STDERR = 2;

/** The size of the file that is open as `fd` if it is the one at `path`; null for any other. */
function openSize(fd: number, path: string): number | null {
  const open = fstatSync(fd);
  const named = statSync(path, { throwIfNoEntry: false });
  return open.isFile() && named?.ino === open.ino && named.dev === open.dev ? open.size : null;
}

/** The descriptor stays, because threads and native code write to it too: the file is copied and emptied. */
function rotate(fd: number, path: string, size: number): void {
  const tail = Buffer.allocUnsafeSlow(Math.min(size, DAEMON_LOG.maxBytes));
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
 * Keeps the log of a daemon in the background from growing: docs/reference.md "State directory". `fd` is left
 * alone when it is not the file at `path`, such as a pipe, or a file that the user has chosen.
 */
export function boundDaemonLog(path: string, clock: Clock, fd: number = STDERR): () => void {
  return clock.every(DAEMON_LOG.checkIntervalMs, () => {
    try {
      const size = openSize(fd, path);
      if (size !== null && size > DAEMON_LOG.maxBytes) rotate(fd, path, size);
    } catch {
      // A full disk, or a closed stderr: the log is no reason to end.
    }
  });
}
