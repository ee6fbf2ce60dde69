// Searches one log backwards, block by block. Entries are lines, and the run marks between them. Each has a
// key that increases along the log: twice the logical offset for a mark, and one more for the line after it.
import { KIB, LOGS, MIB } from '../settings/limits.ts';
import {
  describeBlock,
  endOf,
  type LogBlock,
  LogFiles,
  type LogSpan,
  marksAtEnd,
  offsetAfterTime,
  type PlacedMark,
  readBytes,
  timeAt,
  timeBefore,
} from './log_blocks.ts';
import { type LogFilter, type ReadLine, readLine } from './log_filter.ts';
import type { LogFilePair } from './log_pairs.ts';
import { OverlongLines, splitLine } from './overlong_lines.ts';
import { readableLine } from './terminal_text.ts';

export interface ScannedLine extends ReadLine {
  /** Logical offset of its first byte. */
  offset: number;
  run: string;
  stream: 1 | 2;
  /** The text as it was written. */
  printed: string;
}

/** A line, or a mark. */
export interface ScannedEntry {
  key: number;
  /** Epoch milliseconds. */
  time: number;
  line: ScannedLine | null;
  mark: PlacedMark | null;
  /** It does not match itself, but is around a line that does. */
  around?: true;
  /** Lines are omitted between it and the last one shown. */
  gap?: true;
}

/** The keys before and of the line at a logical offset. */
const markKey = (offset: number): number => 2 * offset;
const lineKey = (offset: number): number => 2 * offset + 1;

const NEWLINE = 0x0a;
/** The memory for the current block: allocating it for each would take longer than reading it. */
const scratch = Buffer.allocUnsafeSlow(512 * KIB);
/** How far to look beyond a block for the rest of a line interrupted by other output. */
const MAX_REST_BYTES = MIB;
const BLOCKS_PER_BOUND = 4;
const REST_BLOCK_BYTES = 16 * KIB;

/**
 * The rest of a line of `run` and `stream` after the logical offset `from`, at most `most` bytes, without its
 * newline.
 */
function restOfLine(files: LogFiles, from: number, { run, stream }: LogSpan, most: number): Buffer {
  const parts: Buffer[] = [];
  let left = most;
  for (let at = from; at < files.end && at - from < MAX_REST_BYTES && left > 0; ) {
    const pair = files.pairFrom(at);
    if (!pair) break;
    const start = Math.max(at, pair.start);
    const block = describeBlock(pair, start, readBytes(pair, start, start + REST_BLOCK_BYTES));
    for (const span of block.spans) {
      if (span.stream !== stream) continue;
      if (span.run !== run || !(span.continues || start + span.from === from)) return Buffer.concat(parts);
      const newline = block.bytes.subarray(0, span.to).indexOf(NEWLINE, span.from);
      const part = block.bytes.subarray(span.from, newline < 0 ? span.to : newline).subarray(0, left);
      parts.push(part);
      left -= part.length;
      if (newline >= 0 || left === 0) return Buffer.concat(parts);
    }
    if (block.bytes.length === 0) break;
    at = start + block.bytes.length;
  }
  return Buffer.concat(parts);
}

export interface LogScanOptions {
  folder: string;
  filter: LogFilter;
  /** Only output of this run; null: of all runs. */
  run: string | null;
  /** Only entries with a smaller key; null: all. */
  before: number | null;
  /** The block size without and with a hint. */
  blockBytes: { plain: number; hinted: number };
}

interface LinesBefore {
  start: number;
  bytes: Buffer;
  /** Whether it begins in the middle of a line that is far too long. */
  isWithinLine: boolean;
}

/** The search in one log, from its end to its beginning. */
export class LogScan {
  /** Entries that were found but not taken, the newest last. */
  private readonly found: ScannedEntry[] = [];
  private readonly options: LogScanOptions;
  private open: LogFiles | null = null;
  /** Everything from this key on has been searched. */
  private searched: number;
  private bound = Number.POSITIVE_INFINITY;
  private overlongLines: OverlongLines | null = null;
  /** The number of consecutive blocks without a match. */
  private emptyBlocks = 0;

  constructor(options: LogScanOptions) {
    const { before, filter } = options;
    this.options = options;
    const { end } = this.files;
    this.searched = Math.min(before ?? Number.POSITIVE_INFINITY, lineKey(end));
    if (end === 0 && this.files.start === 0 && !this.files.pairBefore(1))
      this.bound = Number.NEGATIVE_INFINITY;
    else if (filter.until !== Number.POSITIVE_INFINITY) {
      const after = offsetAfterTime(this.files, Math.ceil(this.searched / 2), filter.until);
      this.searched = Math.min(this.searched, lineKey(after));
    }
  }

