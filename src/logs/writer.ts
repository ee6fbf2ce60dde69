// The writing side of the logs (on disk: format.ts).
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { LogLimits } from '../protocol/host.ts';
import { KIB } from '../settings/limits.ts';
import { openRegularFile } from '../settings/state_files.ts';
import {
  decodeIndexRecord,
  decodeRunMark,
  encodeIndexRecord,
  encodeRunMark,
  INDEX_FILE,
  LOG_FILE,
  type LogIndexRecord,
  type LogRunMark,
  type LogStream,
  MAX_RECORD_SPAN_MS,
  NO_RUN_ID,
  RECORD_BYTES,
  rotatedFileName,
  rotatedStarts,
} from './format.ts';
import { countRecords } from './log_pairs.ts';

/** Interval between checks for files that were removed or truncated from outside. */
const CHECK_MS = 1_000;
/** How many index records to search for a mark that a killed host may have written. */
const MARK_SEARCH_RECORDS = 4_096;
/**
 * An index that consists only of marks, from a program that restarts repeatedly without output, is started
 * afresh.
 */
const MAX_MARKS_BYTES = 256 * KIB;
const NEWLINE = 0x0a;
const { O_CREAT, O_NOFOLLOW, O_RDONLY, O_RDWR } = constants;

/** The current pair, open. */
interface LogFiles {
  /** Descriptors. */
  log: number;
  index: number;
  /** Logical offset of the first byte of the log. */
  start: number;
  /** Bytes of the log, and of its index. */
  size: number;
  indexed: number;
  last: Pick<LogIndexRecord, 'stream' | 'run' | 'time'>;
}

/** The run that last wrote to a stream, and whether its line is unfinished. */
type OpenLine = { run: string; isOpen: boolean };

const recordBuffer = Buffer.alloc(RECORD_BYTES);
const NO_RECORD = { stream: 0, run: '', time: 0 } as const;

