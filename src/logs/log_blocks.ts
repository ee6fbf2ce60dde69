// Reads a log block by block, in either direction, with its index information. Only the current block is held
// in memory, so a search over gigabytes takes the memory of a block per service.
import { fstatSync, readSync } from 'node:fs';
import { decodeIndexRecord, decodeRunMark, isSameOutput, type LogRunMark, RECORD_BYTES } from './format.ts';
import {
  closePair,
  countRecords,
  type LogFilePair,
  openCurrent,
  openRotated,
  rotatedStartsOrNone,
} from './log_pairs.ts';

/** Adjacent bytes `[from, to)` of a block, of one stream and run. */
export interface LogSpan {
  from: number;
  to: number;
  stream: 1 | 2;
  run: string;
  /** Its first bytes belong to a line that began earlier. */
  continues: boolean;
}

export interface PlacedMark extends LogRunMark {
  /** The logical offset before which it happened. */
  offset: number;
}

/** A part of a log. */
export interface LogBlock {
  /** Logical offset of the first byte. */
  start: number;
  bytes: Buffer;
  spans: LogSpan[];
  /** The marks from the first byte to after the last one, both inclusive. */
  marks: PlacedMark[];
  /** Times (epoch milliseconds) from logical offsets on, ascending. */
  times: { offset: number; time: number }[];
}

const NEWLINE = 0x0a;
const recordBuffer = Buffer.alloc(RECORD_BYTES);

/** The record number `at` of a pair; past the last one, its offset is infinite. */
function recordOf(pair: LogFilePair, at: number): { offset: number; time: number } {
  const isThere =
    at < pair.records &&
    readSync(pair.index, recordBuffer, 0, RECORD_BYTES, at * RECORD_BYTES) === RECORD_BYTES;
  return isThere ? decodeIndexRecord(recordBuffer, 0) : { offset: Number.POSITIVE_INFINITY, time: 0 };
}

/** The number of the first record for which `isPast` holds, as it then does for all later ones. */
function firstRecord(
  pair: LogFilePair,
  isPast: (record: { offset: number; time: number }) => boolean,
): number {
  let [low, high] = [0, pair.records];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isPast(recordOf(pair, middle))) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The records `[from, to)` of a pair. */
function readRecords(pair: LogFilePair, from: number, to: number): Buffer {
  const records = Buffer.allocUnsafe(Math.max(0, to - from) * RECORD_BYTES);
  const length = readSync(pair.index, records, 0, records.length, from * RECORD_BYTES);
  return records.subarray(0, length - (length % RECORD_BYTES));
}

/**
 * The files of one log as they were when first opened: later output is not included. At most two pairs are
 * open.
 */
export class LogFiles {
  /** Logical offset after the last byte. */
  readonly end: number;
  private readonly folder: string;
  private readonly current: LogFilePair | undefined;
  /** Starts of the rotated pairs, ascending. */
  private readonly rotated: number[];
  private older: LogFilePair | undefined;

  constructor(folder: string) {
    this.folder = folder;
    this.current = openCurrent(folder);
    const { current } = this;
    if (current) {
      // The size is read first, so that every byte within it already has its record.
      current.size = fstatSync(current.log).size;
      current.records = countRecords(current.index);
    }
    this.rotated = current ? rotatedStartsOrNone(folder).filter((start) => start < current.start) : [];
    this.end = current ? current.start + current.size : 0;
  }

  /** The logical offset of the oldest byte available. */
  get start(): number {
    return this.rotated[0] ?? this.current?.start ?? 0;
  }

  /** The newest pair that begins before `offset`; undefined: none, or it is being deleted. */
  pairBefore(offset: number): LogFilePair | undefined {
    const { current } = this;
    if (!current || offset > current.start) return current;
    for (let at = this.rotated.length - 1; at >= 0; at -= 1) {
      const start = this.rotated[at] ?? 0;
      if (start >= offset) continue;
      const pair = this.openOlder(start);
      if (pair) return pair;
      this.rotated.splice(0, at + 1);
    }
    return undefined;
  }

  /** The oldest pair with a byte at or after `offset`. */
  pairFrom(offset: number): LogFilePair | undefined {
    const { current } = this;
    if (!current || offset >= current.start) return current;
    for (const [at, start] of this.rotated.entries()) {
      if ((this.rotated[at + 1] ?? current.start) <= offset) continue;
      const pair = this.openOlder(start);
      if (pair && pair.start + pair.size > offset) return pair;
    }
    return current;
  }

  close(): void {
    for (const pair of [this.current, this.older]) if (pair) closePair(pair);
    this.older = undefined;
  }

  private openOlder(start: number): LogFilePair | undefined {
    if (this.older?.start === start) return this.older;
    if (this.older) closePair(this.older);
    [this.older] = openRotated(this.folder, start, start + 1);
    return this.older;
  }
}