  /** No remaining entry is later than this, in epoch milliseconds; -Infinity: none remain. */
  get latest(): number {
    return this.found.at(-1)?.time ?? this.bound;
  }

  /** Everything from this key on was taken or does not match. */
  get taken(): number {
    const next = this.found.at(-1);
    return next ? next.key + 1 : this.searched;
  }

  /** Takes the newest entry found, or all marks at its position. Empty: the search must go on. */
  take(): ScannedEntry[] {
    const taken: ScannedEntry[] = [];
    const key = this.found.at(-1)?.key;
    while (this.found.length > 0 && this.found.at(-1)?.key === key) taken.push(...this.found.splice(-1));
    return taken;
  }

  /** Whether an entry was found but not taken. */
  get hasFound(): boolean {
    return this.found.length > 0;
  }

  /** Whether there are no older entries. */
  get isDone(): boolean {
    return this.bound === Number.NEGATIVE_INFINITY && this.found.length === 0;
  }

  /** Closes the files. The next search opens them again. */
  close(): void {
    this.open?.close();
    this.open = null;
    this.overlongLines = null;
  }

  private get files(): LogFiles {
    this.open ??= new LogFiles(this.options.folder);
    return this.open;
  }

  private get overlong(): OverlongLines {
    this.overlongLines ??= new OverlongLines(this.files);
    return this.overlongLines;
  }

  /** Searches the previous block, and keeps at most `most` of its lines. */
  search(most: number): void {
    const { filter, blockBytes } = this.options;
    const upTo = Math.floor(this.searched / 2);
    const hasMarkAtEnd = this.searched % 2 === 1;
    const pair = this.files.pairBefore(hasMarkAtEnd ? upTo + 1 : upTo);
    if (!pair) {
      this.finish();
      return;
    }
    const end = Math.min(upTo, endOf(pair));
    const { start, bytes, isWithinLine } = this.readBefore(
      pair,
      end,
      filter.hint ? blockBytes.hinted : blockBytes.plain,
    );
    const positions = filter.hint?.positions(bytes) ?? null;
    const isCut = bytes.length > 0 && bytes.at(-1) !== NEWLINE;
    let rest = markKey(start);
    if (!positions || positions.length > 0 || isCut) {
      const block = describeBlock(pair, start, bytes);
      const [first] = block.spans;
      if (isWithinLine && first) first.continues = false;
      const entries = this.linesOf(block, positions, most);
      // The rest of a block with more lines than wanted is searched again when needed.
      if (entries.length >= most) rest = Math.max(rest, entries.at(-1)?.key ?? 0);
      if (!filter.hasText) entries.push(...this.marksOf(block, pair, rest, hasMarkAtEnd));
      entries.sort((one, other) => one.key - other.key);
      this.found.push(...entries);
    }
    this.searched = rest;
    this.updateBound(positions?.length === 0);
    if (this.bound < filter.since) this.finish();
  }

  /**
   * After blocks without a match, the bound of a block is reused for a few more, because looking it up takes
   * a while.
   */
  private updateBound(isEmpty: boolean): void {
    this.emptyBlocks = isEmpty ? this.emptyBlocks + 1 : 0;
    if (this.searched <= markKey(this.files.start)) this.bound = Number.NEGATIVE_INFINITY;
    else if (this.emptyBlocks % BLOCKS_PER_BOUND === 0) {
      const at = Math.ceil(this.searched / 2);
      const pair = this.files.pairBefore(at);
      this.bound = pair ? timeBefore(pair, at) : Number.NEGATIVE_INFINITY;
    }
  }

  private finish(): void {
    this.searched = 0;
    this.bound = Number.NEGATIVE_INFINITY;
  }

  /** The block that ends at `end`. It begins at the start of a line, unless that line is far too long. */
  private readBefore(pair: LogFilePair, end: number, size: number): LinesBefore {
    const start = Math.max(pair.start, end - size);
    const bytes = readBytes(pair, start, end, scratch);
    if (start === pair.start) return { start, bytes, isWithinLine: false };
    const newline = bytes.indexOf(NEWLINE);
    if (newline >= 0 && newline < bytes.length - 1)
      return { start: start + newline + 1, bytes: bytes.subarray(newline + 1), isWithinLine: false };
    if (size >= MAX_REST_BYTES) return { start, bytes, isWithinLine: true };
    return this.readBefore(pair, end, 4 * size);
  }

