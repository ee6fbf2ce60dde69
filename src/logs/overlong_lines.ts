// Where the parts of lines longer than 64 KiB begin, also of those that begin in an earlier file, or are
// interrupted by output of the other stream.
import { KIB, LOGS, MIB } from '../settings/limits.ts';
import { splitOffset } from './line_cutter.ts';
import { describeBlock, endOf, type LogBlock, type LogFiles, type LogSpan, readBytes } from './log_blocks.ts';

const NEWLINE = 0x0a;
const NO_BYTES = Buffer.alloc(0);
/** How far to look back for the beginning of a line. */
const MAX_BACK_BYTES = MIB;
const BACK_BLOCK_BYTES = 16 * KIB;

/** Splits the line `[from, to)`. Returns where its parts begin, ascending. */
export function splitLine(bytes: Uint8Array, from: number, to: number): number[] {
  const starts = [from];
  for (let at = from; to - at > LOGS.maxLineBytes; ) {
    at = splitOffset(bytes, at);
    starts.push(at);
  }
  return starts;
}

type Stream = LogSpan['stream'];

/** Output of one stream and run: what belongs to it from the logical offset `from` to `to`. */
interface StreamRange {
  run: string;
  from: number;
  to: number;
  /** null: no line begins in the range. */
  line: { offset: number; bytes: Buffer }[] | null;
}

/** Where lines begin that continue into blocks, for a log that is read backwards. */
class LineBeginnings {
  private readonly files: LogFiles;
  /** The last range looked at, by stream. The next block is most often before it and within the same line. */
  private readonly seen = new Map<Stream, StreamRange>();

  constructor(files: LogFiles) {
    this.files = files;
  }

  /**
   * What the line that `span` continues has before the logical offset `start`. null: it is too long, or its
   * beginning is not kept.
   */
  before(start: number, span: LogSpan): Buffer | null {
    const known = this.seen.get(span.stream);
    const isKnown = known !== undefined && known.run === span.run && known.from < start && start <= known.to;
    let line = isKnown ? known.line : null;
    if (line === null) {
      const begin = this.find(isKnown ? known.from : start, start, span);
      line = begin === null ? null : this.read(begin, start, span);
    }
    if (line === null) return null;
    const pieces = line.filter(({ offset }) => offset < start);
    return Buffer.concat(pieces.map(({ offset, bytes }) => bytes.subarray(0, start - offset)));
  }

  /** The logical offset at which the line begins, at or before `at`. */
  private find(upTo: number, start: number, { run, stream }: LogSpan): number | null {
    let at = upTo;
    while (start - at < MAX_BACK_BYTES) {
      const pair = this.files.pairBefore(at);
      if (!pair) return null;
      const end = Math.min(at, endOf(pair));
      at = Math.max(pair.start, end - BACK_BLOCK_BYTES);
      const { bytes, spans } = describeBlock(pair, at, readBytes(pair, at, end));
      if (bytes.length === 0) return null;
      for (const span of spans.toReversed()) {
        if (span.stream !== stream) continue;
        if (span.run !== run) return null;
        const newline = bytes.subarray(span.from, span.to).lastIndexOf(NEWLINE);
        if (newline >= 0 || !span.continues) return at + span.from + newline + 1;
      }
    }
    this.seen.set(stream, { run, from: at, to: start, line: null });
    return null;
  }

  /** The pieces of the line from where it begins up to `start`. */
  private read(begin: number, start: number, { run, stream }: LogSpan): StreamRange['line'] {
    const line: NonNullable<StreamRange['line']> = [];
    for (let at = begin; at < start; ) {
      const pair = this.files.pairFrom(at);
      const bytes = pair ? readBytes(pair, at, Math.min(start, at + BACK_BLOCK_BYTES)) : NO_BYTES;
      if (!pair || bytes.length === 0) return null;
      for (const span of describeBlock(pair, at, bytes).spans)
        if (span.stream === stream)
          line.push({ offset: at + span.from, bytes: bytes.subarray(span.from, span.to) });
      at += bytes.length;
    }
    this.seen.set(stream, { run, from: begin, to: start, line });
    return line;
  }
}

/** The last part so far of a line that has no end yet. */
class OpenPart {
  private pieces: Buffer[] = [];
  private length = 0;

  /** Adds more of the line. Returns where in `piece` the first part begins that does not begin before it. */
  add(piece: Buffer): number | undefined {
    this.pieces.push(piece);
    this.length += piece.length;
    if (this.length <= LOGS.maxLineBytes) return undefined;
    const before = this.length - piece.length;
    const bytes = Buffer.concat(this.pieces);
    const starts = splitLine(bytes, 0, bytes.length);
    this.pieces = [bytes.subarray(starts.at(-1))];
    this.length = this.pieces[0]?.length ?? 0;
    const own = starts.find((start) => start >= before);
    return own === undefined || before === 0 ? undefined : own - before;
  }
}

/** Where the parts of overlong lines begin in the blocks of one log, which is read backwards. */
export class OverlongLines {
  private readonly beginnings: LineBeginnings;
  private latest: { block: LogBlock; starts: ReadonlyMap<LogSpan, number> } | null = null;

  constructor(files: LogFiles) {
    this.beginnings = new LineBeginnings(files);
  }

  /**
   * Where in `block` the first part begins of each span that continues a line, as far as one begins there.
   * Goes through the block once: a line of many pieces would be read again for each of them.
   */
  partStarts(block: LogBlock): ReadonlyMap<LogSpan, number> {
    if (this.latest?.block !== block) this.latest = { block, starts: this.partStartsOf(block) };
    return this.latest.starts;
  }

  private partStartsOf(block: LogBlock): Map<LogSpan, number> {
    const starts = new Map<LogSpan, number>();
    const open = new Map<Stream, OpenPart>();
    for (const span of block.spans) {
      const bytes = block.bytes.subarray(span.from, span.to);
      const newline = bytes.indexOf(NEWLINE);
      const head = newline < 0 ? bytes : bytes.subarray(0, newline);
      let part = span.continues ? open.get(span.stream) : new OpenPart();
      if (!part) {
        part = new OpenPart();
        const before = this.beginnings.before(block.start, span);
        if (before) part.add(before);
        else if (head.length > 0) starts.set(span, span.from);
      }
      const own = part.add(head);
      if (span.continues && own !== undefined && own < head.length) starts.set(span, span.from + own);
      if (newline >= 0) {
        part = new OpenPart();
        part.add(bytes.subarray(bytes.lastIndexOf(NEWLINE) + 1));
      }
      open.set(span.stream, part);
    }
    return starts;
  }
}
