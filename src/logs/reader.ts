// The reading side of the logs (on disk: format.ts). It only needs the files, which contain all output that
// the process host has read, and may run while the host writes and rotates.
import { readSync } from 'node:fs';
import type { LogSlice, LogsQuery } from '../protocol/logs.ts';
import { LOGS } from '../settings/limits.ts';
import { decodeIndexRecord, type LogIndexRecord, RECORD_BYTES } from './format.ts';
import { concatAdjacent, type LogPiece, lastLines, type PlacedLine } from './line_cutter.ts';
import { closePair, type LogFilePair, openCurrent, openRotated } from './log_pairs.ts';

interface LogFilter {
  /** null: both. */
  stream: LogsQuery['stream'];
  /** null: all. */
  run: string | null;
}

/** Records per read. Blocks are read backwards until one begins early enough. */
const RECORDS_AT_ONCE = 512;
const STREAM_NUMBERS = { stdout: 1, stderr: 2 } as const;

/** The records of a pair whose bytes end after `from`, oldest first. */
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

/** The pieces of `[from, to)` of a pair that pass the filter. Adjacent ones are read at once. */
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
    // Shorter than the index says if someone has truncated the file.
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
  /** The actual start: later than requested if rotation has deleted the beginning. */
  start: number;
  end: number;
  pieces: LogPiece[];
}

/**
 * Reads at most `limit` bytes of the log from the logical offset `from`; a negative one counts from the end.
 */
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
 * Reads at most `limit` bytes of the log in `folder` from the logical offset `offset`, and returns those of
 * `run` (null: all). `start` is later than `offset` if rotation has deleted the beginning. The next read
 * begins at `end`.
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

/** Joins pieces that are adjacent in the log. */
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
 * For followers: reads at most `limit` bytes of the log in `folder` from the logical offset `offset`, and
 * returns those of `stream` (null: both) that belong to the first run among them, with times if `timestamps`
 * is set. `start` is later than `offset` if rotation has deleted the beginning. The next read begins at
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

/** The logical offset of the end of the log in `folder`; 0 without a log. */
export function logEndOffset(folder: string): number {
  const current = openCurrent(folder);
  if (!current) return 0;
  closePair(current);
  return current.start + current.size;
}

export interface LogTailQuery extends Pick<LogsQuery, 'lines' | 'stream'> {
  /** Only output of this run; null: of all runs. */
  run: string | null;
}

export interface LogTail {
  /** Oldest first. */
  lines: PlacedLine[];
  /** Logical offset after the last one. */
  end: number;
}

/**
 * The initial estimate of the bytes per line. If a window proves too small, the next one is four times as
 * large.
 */
const ESTIMATED_LINE_BYTES = 256;
const MIN_WINDOW_BYTES = 64 * 1024;

/**
 * The last lines of the log in `folder`. A line ends at a newline or at the end of its run. A line over 64
 * KiB is split. The last line counts even without its newline.
 */
export function readLogTail(folder: string, query: LogTailQuery): LogTail {
  for (let window = Math.max(MIN_WINDOW_BYTES, query.lines * ESTIMATED_LINE_BYTES); ; window *= 4) {
    const { start, end, pieces } = readSpan(folder, -window, window, query);
    const lines = lastLines(pieces, query.lines + 1);
    const bytes = pieces.reduce((sum, piece) => sum + piece.bytes.length, 0);
    // Enough: one line more than requested (the first may lack its beginning), the whole log, or the size of
    // the longest possible lines.
    if (lines.length > query.lines || end - start < window || bytes >= query.lines * LOGS.maxLineBytes)
      return { lines: lines.slice(-query.lines), end };
  }
}
