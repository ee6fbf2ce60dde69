// The writing side of the logs of one service; how they lie on disk stands in protocol/log.ts.
// Everything is written at once and synchronously to the page cache: a reader of the files sees all that the host has read.
// A full disk costs output, which is counted, and never waits.
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { LogLimits } from '../protocol/host.ts';
import {
  decodeIndexRecord,
  encodeIndexRecord,
  INDEX_FILE,
  LOG_FILE,
  type LogStream,
  MAX_RECORD_SPAN_MS,
  NO_RUN_ID,
  RECORD_BYTES,
  rotatedFileName,
} from './format.ts';
import { rotatedStarts } from './reader.ts';

/** Every so often the files are looked at: somebody may have removed or emptied them. */
const CHECK_MS = 1_000;
const { O_CREAT, O_RDWR } = constants;

export interface LogWriter {
  /** Adds what a process printed. Never throws. */
  append(stream: LogStream, run: string, bytes: Uint8Array): void;
  /** The logical offset after the last byte. */
  readonly end: number;
  /** Bytes lost to a full disk so far. */
  readonly dropped: number;
  close(): void;
}

interface LogFiles {
  log: number;
  index: number;
  /** The logical offset of the first byte of the file. */
  start: number;
  size: number;
  /** Bytes of the index. */
  indexed: number;
  last: { stream: LogStream; run: string; time: number };
}

const recordBuffer = Buffer.alloc(RECORD_BYTES);
const NO_RECORD = { stream: 0, run: '', time: 0 } as const;

