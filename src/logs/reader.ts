// The reading side of the logs (how they lie on disk: protocol/log.ts). It needs nobody's help: what the process host has
// read is in the files. It may run while the host writes and rotates.
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { LogSlice, LogsQuery } from '../protocol/service.ts';
import { LOGS } from '../settings/limits.ts';
import {
  decodeIndexRecord,
  INDEX_FILE,
  LOG_FILE,
  type LogIndexRecord,
  RECORD_BYTES,
  rotatedFileName,
  rotatedStart,
} from './format.ts';
import { concatAdjacent, type LogLine, type LogPiece, lastLines } from './lines.ts';

/** A pair of files, open. */
interface LogFilePair {
  start: number;
  size: number;
  log: number;
  index: number;
  records: number;
}

interface LogFilter {
  stream: LogsQuery['stream'];
  run: string | null;
}

/** Records are read this many at a time, backwards, until one begins early enough. */
const RECORDS_AT_ONCE = 512;
/** A reader looks again when a rotation came between; many in a row do not happen. */
const OPEN_ATTEMPTS = 20;
const STREAM_NUMBERS = { stdout: 1, stderr: 2 } as const;

function openPair(logPath: string, indexPath: string): LogFilePair | undefined {
  const opened: number[] = [];
  try {
    for (const path of [indexPath, logPath]) opened.push(openSync(path, 'r'));
    const [index = -1, log = -1] = opened;
    const stat = fstatSync(index);
    // The name may lead to the next pair by now: then the log that was opened may be that one's.
    const records = Math.floor(stat.size / RECORD_BYTES);
    if (records === 0 || statSync(indexPath).ino !== stat.ino) throw new Error('rotated');
    const head = Buffer.alloc(RECORD_BYTES);
    readSync(index, head, 0, RECORD_BYTES, 0);
    // The size of the log comes after the count of records: every record then begins within it.
    return { start: decodeIndexRecord(head, 0).offset, size: fstatSync(log).size, log, index, records };
  } catch {
    for (const fd of opened) closeSync(fd);
    return undefined;
  }
}

function closePair(pair: LogFilePair): void {
  closeSync(pair.log);
  closeSync(pair.index);
}

function openCurrent(folder: string): LogFilePair | undefined {
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt += 1) {
    const pair = openPair(join(folder, LOG_FILE), join(folder, INDEX_FILE));
    if (pair) return pair;
    if (!statSync(folder, { throwIfNoEntry: false })) return undefined;
    const moved = openLatestRotated(folder);
    if (moved) return moved;
  }
  return undefined;
}

/**
 * The newest pair that was moved aside, whole or only its log so far: a rotation is under way or was cut short, or the disk has
 * no room for the pair after it.
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

/** Where the rotated pairs begin, oldest first. Throws when the folder cannot be read. */
export function rotatedStarts(folder: string): number[] {
  return readdirSync(folder)
    .flatMap((name) => rotatedStart(name) ?? [])
    .sort((a, b) => a - b);
}

/** The same for readers: none where the folder has gone. */
function rotatedStartsOrNone(folder: string): number[] {
  try {
    return rotatedStarts(folder);
  } catch {
    return [];
  }
}

