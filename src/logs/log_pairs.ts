// Opens the pairs of files of a log for reading (on disk: format.ts), while the host writes and rotates.
import { closeSync, constants, existsSync, fstatSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openRegularFile } from '../settings/state_files.ts';
import {
  decodeIndexRecord,
  INDEX_FILE,
  LOG_FILE,
  RECORD_BYTES,
  rotatedFileName,
  rotatedStarts,
} from './format.ts';

/** A log and its index, open. */
export interface LogFilePair {
  /** Logical offset of its first byte. */
  start: number;
  size: number;
  /** Descriptors. */
  log: number;
  index: number;
  /** Whole records in the index. */
  records: number;
}

/** A rotation while the pair is being opened requires another attempt. So many in a row do not occur. */
const OPEN_ATTEMPTS = 20;

const record = Buffer.alloc(RECORD_BYTES);

/**
 * How many whole records an index has, without the zeros that a loss of power may leave at its end. The first
 * record always counts.
 */
export function countRecords(index: number): number {
  let count = Math.floor(fstatSync(index).size / RECORD_BYTES);
  for (; count > 1; count -= 1) {
    readSync(index, record, 0, RECORD_BYTES, (count - 1) * RECORD_BYTES);
    if (record.some((byte) => byte !== 0)) break;
  }
  return count;
}

/** Opens a pair. undefined when a rotation has left it incomplete or mismatched. */
function openPair(logPath: string, indexPath: string): LogFilePair | undefined {
  const opened: number[] = [];
  try {
    // A FIFO in place of a file must not block.
    for (const path of [indexPath, logPath]) opened.push(openRegularFile(path, constants.O_RDONLY));
    const [index = -1, log = -1] = opened;
    const stat = fstatSync(index);
    // If the name now leads to another index, the opened log may belong to that one.
    const records = countRecords(index);
    if (records === 0 || statSync(indexPath).ino !== stat.ino) throw new Error('rotated');
    const head = Buffer.alloc(RECORD_BYTES);
    readSync(index, head, 0, RECORD_BYTES, 0);
    // Read the size of the log after the count of records, so that every record begins within it.
    return { start: decodeIndexRecord(head, 0).offset, size: fstatSync(log).size, log, index, records };
  } catch {
    for (const fd of opened) closeSync(fd);
    return undefined;
  }
}

/** Closes both files. */
export function closePair(pair: LogFilePair): void {
  closeSync(pair.log);
  closeSync(pair.index);
}

/** The pair with the end of the log; undefined without a log. */
export function openCurrent(folder: string): LogFilePair | undefined {
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt += 1) {
    const pair = openPair(join(folder, LOG_FILE), join(folder, INDEX_FILE));
    if (pair) return pair;
    if (!existsSync(folder)) return undefined;
    const latest = openLatestRotated(folder);
    if (latest) return latest;
  }
  return undefined;
}

/**
 * The newest rotated pair, whose index may not be renamed yet. It is the end of the log during a rotation,
 * after an interrupted one, and when the disk has no room for the next pair.
 */
function openLatestRotated(folder: string): LogFilePair | undefined {
  const start = rotatedStartsOrNone(folder).at(-1);
  if (start === undefined) return undefined;
  for (const index of [rotatedFileName(start, 'idx'), INDEX_FILE]) {
    const pair = openPair(join(folder, rotatedFileName(start, 'log')), join(folder, index));
    if (pair?.start === start) return pair;
    if (pair) closePair(pair);
  }
  return undefined;
}

/** Like `rotatedStarts`, but empty when the folder cannot be read. */
export function rotatedStartsOrNone(folder: string): number[] {
  try {
    return rotatedStarts(folder);
  } catch {
    return [];
  }
}

/** The rotated pairs with bytes in `[from, to)`, oldest first, without any that is being deleted. */
export function openRotated(folder: string, from: number, to: number): LogFilePair[] {
  const starts = rotatedStartsOrNone(folder).filter((start) => start < to);
  return starts
    .filter((_, index) => (starts[index + 1] ?? to) > from)
    .flatMap((start) => {
      const pair = openPair(
        join(folder, rotatedFileName(start, 'log')),
        join(folder, rotatedFileName(start, 'idx')),
      );
      return pair ? [pair] : [];
    });
}