/** Writes all of `bytes` at `position`, or as much as fits on the disk; returns how much that was. */
function writeWhatFits(fd: number, bytes: Uint8Array, position: number): number {
  let done = 0;
  try {
    while (done < bytes.length) {
      const count = writeSync(fd, bytes, done, bytes.length - done, position + done);
      if (count === 0) break;
      done += count;
    }
  } catch {
    // Full, or over a limit of the user: what does not fit is the caller's loss.
  }
  return done;
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

/** The logical end of what an index promises and its log holds. */
interface IndexExtent {
  start: number;
  /** The offset of the last record: there were at least this many bytes. */
  promised: number;
  indexed: number;
}

function indexExtentOf(path: string): IndexExtent | undefined {
  const size = sizeOf(path);
  if (size === undefined || size < RECORD_BYTES) return undefined;
  const fd = openSync(path, 'r');
  try {
    const indexed = size - (size % RECORD_BYTES);
    readSync(fd, recordBuffer, 0, RECORD_BYTES, 0);
    const start = decodeIndexRecord(recordBuffer, 0).offset;
    readSync(fd, recordBuffer, 0, RECORD_BYTES, indexed - RECORD_BYTES);
    return { start, promised: decodeIndexRecord(recordBuffer, 0).offset, indexed };
  } finally {
    closeSync(fd);
  }
}

/** Moves the current pair aside under the name of its start. Safe to be cut short anywhere: `openFiles` finishes it. */
function renameToRotated(folder: string, start: number): void {
  for (const [name, kind] of [
    [LOG_FILE, 'log'],
    [INDEX_FILE, 'idx'],
  ] as const) {
    const from = join(folder, name);
    if (sizeOf(from) !== undefined) renameSync(from, join(folder, rotatedFileName(start, kind)));
  }
}

function endOfRotated(folder: string): number {
  const start = rotatedStarts(folder).at(-1);
  if (start === undefined) return 0;
  const promised = indexExtentOf(join(folder, rotatedFileName(start, 'idx')))?.promised ?? start;
  return Math.max(promised, start + (sizeOf(join(folder, rotatedFileName(start, 'log'))) ?? 0));
}

/**
 * Opens the current pair, whatever a killed host, a full disk or a person has left of it; makes a new one that begins at
 * `atLeast` or later. Throws when the disk is full.
 */
function openLogFiles(folder: string, minStart: number, time: number): LogFiles {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const [logPath, indexPath] = [join(folder, LOG_FILE), join(folder, INDEX_FILE)];
  const extent = indexExtentOf(indexPath);
  const size = sizeOf(logPath);
  let start = minStart;
  if (extent && size !== undefined && extent.start + size >= Math.max(extent.promised, minStart)) {
    const log = openSync(logPath, O_RDWR);
    return {
      log,
      index: openSync(indexPath, O_RDWR),
      size,
      start: extent.start,
      indexed: extent.indexed,
      last: NO_RECORD,
    };
  }
  if (extent) {
    // Half rotated, or the log is shorter than its index says: a crash of the machine or a person has taken its end.
    renameToRotated(folder, extent.start);
    start = Math.max(start, extent.promised);
  }
  start = Math.max(start, endOfRotated(folder));
  // The index comes last and whole, so that a reader who finds one finds the log it belongs to.
  const log = openSync(logPath, O_RDWR | O_CREAT, 0o600);
  const index = openSync(`${indexPath}.new`, O_RDWR | O_CREAT, 0o600);
  encodeIndexRecord({ offset: start, stream: 0, time, run: NO_RUN_ID }, recordBuffer);
  if (writeWhatFits(index, recordBuffer, 0) < RECORD_BYTES) {
    for (const fd of [log, index]) closeSync(fd);
    throw new Error('disk full');
  }
  renameSync(`${indexPath}.new`, indexPath);
  return { log, index, start, size: fstatSync(log).size, indexed: RECORD_BYTES, last: NO_RECORD };
}

/** Opens the log of a service in `folder`. `limits` may change while it is open; `now` gives epoch milliseconds. */
export function openLogWriter(folder: string, limits: Readonly<LogLimits>, now: () => number): LogWriter {
  let files: LogFiles | undefined;
  let end = 0;
  let dropped = 0;
  let checkedAt = now();

  const close = () => {
    if (files) for (const fd of [files.log, files.index]) closeSync(fd);
    files = undefined;
  };
  const open = (): LogFiles | undefined => {
    if (files) return files;
    try {
      files = openLogFiles(folder, end, now());
      end = files.start + files.size;
    } catch {
      // Full: the next output tries again.
    }
    return files;
  };
  const rotate = (start: number) => {
    close();
    try {
      renameToRotated(folder, start);
      const old = rotatedStarts(folder);
      for (const first of old.slice(0, Math.max(0, old.length - limits.keep)))
        for (const kind of ['log', 'idx'] as const)
          rmSync(join(folder, rotatedFileName(first, kind)), { force: true });
    } catch {
      // The folder has gone, or cannot be written to: `open` makes the best of it.
    }
  };
  const check = (time: number) => {
    if (!files || time - checkedAt < CHECK_MS) return;
    checkedAt = time;
    const [log, index] = [fstatSync(files.log), fstatSync(files.index)];
    if (log.nlink === 0 || index.nlink === 0) close();
    else if (log.size < files.size || index.size < files.indexed) rotate(files.start);
  };
  const mark = (to: LogFiles, stream: LogStream, run: string, time: number): boolean => {
    const { last } = to;
    if (
      last.stream === stream &&
      last.run === run &&
      time >= last.time &&
      time - last.time < MAX_RECORD_SPAN_MS
    )
      return true;
    encodeIndexRecord({ offset: end, stream, time, run }, recordBuffer);
    if (writeWhatFits(to.index, recordBuffer, to.indexed) < RECORD_BYTES) return false;
    to.indexed += RECORD_BYTES;
    to.last = { stream, run, time };
    return true;
  };

  open();
  return {
    append(stream, run, bytes) {
      const time = now();
      check(time);
      let to = open();
      if (to && to.size > 0 && to.size + bytes.length > limits.maxBytes) {
        rotate(to.start);
        to = open();
      }
      const written = to && mark(to, stream, run, time) ? writeWhatFits(to.log, bytes, to.size) : 0;
      if (to) to.size += written;
      end += written;
      dropped += bytes.length - written;
    },
    get end() {
      return end;
    },
    get dropped() {
      return dropped;
    },
    close,
  };
}
