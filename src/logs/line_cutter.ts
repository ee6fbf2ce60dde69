// Cuts output into readable lines: at newlines, at the end of a run, and at 64 KiB. `lastLines` cuts
// backwards, from the end of a log; `LineCutter` cuts forwards, while a log grows.
import { LOGS } from '../settings/limits.ts';

/** Output written at one time. */
export interface LogPiece {
  run: string;
  /** Epoch milliseconds. */
  time: number;
  /** Logical offset of its first byte. */
  offset: number;
  bytes: Buffer;
}

/**
 * A line without its newline: the bytes `[from, to)` of a buffer shared by many lines. A thousand views of
 * that buffer would take longer to garbage-collect than to read.
 */
export interface CutLine {
  /** When its first byte was written, in epoch milliseconds. */
  time: number;
  bytes: Buffer;
  from: number;
  to: number;
}

export interface PlacedLine extends CutLine {
  /** Logical offset of its first byte. */
  offset: number;
}

export interface FollowedLine extends CutLine {
  /**
   * Logical offset at which the log continues after the line; null when its bytes are not all adjacent in the
   * log.
   */
  next: number | null;
}

/** Adjacent pieces of one run. A line may cross the bounds of pieces, never those of a span. */
interface RunSpan {
  bytes: Buffer;
  /** Ascending by `at`; the first is at 0. */
  marks: TimeMark[];
}

/** From the byte `at` of a span on, output has the given `time` and lies at the logical `offset`. */
interface TimeMark {
  at: number;
  time: number;
  offset: number;
}

const NEWLINE = 0x0a;
const NO_BYTES = Buffer.alloc(0);
const NO_MARK: TimeMark = { at: 0, time: 0, offset: 0 };

/** Joins buffers. Copies only those that are not adjacent in memory; usually all come from one read. */
export function concatAdjacent(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  if (!first) return NO_BYTES;
  let end = first.byteOffset;
  const isAdjacent = parts.every(({ buffer, byteOffset, length }) => {
    const follows = buffer === first.buffer && byteOffset === end;
    end += length;
    return follows;
  });
  return isAdjacent
    ? Buffer.from(first.buffer, first.byteOffset, end - first.byteOffset)
    : Buffer.concat(parts);
}

function spansOf(pieces: readonly LogPiece[]): RunSpan[] {
  const groups: LogPiece[][] = [];
  for (const piece of pieces) {
    const group = groups.at(-1);
    if (group?.[0]?.run === piece.run) group.push(piece);
    else groups.push([piece]);
  }
  return groups.map((group) => {
    let at = 0;
    const marks = group.map(({ time, offset, bytes }) => {
      at += bytes.length;
      return { at: at - bytes.length, time, offset };
    });
    return { bytes: concatAdjacent(group.map(({ bytes }) => bytes)), marks };
  });
}

/**
 * The split point of an overlong line that begins at `from`: after at most 64 KiB, never within a character.
 */
export function splitOffset(bytes: Uint8Array, from: number): number {
  const max = from + LOGS.maxLineBytes;
  let end = max;
  while (end > max - 3 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** The start of the last part of the line `[from, to)` after splitting. */
function lastPartStart(bytes: Buffer, from: number, to: number): number {
  let start = from;
  while (to - start > LOGS.maxLineBytes) start = splitOffset(bytes, start);
  return start;
}

/** The last lines of `pieces`, at most `max`, oldest first. The very first may lack its beginning. */
export function lastLines(pieces: readonly LogPiece[], max: number): PlacedLine[] {
  const lines: PlacedLine[] = [];
  for (const { bytes, marks } of spansOf(pieces).reverse()) {
    let mark = marks.length - 1;
    let to = bytes.at(-1) === NEWLINE ? bytes.length - 1 : bytes.length;
    // A span that is a single newline is one empty line; an empty span has no lines.
    let hasMore = bytes.length > 0;
    while (hasMore && lines.length < max) {
      const newline = to > 0 ? bytes.lastIndexOf(NEWLINE, to - 1) : -1;
      const from = lastPartStart(bytes, newline + 1, to);
      while (mark > 0 && (marks[mark]?.at ?? 0) > from) mark -= 1;
      const { at, time, offset } = marks[mark] ?? NO_MARK;
      lines.push({ time, offset: offset + from - at, bytes, from, to });
      // A later part of a line follows another part; a whole line follows the newline of another line.
      to = from > newline + 1 ? from : newline;
      hasMore = to >= 0;
    }
  }
  return lines.reverse();
}

/** The beginning of a line whose end has not arrived yet; its bytes do not change. */
export interface PartialLine {
  bytes: Buffer;
  /** When its first byte was written, in epoch milliseconds. */
  time: number;
}

/** No beginning of a line. */
export const NO_PARTIAL_LINE: PartialLine = { bytes: NO_BYTES, time: 0 };

/** Cuts a log that is read forwards, piece by piece. Keeps the beginning of a line until its end arrives. */
export class LineCutter {
  private kept: PartialLine;

  /** `partial`: what another cutter has kept of the same log so far. */
  constructor(partial: PartialLine = NO_PARTIAL_LINE) {
    this.kept = partial;
  }

  /** The unfinished line that is kept. */
  get partial(): PartialLine {
    return this.kept;
  }

  /**
   * The lines that end in `bytes`, which begin at the logical `offset`. `timeAt` returns the time of the byte
   * at an offset and is called with ascending offsets.
   */
  cut(bytes: Buffer, offset: number, timeAt: (offset: number) => number): FollowedLine[] {
    const { bytes: partial, time: partialTime } = this.kept;
    const before = partial.length;
    const all = before === 0 ? bytes : Buffer.concat([partial, bytes]);
    const lines: FollowedLine[] = [];
    let from = 0;
    while (from < all.length) {
      const newline = all.indexOf(NEWLINE, from);
      const isTooLong = (newline < 0 ? all.length : newline) - from > LOGS.maxLineBytes;
      if (newline < 0 && !isTooLong) break;
      const to = isTooLong ? splitOffset(all, from) : newline;
      const time = from < before ? partialTime : timeAt(offset + from - before);
      const next = isTooLong ? to : to + 1;
      // Output of the other stream may lie between the kept beginning and these bytes.
      lines.push({ time, bytes: all, from, to, next: next < before ? null : offset + next - before });
      from = next;
    }
    const time = from < before ? partialTime : timeAt(offset + from - before);
    this.kept = { bytes: Buffer.from(all.subarray(from)), time };
    return lines;
  }

  /** Returns and drops a kept line whose end will never arrive; undefined if there is none. */
  flush(): CutLine | undefined {
    const { bytes, time } = this.kept;
    if (bytes.length === 0) return undefined;
    this.kept = NO_PARTIAL_LINE;
    return { time, bytes, from: 0, to: bytes.length };
  }
}