/** Writes as much of `bytes` at `position` as fits on the disk. Returns the bytes written. */
function writeWhatFits(fd: number, bytes: Uint8Array, position: number): number {
  let done = 0;
  try {
    while (done < bytes.length) {
      const count = writeSync(fd, bytes, done, bytes.length - done, position + done);
      if (count === 0) break;
      done += count;
    }
  } catch {
    // The disk is full, or a user limit is reached.
  }
  return done;
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

/** The extent of a log according to its index. */
interface IndexExtent {
  /** Logical offset of the first byte of the log. */
  start: number;
  /** Logical offset of the last record: the log reached at least that far. */
  promised: number;
  /** Bytes of whole records. */
  indexed: number;
}

/** undefined when there is no index, or no whole record in it. */
function indexExtentOf(path: string): IndexExtent | undefined {
  const size = sizeOf(path);
  if (size === undefined || size < RECORD_BYTES) return undefined;
  const fd = openRegularFile(path, O_RDONLY);
  try {
    const indexed = countRecords(fd) * RECORD_BYTES;
    readSync(fd, recordBuffer, 0, RECORD_BYTES, 0);
    const start = decodeIndexRecord(recordBuffer, 0).offset;
    readSync(fd, recordBuffer, 0, RECORD_BYTES, indexed - RECORD_BYTES);
    return { start, promised: decodeIndexRecord(recordBuffer, 0).offset, indexed };
  } finally {
    closeSync(fd);
  }
}

/** Renames the current pair to a rotated one. If interrupted, `openLogFiles` completes it. */
function renameToRotated(folder: string, start: number): void {
  for (const [name, kind] of [
    [LOG_FILE, 'log'],
    [INDEX_FILE, 'idx'],
  ] as const) {
    const from = join(folder, name);
    if (sizeOf(from) !== undefined) renameSync(from, join(folder, rotatedFileName(start, kind)));
  }
}

/** Logical end of the rotated pairs; 0 without any. */
function endOfRotated(folder: string): number {
  const start = rotatedStarts(folder).at(-1);
  if (start === undefined) return 0;
  const promised = indexExtentOf(join(folder, rotatedFileName(start, 'idx')))?.promised ?? start;
  return Math.max(promised, start + (sizeOf(join(folder, rotatedFileName(start, 'log'))) ?? 0));
}

/** The logical end of the log in `folder`; 0 without one that can be read. */
export function endOfLog(folder: string): number {
  try {
    const { start = 0, promised = 0 } = indexExtentOf(join(folder, INDEX_FILE)) ?? {};
    return Math.max(promised, start + (sizeOf(join(folder, LOG_FILE)) ?? 0), endOfRotated(folder));
  } catch {
    return 0;
  }
}

/**
 * Removes a link that would make the host write into another file: Berth itself never links a current log.
 */
function removeLink(path: string): void {
  // Node 24's `rmSync` leaves a dangling link.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) unlinkSync(path);
}

/** Throws when either is not a file, or cannot be opened. */
function openPair(logPath: string, indexPath: string, flags: number): Pick<LogFiles, 'log' | 'index'> {
  const log = openRegularFile(logPath, flags | O_NOFOLLOW, 0o600);
  try {
    return { log, index: openRegularFile(indexPath, flags | O_NOFOLLOW, 0o600) };
  } catch (error) {
    closeSync(log);
    throw error;
  }
}

/**
 * Opens the current pair, in whatever state a killed host, a full disk or a person has left it, or creates a
 * new one that begins at the logical offset `minStart` or later. Throws when the disk is full.
 */
function openLogFiles(folder: string, minStart: number, time: number): LogFiles {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const [logPath, indexPath] = [join(folder, LOG_FILE), join(folder, INDEX_FILE)];
  for (const path of [logPath, indexPath, `${indexPath}.new`]) removeLink(path);
  const extent = indexExtentOf(indexPath);
  const size = sizeOf(logPath);
  let start = minStart;
  if (extent && size !== undefined && extent.start + size >= Math.max(extent.promised, minStart)) {
    return {
      ...openPair(logPath, indexPath, O_RDWR),
      size,
      start: extent.start,
      indexed: extent.indexed,
      last: NO_RECORD,
    };
  }
  if (extent) {
    // A rotation was interrupted, or a crash of the machine or a person has removed the end of the log.
    renameToRotated(folder, extent.start);
    start = Math.max(start, extent.promised);
  }
  start = Math.max(start, endOfRotated(folder));
  // The index appears last and complete, so that readers who find one also find its log.
  const { log, index } = openPair(logPath, `${indexPath}.new`, O_RDWR | O_CREAT);
  encodeIndexRecord({ offset: start, stream: 0, time, run: NO_RUN_ID }, recordBuffer);
  if (writeWhatFits(index, recordBuffer, 0) < RECORD_BYTES) {
    for (const fd of [log, index]) closeSync(fd);
    throw new Error('disk full');
  }
  renameSync(`${indexPath}.new`, indexPath);
  return { log, index, start, size: fstatSync(log).size, indexed: RECORD_BYTES, last: NO_RECORD };
}

/** Whether `mark` is among the last records of the index. */
function hasMark({ index, indexed }: LogFiles, { event, run }: LogRunMark): boolean {
  const from = Math.max(0, indexed - MARK_SEARCH_RECORDS * RECORD_BYTES);
  const records = Buffer.alloc(indexed - from);
  readSync(index, records, 0, records.length, from);
  for (let at = 0; at < records.length; at += RECORD_BYTES) {
    const found = decodeRunMark(records, at);
    if (found?.run === run && found.event === event) return true;
  }
  return false;
}

/**
 * Writes the log of one service. All output goes to the page cache synchronously, so readers of the files see
 * everything the host has read. On a full disk output is lost and counted; writing never blocks.
 */
export class LogWriter {
  /** May change: it was renamed. */
  folder: string;
  private readonly limits: Readonly<LogLimits>;
  private readonly now: () => number;
  private files: LogFiles | undefined;
  private endOffset = 0;
  private droppedBytes = 0;
  private checkedAt: number;
  private readonly openLines = new Map<LogStream, OpenLine>();

  /**
   * Opens the log in `folder`. `limits` may change while it is open; `now` gives epoch milliseconds. A new
   * log begins at `start`.
   */
  constructor(folder: string, limits: Readonly<LogLimits>, now: () => number, start = 0) {
    this.folder = folder;
    this.endOffset = start;
    this.limits = limits;
    this.now = now;
    this.checkedAt = now();
    this.open();
  }

  /** The logical offset after the last byte. */
  get end(): number {
    return this.endOffset;
  }

  /** Bytes lost so far because the disk was full. */
  get dropped(): number {
    return this.droppedBytes;
  }

  /** Adds output of a process. Never throws. */
  append(stream: LogStream, run: string, bytes: Uint8Array): void {
    const time = this.now();
    this.checkFiles(time);
    let files = this.open();
    const { maxBytes } = this.limits;
    if (files && files.size > 0 && (files.size + bytes.length > maxBytes || files.indexed > maxBytes)) {
      this.rotate(files.start);
      files = this.open();
    }
    const line = this.openLines.get(stream);
    const continues = line?.run === run && line.isOpen;
    this.openLines.set(stream, { run, isOpen: bytes.length > 0 ? bytes.at(-1) !== NEWLINE : continues });
    const isMarked = files && this.mark(files, { offset: this.endOffset, stream, run, time, continues });
    const written = files && isMarked ? writeWhatFits(files.log, bytes, files.size) : 0;
    if (files) files.size += written;
    this.endOffset += written;
    this.droppedBytes += bytes.length - written;
  }

  /**
   * Records the start or the end of a run. `isRepeat`: a killed host may already have done so. Never throws;
   * on a full disk the mark is lost.
   */
  appendMark(mark: LogRunMark, isRepeat: boolean): void {
    this.checkFiles(this.now());
    const files = this.open();
    if (!files || (isRepeat && hasMark(files, mark))) return;
    if (files.size === 0 && files.indexed > MAX_MARKS_BYTES) {
      ftruncateSync(files.index, RECORD_BYTES);
      files.indexed = RECORD_BYTES;
    }
    const records = encodeRunMark(mark, this.endOffset);
    // An incomplete mark is overwritten by the next record.
    if (writeWhatFits(files.index, records, files.indexed) === records.length)
      files.indexed += records.length;
    // Output never belongs to the record of a mark.
    files.last = NO_RECORD;
  }

  /** Closes the files. The next output opens them again. */
  close(): void {
    if (this.files) for (const fd of [this.files.log, this.files.index]) closeSync(fd);
    this.files = undefined;
  }

  private open(): LogFiles | undefined {
    if (this.files) return this.files;
    try {
      this.files = openLogFiles(this.folder, this.endOffset, this.now());
      this.endOffset = this.files.start + this.files.size;
    } catch {
      // The disk is full: the next output tries again.
    }
    return this.files;
  }

  private rotate(start: number): void {
    this.close();
    try {
      renameToRotated(this.folder, start);
      const starts = rotatedStarts(this.folder);
      for (const oldest of starts.slice(0, Math.max(0, starts.length - this.limits.keep)))
        for (const kind of ['log', 'idx'] as const)
          rmSync(join(this.folder, rotatedFileName(oldest, kind)), { force: true });
    } catch {
      // The folder was removed or is not writable: `open` handles that.
    }
  }

  /** Notices files that were removed or truncated from outside. */
  private checkFiles(time: number): void {
    const { files } = this;
    // The clock may be set back.
    if (!files || Math.abs(time - this.checkedAt) < CHECK_MS) return;
    this.checkedAt = time;
    const [log, index] = [fstatSync(files.log), fstatSync(files.index)];
    if (log.nlink === 0 || index.nlink === 0) this.close();
    else if (log.size < files.size || index.size < files.indexed) this.rotate(files.start);
  }

  /**
   * Writes the record for the output that follows, unless the last one covers it. Returns false when the disk
   * is full.
   */
  private mark(files: LogFiles, record: LogIndexRecord): boolean {
    const { last } = files;
    const sinceLast = record.time - last.time;
    const isCovered = last.stream === record.stream && last.run === record.run;
    if (isCovered && sinceLast >= 0 && sinceLast < MAX_RECORD_SPAN_MS) return true;
    encodeIndexRecord(record, recordBuffer);
    if (writeWhatFits(files.index, recordBuffer, files.indexed) < RECORD_BYTES) return false;
    files.indexed += RECORD_BYTES;
    files.last = record;
    return true;
  }
}
