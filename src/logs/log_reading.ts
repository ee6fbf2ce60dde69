// Reads one log forwards from a position, block by block: completed lines, run marks, and the position after
// each, from which another reader continues without missing or repeating anything.
import type { LogPlace } from '../protocol/logs.ts';
import { KIB, LOGS } from '../settings/limits.ts';
import { LinesAround, linesBefore } from './lines_around.ts';
import {
  describeBlock,
  type LogBlock,
  LogFiles,
  type LogSpan,
  marksBefore,
  type PlacedMark,
  readBytes,
  timeAt,
  timeFrom,
} from './log_blocks.ts';
import { type LogFilter, readLine } from './log_filter.ts';
import type { ScannedEntry } from './log_scan.ts';
import { readableLine } from './terminal_text.ts';

/** The block size: an entry or two more than a service prints between two reads. */
const BLOCK_BYTES = 32 * KIB;
/** After this much other output, an unfinished line is taken as it is. */
const MAX_OPEN_BYTES = 512 * KIB;
const NEWLINE = 0x0a;

/** The beginning of a line. */
interface OpenLine {
  start: number;
  run: string;
  /** Epoch milliseconds. */
  time: number;
  bytes: Buffer;
}

export interface ReadEntry {
  entry: ScannedEntry;
  /** After the entry. */
  place: LogPlace;
}

export interface LogReadingOptions {
  folder: string;
  place: LogPlace;
  filter: LogFilter;
  run: string | null;
  isRunning: boolean;
}

/** The output of `stream` in `[from, to)` as an unfinished line; null: it has been deleted. */
export function openLineAt(files: LogFiles, from: number | null, to: number, stream: 1 | 2): OpenLine | null {
  if (from === null) return null;
  let line: OpenLine | null = null;
  for (let at = from; at < to; ) {
    const pair = files.pairFrom(at);
    if (!pair || pair.start > at) return line;
    const block = describeBlock(pair, at, readBytes(pair, at, Math.min(to, at + BLOCK_BYTES)));
    if (block.bytes.length === 0) return line;
    for (const span of block.spans) {
      if (span.stream !== stream || (line && span.run !== line.run)) continue;
      const bytes = block.bytes.subarray(span.from, span.to);
      line ??= { start: from, run: span.run, time: block.times[0]?.time ?? 0, bytes: Buffer.alloc(0) };
      line.bytes = Buffer.concat([line.bytes, bytes]).subarray(0, LOGS.maxLineBytes);
    }
    at += block.bytes.length;
  }
  return line;
}

/** The reading of one log. */
export class LogReading {
  private readonly options: LogReadingOptions;
  private readonly files: LogFiles;
  private readonly read: ReadEntry[] = [];
  /** The position after what has been read. */
  private offset: number;
  private marks: number;
  private readonly open: [OpenLine | null, OpenLine | null];
  /** The position after what has been taken. */
  private takenPlace: LogPlace;
  /** null: only matching lines are shown. */
  private readonly around: LinesAround<ReadEntry> | null;
  private isAtEnd = false;
  /** No remaining entry is earlier than this. */
  private bound: number;
  private isBegun = false;
  /** The bytes between the position and the beginning of the log: they have been deleted unread. */
  readonly lostBytes: number;

  constructor(options: LogReadingOptions) {
    const { filter, folder, place } = options;
    this.options = options;
    this.files = new LogFiles(folder);
    const { start, end } = this.files;
    // Otherwise its beginning was deleted, or it is a new log with the name of a removed one.
    const isKept = place.offset >= start && place.offset <= end;
    this.offset = isKept ? place.offset : start;
    // A log that is followed from its beginning may begin anywhere.
    const hasRead = place.offset > 0 || place.marks > 0;
    this.lostBytes = hasRead ? Math.max(0, start - place.offset) : 0;
    this.marks = isKept ? place.marks : 0;
    const openOf = (at: 0 | 1) =>
      openLineAt(this.files, isKept ? place.open[at] : null, this.offset, at === 0 ? 1 : 2);
    this.open = [openOf(0), openOf(1)];
    const fetch = this.linesBefore(this.offset);
    this.around =
      filter.context > 0 ? new LinesAround(filter.context, isKept ? place.around : 0, fetch) : null;
    this.takenPlace = this.here();
    const pair = this.files.pairFrom(this.offset);
    this.bound = pair ? timeFrom(pair, this.offset) : 0;
  }

  /** No remaining entry is earlier than this, in epoch milliseconds; Infinity: none remain. */
  get earliest(): number {
    const [next] = this.read;
    if (next) return next.entry.time;
    return this.isAtEnd ? Number.POSITIVE_INFINITY : this.bound;
  }

  get hasReadBlock(): boolean {
    return this.isBegun;
  }

  /** Whether `next` will take an entry. */
  get hasEntry(): boolean {
    return this.read.length > 0;
  }

  /** The position after everything that was taken or does not match. */
  get place(): LogPlace {
    return this.takenPlace;
  }

  close(): void {
    this.files.close();
  }

  /** Takes the next entry; undefined: another block was read instead, or the log is at its end. */
  next(): ReadEntry | undefined {
    const next = this.read.shift();
    if (next) this.takenPlace = next.place;
    else if (!this.isAtEnd) this.readBlock();
    if (this.read.length === 0) this.takenPlace = this.here();
    return next;
  }

  private here(): LogPlace {
    const [stdout, stderr] = this.open;
    const { offset, marks, around } = this;
    const open: LogPlace['open'] = [stdout?.start ?? null, stderr?.start ?? null];
    return { offset, marks, open, around: around?.place ?? 0 };
  }

