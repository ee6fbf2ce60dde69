// Odd things in the place of a file of the state directory: docs/reference.md "State directory". Opening a
// FIFO waits for its other side, and lmdb ends the process at a device, so each place is looked at first.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { TEXT_FILE } from './limits.ts';
import { statePaths } from './state_paths.ts';

/** Something else is in the place of a file or folder. The message is one line that names it. */
export class StateFileError extends Error {
  override readonly name = 'StateFileError';
}

const KINDS: readonly [kind: string, isThat: (stat: Stats) => boolean][] = [
  ['a file', (stat) => stat.isFile()],
  ['a folder', (stat) => stat.isDirectory()],
  ['a FIFO', (stat) => stat.isFIFO()],
  ['a socket', (stat) => stat.isSocket()],
];

const kindOf = (stat: Stats): string => KINDS.find(([, isThat]) => isThat(stat))?.[0] ?? 'a device';

function checkKind(path: string, needed: 'a file' | 'a folder'): void {
  if (!lstatSync(path, { throwIfNoEntry: false })) return;
  const stat = statSync(path, { throwIfNoEntry: false });
  const kind = stat ? kindOf(stat) : 'a link that leads nowhere';
  if (kind !== needed) throw new StateFileError(`${path}: is ${kind}, and not ${needed}: remove it`);
}

/** What is in a folder; nothing where it is not there yet. */
const filesIn = (folder: string): string[] =>
  (statSync(folder, { throwIfNoEntry: false }) ? readdirSync(folder) : []).map((name) => join(folder, name));

/**
 * Checks what is in the state directory, before anything opens it. Secrets and the output of services are
 * checked where they are opened. Throws a StateFileError, or the system's error.
 */
export function checkStateFiles(stateDir: string): void {
  const paths = statePaths(stateDir);
  const { addressFile, daemonLog, earlierRedirectPage, events, host, logs, redirectPages, runs } = paths;
  const { cloudEvents, damaged, hostLog, store, storeCopy } = paths;
  for (const folder of [cloudEvents, damaged, events, host, logs, redirectPages, runs])
    checkKind(folder, 'a folder');
  const lock = `${store}-lock`;
  const files = [
    ...[addressFile, daemonLog, earlierRedirectPage, hostLog, store, lock, storeCopy],
    ...['ledger', 'ledger.new', 'lock'].map((name) => join(host, name)),
    ...[events, cloudEvents].flatMap(filesIn),
  ];
  for (const file of files) checkKind(file, 'a file');
  // lmdb truncates it, whatever a link leads to.
  if (lstatSync(lock, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new StateFileError(`${lock}: is a link, and not a file: remove it`);
}

/**
 * Opens a file and never waits, whatever is in its place. Throws a StateFileError when that is no file, or
 * the system's error.
 */
export function openRegularFile(path: string, flags: number, mode?: number): number {
  const fd = openSync(path, flags | constants.O_NONBLOCK, mode);
  const stat = fstatSync(fd);
  if (stat.isFile()) return fd;
  closeSync(fd);
  throw new StateFileError(`${path}: is ${kindOf(stat)}, and not a file`);
}

/**
 * The text of a file that others may have written, such as a project file. A pipe is read to its end. Throws
 * the system's error, or one that says the limit.
 */
export function readTextFile(path: string): string {
  const { maxBytes } = TEXT_FILE;
  const buffer = Buffer.allocUnsafe(maxBytes + 1);
  const fd = openSync(path, 'r');
  try {
    let length = 0;
    for (let count = -1; count !== 0 && length <= maxBytes; length += count)
      count = readSync(fd, buffer, length, buffer.length - length, null);
    if (length > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    return buffer.toString('utf8', 0, length);
  } finally {
    closeSync(fd);
  }
}