/** The offset before `offset` of the first output later than `time`, in epoch milliseconds. */
export function offsetAfterTime(files: LogFiles, offset: number, time: number): number {
  for (let upTo = offset; ; ) {
    const pair = files.pairBefore(upTo);
    if (!pair) return Math.min(upTo, files.start);
    const at = firstRecord(pair, (record) => record.time > time);
    if (at > 0) return Math.min(offset, recordOf(pair, at).offset);
    upTo = pair.start;
  }
}

/** The logical offset of the end of a pair. */
export const endOf = (pair: LogFilePair): number => pair.start + pair.size;

/** The bytes `[from, to)` of a pair, in `into` if they fit; fewer if the file was truncated. */
export function readBytes(pair: LogFilePair, from: number, to: number, into?: Buffer): Buffer {
  const length = Math.max(0, Math.min(to, endOf(pair)) - from);
  const bytes = into && length <= into.length ? into.subarray(0, length) : Buffer.allocUnsafe(length);
  return bytes.subarray(0, readSync(pair.log, bytes, 0, bytes.length, from - pair.start));
}

/**
 * The time (epoch milliseconds) of the byte before the logical offset `at`. If that is in an earlier pair, a
 * time no earlier than its own.
 */
export function timeBefore(pair: LogFilePair, at: number): number {
  return recordOf(pair, Math.max(0, firstRecord(pair, ({ offset }) => offset >= at) - 1)).time;
}

/** The records of `[from, to)`, with the marks at both ends. The first one may begin before. */
function recordsOf(pair: LogFilePair, from: number, to: number): Buffer {
  const first = firstRecord(pair, ({ offset }) => offset >= from);
  const isCut = recordOf(pair, first).offset > from;
  const end = firstRecord(pair, ({ offset }) => offset > to);
  return readRecords(pair, Math.max(0, isCut ? first - 1 : first), end);
}

/** Describes `bytes` at the logical offset `start` of a pair, from the index. */
export function describeBlock(pair: LogFilePair, start: number, bytes: Buffer): LogBlock {
  const end = start + bytes.length;
  const records = recordsOf(pair, start, end);
  const block: LogBlock = { start, bytes, spans: [], marks: [], times: [] };
  let cutsLine = false;
  if (start > pair.start) cutsLine = readBytes(pair, start - 1, start)[0] !== NEWLINE;
  let previous = -1;
  for (let at = 0; at < records.length; at += RECORD_BYTES) {
    const { offset, time, run, stream, continues = false } = decodeIndexRecord(records, at);
    const mark = decodeRunMark(records, at);
    if (mark && offset >= start) block.marks.push({ ...mark, offset });
    if (stream === 0) continue;
    const next =
      at + RECORD_BYTES < records.length ? decodeIndexRecord(records, at + RECORD_BYTES).offset : end;
    const [from, to] = [Math.max(start, offset) - start, Math.min(end, next) - start];
    if (to <= from) continue;
    block.times.push({ offset: start + from, time });
    const last = block.spans.at(-1);
    if (last && last.to === from && isSameOutput(records, previous, at)) last.to = to;
    else block.spans.push({ from, to, stream, run, continues: offset < start ? cutsLine : continues });
    previous = at;
  }
  return block;
}

/** The marks at the very end of a pair, which belong to the beginning of the next. */
export function marksAtEnd(pair: LogFilePair): PlacedMark[] {
  const end = endOf(pair);
  const records = readRecords(
    pair,
    firstRecord(pair, ({ offset }) => offset >= end),
    pair.records,
  );
  const marks: PlacedMark[] = [];
  for (let at = 0; at < records.length; at += RECORD_BYTES) {
    const mark = decodeRunMark(records, at);
    if (mark) marks.push({ ...mark, offset: end });
  }
  return marks;
}

/** The marks at the beginning of `pair` that the pair before has. */
export function marksBefore(files: LogFiles, pair: LogFilePair): PlacedMark[] {
  const earlier = files.pairBefore(pair.start);
  return earlier && endOf(earlier) === pair.start ? marksAtEnd(earlier) : [];
}

/** How many records to read at once. */
const RECORDS_AT_ONCE = 1_024;

/**
 * All records of a log in blocks, the newest block first; the records within a block are in ascending order.
 */
export function* recordsBackwards(files: LogFiles): Generator<Buffer> {
  for (let pair = files.pairBefore(files.end + 1); pair; pair = files.pairBefore(pair.start)) {
    for (let to = pair.records; to > 0; to -= RECORDS_AT_ONCE)
      yield readRecords(pair, Math.max(0, to - RECORDS_AT_ONCE), to);
  }
}

/** The time (epoch milliseconds) of the byte at the logical offset `at`, or of the last one before it. */
export function timeFrom(pair: LogFilePair, at: number): number {
  return recordOf(pair, Math.max(0, firstRecord(pair, ({ offset }) => offset > at) - 1)).time;
}

/** The time (epoch milliseconds) of the byte of a block at the logical `offset`. */
export function timeAt({ times }: LogBlock, offset: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((times[middle]?.offset ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return times[low - 1]?.time ?? 0;
}
