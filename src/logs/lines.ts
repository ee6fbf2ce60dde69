// Cuts what was printed into lines for people: at newlines, where a run ends, and at 64 KiB.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { KIB, LOGS } from '../settings/limits.ts';
import { readableLine } from './terminal_text.ts';

/** What was printed in one go. */
export interface LogPiece {
  run: string;
  /** Epoch milliseconds. */
  time: number;
  /** Where in the log it begins: logical. */
  offset: number;
  bytes: Buffer;
}

export interface LogLine {
  /** When its first byte came. */
  time: number;
  /** Where in the log that byte lies: logical. */
  offset: number;
  /**
   * It lies in these from `from` to `to`, without its newline: a thousand views of a buffer take longer to be collected than
   * to be read.
   */
  bytes: Buffer;
  from: number;
  to: number;
}

/** Neighbouring pieces of one run: a line may go over their bounds, never over those of a span. */
interface RunSpan {
  run: string;
  bytes: Buffer;
  /** From which byte on which time holds, and where in the log that byte lies. */
  marks: TimeMark[];
}

interface TimeMark {
  at: number;
  time: number;
  offset: number;
}

const NEWLINE = 0x0a;
const NO_MARK: TimeMark = { at: 0, time: 0, offset: 0 };

/** The bytes behind each other, not copied where they lie so already: most often they have been read in one go. */
export function concatAdjacent(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  if (!first) return Buffer.alloc(0);
  let end = first.byteOffset;
  const isWhole = parts.every(({ buffer, byteOffset, length }) => {
    const follows = buffer === first.buffer && byteOffset === end;
    end += length;
    return follows;
  });
  return isWhole ? Buffer.from(first.buffer, first.byteOffset, end - first.byteOffset) : Buffer.concat(parts);
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
    return { run: group[0]?.run ?? '', bytes: concatAdjacent(group.map(({ bytes }) => bytes)), marks };
  });
}

/** Where a line that begins at `from` and is too long is cut: after 64 KiB at most, never within a character. */
export function splitOffset(bytes: Uint8Array, from: number): number {
  const most = from + LOGS.maxLineBytes;
  let end = most;
  while (end > most - 3 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** Where the last part of the line `[from, to)` begins when it is cut into parts. */
function lastPartStart(bytes: Buffer, from: number, to: number): number {
  let start = from;
  while (to - start > LOGS.maxLineBytes) start = splitOffset(bytes, start);
  return start;
}

/** The last lines of `pieces`, at most `most`, oldest first. The very first may lack its beginning. */
export function lastLines(pieces: readonly LogPiece[], max: number): LogLine[] {
  const lines: LogLine[] = [];
  for (const { bytes, marks } of spansOf(pieces).reverse()) {
    let mark = marks.length - 1;
    let to = bytes.at(-1) === NEWLINE ? bytes.length - 1 : bytes.length;
    // A span of one newline is one empty line; an empty span is none.
    let more = bytes.length > 0;
    while (more && lines.length < max) {
      const newline = to > 0 ? bytes.lastIndexOf(NEWLINE, to - 1) : -1;
      const from = lastPartStart(bytes, newline + 1, to);
      while (mark > 0 && (marks[mark]?.at ?? 0) > from) mark -= 1;
      const { at, time, offset } = marks[mark] ?? NO_MARK;
      lines.push({ time, offset: offset + from - at, bytes, from, to });
      // Before a part comes the part before it, before a whole line the newline of another.
      to = from > newline + 1 ? from : newline;
      more = to >= 0;
    }
  }
  return lines.reverse();
}

/** How lines are shown. */
export interface LineFormat {
  /** As they came and not as a person would read them. */
  raw: boolean;
  /** What stands before each of them. */
  stamp: ((time: number) => string) | null;
}

/** A line as a text. */
export function lineText({ time, bytes, from, to }: LogLine, { raw, stamp }: LineFormat): string {
  const printed = bytes.toString('utf8', from, to);
  const text = raw ? printed : readableLine(printed);
  return stamp ? `${stamp(time)} ${text}` : text;
}

/** More than the newest 1,000 lines usually are: a turn in between costs those who ask for them a third of their time. */
const BATCH_BYTES = 256 * KIB;

/**
 * What `make` makes of all lines, some at a time. Everybody else has a turn after each part: to read what a program has drawn
 * takes up to 100 ns per byte.
 */
export async function mapInBatches<T>(
  lines: readonly LogLine[],
  map: (some: readonly LogLine[]) => T,
): Promise<T[]> {
  const made: T[] = [];
  let some: LogLine[] = [];
  let bytes = 0;
  for (const line of lines) {
    some.push(line);
    bytes += line.to - line.from;
    if (bytes < BATCH_BYTES) continue;
    made.push(map(some));
    some = [];
    bytes = 0;
    await nextTurn();
  }
  if (some.length > 0) made.push(map(some));
  return made;
}