  /**
   * Returns a function that reads the last lines before `offset`, where the reading begins, each with the
   * position after it.
   */
  private linesBefore(offset: number): (count: number) => ReadEntry[] {
    const { open, place } = { open: this.open.map((line) => line?.start), place: this.here() };
    return (count) => {
      // The beginning of a line whose end is still to be read is not a line of its own.
      const found = linesBefore(this.options, offset, count === 0 ? 0 : count + open.length);
      const lines = found.filter(({ line }) => !open.includes(line?.offset)).slice(-count);
      return lines.map((entry, at) => ({ entry, place: { ...place, around: lines.length - 1 - at } }));
    };
  }

  /** Shows the lines before a match. */
  private showBefore(around: LinesAround<ReadEntry>): void {
    const { lines, hasGap } = around.take();
    for (const [at, { entry, place }] of lines.entries())
      this.read.push({ entry: { ...entry, around: true, ...(hasGap && at === 0 && { gap: true }) }, place });
  }

  private readBlock(): void {
    this.isBegun = true;
    const pair = this.files.pairFrom(this.offset);
    if (!pair) {
      this.isAtEnd = true;
      return;
    }
    const start = Math.max(this.offset, pair.start);
    if (start > this.offset) [this.offset, this.marks] = [start, 0];
    const block = describeBlock(pair, start, readBytes(pair, start, start + BLOCK_BYTES));
    const end = start + block.bytes.length;
    this.isAtEnd = end >= this.files.end || block.bytes.length === 0;
    const marks = block.marks.filter(({ offset }) => offset < end || this.isAtEnd);
    if (start === pair.start) marks.unshift(...marksBefore(this.files, pair));
    // Skips the marks that an earlier reader has already read.
    marks.splice(0, Math.min(this.marks, marks.filter(({ offset }) => offset === start).length));
    for (const span of block.spans) this.readSpan(block, span, marks);
    for (const mark of marks.splice(0)) this.readMark(mark);
    if (this.isAtEnd && !this.options.isRunning) for (const stream of [1, 2] as const) this.flush(stream);
    // An unfinished line is read again each time, which must not take long.
    for (const stream of [1, 2] as const)
      if ((this.open[stream - 1]?.start ?? this.offset) < this.offset - MAX_OPEN_BYTES) this.flush(stream);
    this.bound = block.times.at(-1)?.time ?? this.bound;
  }

  private readSpan(block: LogBlock, span: LogSpan, marks: PlacedMark[]): void {
    let from = span.from;
    for (let mark = marks[0]; mark && mark.offset < block.start + span.to; mark = marks[0]) {
      marks.shift();
      this.readOutput(block, span, from, Math.max(from, mark.offset - block.start));
      from = Math.max(from, mark.offset - block.start);
      this.readMark(mark);
    }
    this.readOutput(block, span, from, span.to);
  }

  private readMark(mark: PlacedMark): void {
    if (mark.event === 'ended')
      for (const stream of [1, 2] as const) if (this.open[stream - 1]?.run === mark.run) this.flush(stream);
    this.marks += 1;
    const { filter, run } = this.options;
    const { time } = mark;
    if (filter.hasText || (run !== null && mark.run !== run) || time < filter.since || time > filter.until)
      return;
    this.read.push({ entry: { key: 0, time, line: null, mark }, place: this.here() });
  }

  /** Reads the bytes `[from, to)` of a block, which are of one stream and run. */
  private readOutput(block: LogBlock, { stream, run }: LogSpan, from: number, to: number): void {
    const { bytes, start } = block;
    const at = stream === 1 ? 0 : 1;
    if (to > from && this.open[at] && this.open[at]?.run !== run) this.flush(stream);
    for (let next = from; next < to; ) {
      const before = this.open[at]?.bytes.length ?? 0;
      const newline = bytes.subarray(0, to).indexOf(NEWLINE, next);
      let end = newline < 0 ? to : newline;
      const isTooLong = before + end - next > LOGS.maxLineBytes;
      if (isTooLong) end = next + LOGS.maxLineBytes - before;
      while (isTooLong && end > next && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
      const line = this.open[at] ?? {
        start: start + next,
        run,
        time: timeAt(block, start + next),
        bytes: bytes.subarray(0, 0),
      };
      const part = bytes.subarray(next, end);
      line.bytes = before === 0 ? part : Buffer.concat([line.bytes, part]);
      this.open[at] = line;
      next = newline >= 0 && !isTooLong ? end + 1 : end;
      [this.offset, this.marks] = [start + next, 0];
      if (newline >= 0 || isTooLong) this.flush(stream);
    }
  }

  /** Ends an unfinished line of a stream. */
  private flush(stream: 1 | 2): void {
    const at = stream === 1 ? 0 : 1;
    const line = this.open[at];
    if (!line) return;
    this.open[at] = null;
    const { filter, run } = this.options;
    const { time, start } = line;
    const isOfRange = time >= filter.since && time <= filter.until;
    const isOther =
      (filter.stream !== null && filter.stream !== stream) || (run !== null && line.run !== run);
    if (!isOfRange || isOther) return;
    const printed = line.bytes.toString('utf8');
    const text = readLine(readableLine(printed));
    const isWanted = filter.accepts(text);
    const { around } = this;
    if (!isWanted && !around) return;
    const { level, fields } = text;
    // An object made with a spread takes four times as long, also to write as JSON.
    const found = { text: text.text, level, fields, offset: start, run: line.run, stream, printed };
    const entry: ScannedEntry = { key: 0, time, line: found, mark: null };
    if (isWanted) {
      if (around) this.showBefore(around);
      this.read.push({ entry, place: this.here() });
    } else if (around?.skip({ entry, place: { ...this.here(), around: 0 } }))
      this.read.push({ entry: { ...entry, around: true }, place: this.here() });
  }
}