  /** The matching lines of a block, the newest first, at most `most`. */
  private linesOf(block: LogBlock, positions: number[] | null, most: number): ScannedEntry[] {
    const { filter, run } = this.options;
    const entries: ScannedEntry[] = [];
    for (const span of block.spans.toReversed()) {
      if ((filter.stream && span.stream !== filter.stream) || (run !== null && span.run !== run)) continue;
      this.linesOfSpan(block, span, positions, most, entries);
      if (entries.length >= most) break;
    }
    return entries;
  }

  private linesOfSpan(
    block: LogBlock,
    span: LogSpan,
    positions: number[] | null,
    most: number,
    entries: ScannedEntry[],
  ): void {
    const { bytes } = block;
    const first = span.continues ? bytes.subarray(0, span.to).indexOf(NEWLINE, span.from) + 1 : span.from;
    // All of it may be of a line that begins before and ends after it.
    let to = span.continues && first === 0 ? 0 : span.to;
    while (to > first && entries.length < most) {
      const isOpen = bytes[to - 1] !== NEWLINE;
      const at = isOpen || !positions ? to - 1 : lastBelow(positions, to);
      if (at < first) break;
      const newline = bytes[at] === NEWLINE ? at : bytes.subarray(0, to).indexOf(NEWLINE, at);
      const end = newline < 0 ? to : newline;
      const from = end > first ? Math.max(first, bytes.lastIndexOf(NEWLINE, end - 1) + 1) : first;
      this.addLine(block, span, from, end, newline < 0, entries);
      to = from;
    }
    // The part of a line that begins before this span has the rest from here; later parts are of this span.
    const own =
      span.continues && entries.length < most ? this.overlong.partStarts(block).get(span) : undefined;
    if (own !== undefined)
      this.addLine(block, span, own, first === 0 ? span.to : first - 1, first === 0, entries);
  }

  /** Adds the matching parts of the line `[from, to)`, the newest first. */
  private addLine(
    block: LogBlock,
    span: LogSpan,
    from: number,
    to: number,
    isOpen: boolean,
    entries: ScannedEntry[],
  ): void {
    const parts = splitLine(block.bytes, from, to);
    let end = to;
    for (const start of parts.toReversed()) {
      let bytes = block.bytes.subarray(start, end);
      const room = LOGS.maxLineBytes - bytes.length;
      if (isOpen && end === to && room > 0)
        bytes = Buffer.concat([bytes, restOfLine(this.files, block.start + to, span, room)]);
      const entry = this.entryOf(block, span, block.start + start, bytes.toString('utf8'));
      if (entry) entries.push(entry);
      end = start;
    }
  }

  private entryOf(block: LogBlock, span: LogSpan, offset: number, printed: string): ScannedEntry | null {
    const { filter } = this.options;
    const time = timeAt(block, offset);
    if (time < filter.since || time > filter.until) return null;
    const line = readLine(readableLine(printed));
    if (!filter.accepts(line)) return null;
    const { text, level, fields } = line;
    const { run, stream } = span;
    const found = { text, level, fields, offset, run, stream, printed };
    return { key: lineKey(offset), time, line: found, mark: null };
  }

  /** The wanted marks of a block from the key `from` on. */
  private marksOf(block: LogBlock, pair: LogFilePair, from: number, hasMarkAtEnd: boolean): ScannedEntry[] {
    const { filter, run } = this.options;
    const end = block.start + block.bytes.length;
    const marks = block.marks.filter(({ offset }) => offset < end || hasMarkAtEnd);
    if (block.start === pair.start) {
      const earlier = this.files.pairBefore(pair.start);
      if (earlier && endOf(earlier) === pair.start) marks.unshift(...marksAtEnd(earlier));
    }
    return marks.flatMap((mark) => {
      const { offset, time } = mark;
      const isWanted = time >= filter.since && time <= filter.until && (run === null || mark.run === run);
      return isWanted && markKey(offset) >= from ? [{ key: markKey(offset), time, line: null, mark }] : [];
    });
  }
}

/** The greatest of the ascending `positions` below `limit`; larger ones are removed. -1: none. */
function lastBelow(positions: number[], limit: number): number {
  while ((positions.at(-1) ?? -1) >= limit) positions.pop();
  return positions.at(-1) ?? -1;
}