/** The rotated pairs that hold bytes at or after `from` and before `to`, oldest first. One that is just deleted is left out. */
function openRotated(folder: string, from: number, to: number): LogFilePair[] {
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

/** The records of a pair whose bytes reach past `from`, oldest first. */
function recordsFrom(pair: LogFilePair, from: number): LogIndexRecord[] {
  const blocks: LogIndexRecord[][] = [];
  for (let upTo = pair.records; upTo > 0; ) {
    const first = Math.max(0, upTo - RECORDS_AT_ONCE);
    const buffer = Buffer.allocUnsafe((upTo - first) * RECORD_BYTES);
    const length = readSync(pair.index, buffer, 0, buffer.length, first * RECORD_BYTES);
    const block: LogIndexRecord[] = [];
    for (let at = 0; at + RECORD_BYTES <= length; at += RECORD_BYTES)
      block.push(decodeIndexRecord(buffer, at));
    blocks.unshift(block);
    if ((block[0]?.offset ?? 0) <= from) break;
    upTo = first;
  }
  const records = blocks.flat();
  return records.filter((_, index) => (records[index + 1]?.offset ?? Number.POSITIVE_INFINITY) > from);
}

/** The bytes of a pair from `from` up to `to` that pass the filter. Neighbours are read in one go. */
function piecesOf(pair: LogFilePair, from: number, to: number, filter: LogFilter): LogPiece[] {
  const end = Math.min(to, pair.start + pair.size);
  const stream = filter.stream && STREAM_NUMBERS[filter.stream];
  const wanted = recordsFrom(pair, from).flatMap((record, index, all) => {
    const start = Math.max(from, record.offset);
    const stop = Math.min(end, all[index + 1]?.offset ?? end);
    const fits = (!stream || record.stream === stream) && (!filter.run || record.run === filter.run);
    return fits && stop > start ? [{ ...record, start, stop }] : [];
  });
  const pieces: LogPiece[] = [];
  for (let first = 0; first < wanted.length; ) {
    let last = first;
    while (wanted[last + 1] && wanted[last + 1]?.start === wanted[last]?.stop) last += 1;
    const begin = wanted[first]?.start ?? 0;
    const bytes = Buffer.allocUnsafe((wanted[last]?.stop ?? 0) - begin);
    // A file that somebody has cut holds less.
    const length = readSync(pair.log, bytes, 0, bytes.length, begin - pair.start);
    for (const { run, time, start, stop } of wanted.slice(first, last + 1))
      pieces.push({
        run,
        time,
        offset: start,
        bytes: bytes.subarray(start - begin, Math.min(stop - begin, length)),
      });
    first = last + 1;
  }
  return pieces;
}

interface LogSpan {
  /** Where it really begins: rotation may have taken what was before. */
  start: number;
  end: number;
  pieces: LogPiece[];
}

/** Reads from `from` (negative: that many bytes before the end) over at most `limit` bytes of the log. */
function readSpan(folder: string, from: number, limit: number, filter: LogFilter): LogSpan {
  const current = openCurrent(folder);
  if (!current) return { start: 0, end: 0, pieces: [] };
  const pairs = [current];
  try {
    const end = current.start + current.size;
    const wanted = Math.min(from < 0 ? Math.max(0, end + from) : from, end);
    if (wanted < current.start) pairs.unshift(...openRotated(folder, wanted, current.start));
    const start = Math.max(wanted, pairs[0]?.start ?? 0);
    const stop = Math.min(end, start + limit);
    return { start, end: stop, pieces: pairs.flatMap((pair) => piecesOf(pair, start, stop, filter)) };
  } finally {
    for (const pair of pairs) closePair(pair);
  }
}

/**
 * The bytes of the log in `folder` from the logical offset `offset` on: at most `limit` bytes of it, of which only those of
 * `run` are given. `start` is later than `offset` when rotation has taken what was there; go on at `end`.
 */
export function readLog(
  folder: string,
  offset: number,
  limit: number,
  run: string | null = null,
): { start: number; end: number; bytes: Uint8Array } {
  const { start, end, pieces } = readSpan(folder, offset, limit, { stream: null, run });
  return { start, end, bytes: concatAdjacent(pieces.map((piece) => piece.bytes)) };
}

/** Pieces that lie next to each other in the log as one. */
function mergeAdjacent(pieces: readonly LogPiece[]): LogSlice['parts'] {
  const groups: LogPiece[][] = [];
  let next = -1;
  for (const piece of pieces) {
    if (piece.offset === next) groups.at(-1)?.push(piece);
    else groups.push([piece]);
    next = piece.offset + piece.bytes.length;
  }
  return groups.map((group) => ({
    offset: group[0]?.offset ?? 0,
    bytes: concatAdjacent(group.map(({ bytes }) => bytes)),
  }));
}

/**
 * For followers: what `stream` has brought in the log in `folder` from the logical offset `offset` on, over at most `limit`
 * bytes of it and never of more than one run; with `timestamps` also when. `start` is later than `offset` when rotation has taken what was there; go on at
 * `end`.
 */
export function readLogParts(
  folder: string,
  offset: number,
  limit: number,
  { stream, timestamps }: Pick<LogsQuery, 'stream' | 'timestamps'>,
): LogSlice {
  const { start, end, pieces } = readSpan(folder, offset, limit, { stream, run: null });
  const run = pieces[0]?.run ?? null;
  const others = pieces.findIndex((piece) => piece.run !== run);
  const taken = others < 0 ? pieces : pieces.slice(0, others);
  return {
    start,
    end: pieces[others]?.offset ?? end,
    run,
    parts: mergeAdjacent(taken),
    times: timestamps ? taken.map(({ offset: at, time }) => ({ offset: at, time })) : [],
  };
}

/** The logical offset of the end of the log in `folder`; 0 while there is none. */
export function logEndOffset(folder: string): number {
  const current = openCurrent(folder);
  if (!current) return 0;
  closePair(current);
  return current.start + current.size;
}

export interface LogTailQuery extends Pick<LogsQuery, 'lines' | 'stream'> {
  /** Only what this run printed; null: all runs. */
  run: string | null;
}

export interface LogTail {
  /** Oldest first. */
  lines: LogLine[];
  /** The logical offset after them. */
  end: number;
}

/** A first guess at the bytes of a line; a window that is too small is followed by one four times as large. */
const ESTIMATED_LINE_BYTES = 256;
const MIN_WINDOW_BYTES = 64 * 1024;

/**
 * The last lines of the log in `folder`. A line ends at a newline or where a run ends; one over 64 KiB is split; the last one
 * counts without its newline.
 */
export function readLogTail(folder: string, query: LogTailQuery): LogTail {
  for (let window = Math.max(MIN_WINDOW_BYTES, query.lines * ESTIMATED_LINE_BYTES); ; window *= 4) {
    const { start, end, pieces } = readSpan(folder, -window, window, query);
    const lines = lastLines(pieces, query.lines + 1);
    const bytes = pieces.reduce((sum, piece) => sum + piece.bytes.length, 0);
    // Enough: more lines than asked for (the first may be half of one), nothing before, or as much as the longest lines take.
    if (lines.length > query.lines || end - start < window || bytes >= query.lines * LOGS.maxLineBytes)
      return { lines: lines.slice(-query.lines), end };
  }
}
