// Guards against unexpected objects in place of files in the state directory:
// docs/reference.md "State directory". Opening a FIFO waits for its other side, and lmdb ends the process on
// a device, so each path is checked first.
import { isUtf8 } from 'node:buffer';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TEXT_FILE } from './limits.ts';
import { ledgerLinkOf, statePaths } from './state_paths.ts';

/** How often a pipe without bytes is read again. */
const PIPE_POLL_MS = 20;

/** Something else is in place of a file or folder. The message is one line that names it. */
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

/** Throws a StateFileError, which says what it is, if `stat` is not of a regular file. */
export function assertRegularFile(stat: Stats): void {
  if (!stat.isFile()) throw new StateFileError(`it is ${kindOf(stat)}, and not a file`);
}

function checkKind(path: string, needed: 'a file' | 'a folder'): void {
  if (!lstatSync(path, { throwIfNoEntry: false })) return;
  const stat = statSync(path, { throwIfNoEntry: false });
  const kind = stat ? kindOf(stat) : 'a link that leads nowhere';
  if (kind !== needed) throw new StateFileError(`${path}: is ${kind}, and not ${needed}: remove it`);
}

/** The contents of a folder; empty if it does not exist yet. */
const filesIn = (folder: string): string[] =>
  (statSync(folder, { throwIfNoEntry: false }) ? readdirSync(folder) : []).map((name) => join(folder, name));

/**
 * Checks the contents of the state directory before anything opens them. Secrets and the output of services
 * are checked where they are opened. Throws a StateFileError, or the system's error.
 */
export function checkStateFiles(stateDir: string): void {
  const paths = statePaths(stateDir);
  const { addressFile, daemonLog, earlierRedirectPage, events, host, logs, redirectPages, runs } = paths;
  const { cloudEvents, damaged, hostLog, store, storeCopy } = paths;
  for (const folder of [cloudEvents, damaged, events, host, logs, redirectPages, runs])
    checkKind(folder, 'a folder');
  const lock = `${store}-lock`;
  const files = [
    ...[addressFile, daemonLog, earlierRedirectPage, hostLog, store, lock, storeCopy, ledgerLinkOf(host)],
    ...['ledger', 'ledger.new', 'lock'].map((name) => join(host, name)),
    ...[events, cloudEvents].flatMap(filesIn),
  ];
  for (const file of files) checkKind(file, 'a file');
  // lmdb truncates it, wherever a link leads.
  if (lstatSync(lock, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new StateFileError(`${lock}: is a link, and not a file: remove it`);
}

/**
 * Opens a file without ever waiting, whatever is in its place. Throws a StateFileError when it is not a
 * regular file, or the system's error.
 */
export function openRegularFile(path: string, flags: number, mode?: number): number {
  const fd = openSync(path, flags | constants.O_NONBLOCK, mode);
  const stat = fstatSync(fd);
  if (stat.isFile()) return fd;
  closeSync(fd);
  throw new StateFileError(`${path}: is ${kindOf(stat)}, and not a file`);
}

/** Opens `path` for reading without waiting. If it is not a file, throws an error that says what it is. */
function openText(path: string): { fd: number; stat: Stats } {
  const stat = statSync(path);
  // The system's own messages for these two name neither.
  if (stat.isDirectory() || stat.isSocket()) assertRegularFile(stat);
  return { fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), stat };
}

/** Collects the pieces of a text up to its limit. */
class TextBuffer {
  private readonly bytes = Buffer.allocUnsafe(TEXT_FILE.maxBytes + 1);
  length = 0;

  /** Reads once, and returns the number of bytes. Throws the system's error, or one that states the limit. */
  readFrom(fd: number): number {
    const count = readSync(fd, this.bytes, this.length, this.bytes.length - this.length, null);
    this.length += count;
    if (this.length > TEXT_FILE.maxBytes) throw new Error(`it is larger than ${TEXT_FILE.maxBytes} bytes`);
    return count;
  }

  toString(): string {
    return this.bytes.toString('utf8', 0, this.length);
  }

  /** The text. Throws a StateFileError when it is not UTF-8. */
  utf8(): string {
    if (!isUtf8(this.bytes.subarray(0, this.length))) throw new StateFileError('it is not UTF-8');
    return this.toString();
  }
}

function readFile(path: string, isDeviceAllowed: boolean): TextBuffer {
  const { fd, stat } = openText(path);
  try {
    if (stat.isFIFO() || !isDeviceAllowed) assertRegularFile(stat);
    const text = new TextBuffer();
    while (text.readFrom(fd) > 0);
    return text;
  } finally {
    closeSync(fd);
  }
}

/**
 * The text of a file that others may have written. Never waits: a FIFO is refused, and a device must have its
 * end at hand, as `/dev/null` does. Throws the system's error, or one that says what is wrong.
 */
export const readTextFile = (path: string): string => readFile(path, true).toString();

/** As `readTextFile`, for a file that is written back: a device, and what is not UTF-8, are refused too. */
export function readUtf8File(path: string): string {
  return readFile(path, false).utf8();
}

/** A nameless pipe, as from `<(command)`, cannot be found again by its path. */
export const isNamelessPipe = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isFIFO() === true && !existsSync(realpathSync(path));

function readIfThere(text: TextBuffer, fd: number): number | null {
  try {
    return text.readFrom(fd);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return null;
    throw error;
  }
}

/**
 * The text of a file, pipe or terminal named by the user of the command line, read to its end. Waits for the
 * writer of a pipe while still handling signals. Throws as `readTextFile` does, when it is not UTF-8, and the
 * reason of `signal` when that ends the wait.
 */
export async function readTextInput(path: string, signal?: AbortSignal): Promise<string> {
  const { fd, stat } = openText(path);
  try {
    const text = new TextBuffer();
    // A named pipe reads as empty until someone has opened it for writing.
    const isAwaited = stat.isFIFO() && !isNamelessPipe(path);
    for (;;) {
      const count = readIfThere(text, fd);
      if (count === 0 && !(isAwaited && text.length === 0)) return text.utf8();
      signal?.throwIfAborted();
      if (!count) await sleep(PIPE_POLL_MS);
    }
  } finally {
    closeSync(fd);
  }
}
