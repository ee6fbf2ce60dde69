// Steps through a log that is followed. Followers at the same position share a step: the log is read and
// formatted once, however many there are.
import { LineCutter, NO_PARTIAL_LINE, type PartialLine } from '../../logs/line_cutter.ts';
import { type LineFormat, lineText } from '../../logs/line_text.ts';
import type { LogSlice, LogsQuery } from '../../protocol/logs.ts';
import type { ServiceProtocol } from '../../protocol/service.ts';
import { localTime } from '../../protocol/timestamps.ts';
import type { Ref } from '../../runtime/actor.ts';
import { Semaphore } from '../../runtime/semaphore.ts';
import { KIB, LOGS } from '../../settings/limits.ts';
import type { FairQueue } from './fair_queue.ts';

/**
 * How many bytes of log to read per request to the service, and format in a step. Formatting takes a few
 * milliseconds, depending on bytes for long lines and on their number for short ones. Four times as much
 * would be read in two thirds of the time, but take twice the memory with a thousand followers that do not
 * read.
 */
const READ_BYTES = 16 * KIB;
const NEWLINE = 0x0a;
/** The memory assumed for a step besides its text. */
const ENTRY_BYTES = 512;

/** A position in a log, between two steps. */
export interface LogPosition {
  offset: number;
  /** The run that printed the output before it; null: unknown, and `partial` is empty. */
  run: string | null;
  /** The unfinished line before the offset. */
  partial: PartialLine;
}

export const positionAt = (offset: number): LogPosition => ({ offset, run: null, partial: NO_PARTIAL_LINE });

/** The output that follows a position. */
export interface LogStep {
  /** The lines as frames of an event stream; may be empty. */
  frames: Buffer;
  next: LogPosition;
  /** null: there is more output. A number: this is the end of the log, after this many growths. */
  endAt: number | null;
}

/**
 * One line as a frame. `id` is the offset at which the log continues after it: a client that reconnects sends
 * it back.
 */
function lineFrame(line: string, id: number | null): string {
  return `${id === null ? '' : `id: ${id}\n`}event: line\ndata: ${JSON.stringify({ line })}\n\n`;
}

/** Looks up the time at an offset. Offsets must not decrease from call to call. */
function timeLookup(times: LogSlice['times']): (offset: number) => number {
  let at = 0;
  return (offset) => {
    while (at + 1 < times.length && (times[at + 1]?.offset ?? 0) <= offset) at += 1;
    return times[at]?.time ?? 0;
  };
}

/** The frame that tells of output up to the offset `id`. */
const growthFrame = (id: number): string => `id: ${id}\nevent: growth\ndata: {}\n\n`;

/** The part of `slice` that fits into one step. */
function firstLines(slice: LogSlice): LogSlice {
  let lines = 0;
  for (const [index, { offset, bytes }] of slice.parts.entries()) {
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
      lines += 1;
      if (lines < LOGS.maxStepLines || at + 1 === bytes.length) continue;
      const last = { offset, bytes: bytes.subarray(0, at + 1) };
      return { ...slice, parts: [...slice.parts.slice(0, index), last], end: offset + at + 1 };
    }
  }
  return slice;
}

/** The step from `from` over `slice`, the first lines of `whole`. */
function formatStep(
  from: LogPosition,
  whole: LogSlice,
  isRunning: boolean,
  format: LineFormat,
): Omit<LogStep, 'endAt'> {
  const { start, end, run, parts, times } = firstLines(whole);
  const cutter = new LineCutter(from.partial);
  const isOther = run !== null && run !== from.run;
  // The last line of an ended run stays unfinished, as does a line whose next part is lost.
  const isOver = start > from.offset || isOther || (end <= from.offset && !isRunning);
  const incomplete = isOver ? cutter.flush() : undefined;
  let frames = incomplete ? lineFrame(lineText(incomplete, format), from.offset) : '';
  const timeAt = timeLookup(times);
  for (const { offset, bytes } of parts)
    for (const line of cutter.cut(Buffer.from(bytes), offset, timeAt))
      frames += lineFrame(lineText(line, format), line.next);
  const next = { offset: end, run: isOther ? run : from.run, partial: cutter.partial };
  return { frames: Buffer.from(frames), next };
}

/** The step from `from` over `slice` for followers that want to know of output and not what it is. */
function growthStep(from: LogPosition, { end, parts }: LogSlice): Omit<LogStep, 'endAt'> {
  const frame = parts.length > 0 ? growthFrame(end) : '';
  return { frames: Buffer.from(frame), next: { ...from, offset: end } };
}

/** The latest steps of all logs, and the reads under way. */
export class LogStepCache {
  /** Reads few logs at once, so that the services thread has time for other requests. */
  readonly reads = new Semaphore(LOGS.maxConcurrentReads);
  private readonly queue: FairQueue;
  private readonly steps = new Map<string, { step: Promise<LogStep>; bytes: number }>();
  private bytes = 0;
  private lastLog = 0;

  /** `queue` takes the formatting. */
  constructor(queue: FairQueue) {
    this.queue = queue;
  }

  /** A number that identifies a log. */
  nextLog(): number {
    this.lastLog += 1;
    return this.lastLog;
  }

  /** The step of `key`: a known one or one under way, otherwise the result of `take`. */
  share(key: string, take: () => Promise<LogStep>): Promise<LogStep> {
    const known = this.steps.get(key);
    if (known) return known.step;
    const entry = { step: take(), bytes: 0 };
    this.steps.set(key, entry);
    entry.step.then(
      (step) => {
        if (this.steps.get(key) !== entry) return;
        // What follows the end of a log changes, so it is not kept.
        if (step.endAt === null) this.keep(key, entry, step);
        else this.steps.delete(key);
      },
      () => this.steps.delete(key),
    );
    return entry.step;
  }

  /** Runs `work` when its turn comes. */
  inTurn<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.queue.add(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  private keep(key: string, entry: { bytes: number }, { frames, next }: LogStep): void {
    entry.bytes = frames.length + next.partial.bytes.length + ENTRY_BYTES;
    this.bytes += entry.bytes;
    for (const [oldest, { bytes: freed }] of this.steps) {
      if (this.bytes <= LOGS.maxSharedBytes) return;
      if (oldest === key) continue;
      this.steps.delete(oldest);
      this.bytes -= freed;
    }
  }
}

/** A log to be followed. */
export interface FollowedLogOptions {
  service: Ref<ServiceProtocol>;
  query: LogsQuery;
  /** Whether growth is wanted in place of lines. */
  growth: boolean;
  isRunning: () => boolean;
}

/** One log, as all followers with the same query see it. */
export class FollowedLog {
  /** How many times the log is known to have grown. */
  growths = 0;
  private readonly id: number;
  private readonly cache: LogStepCache;
  private readonly service: Ref<ServiceProtocol>;
  private readonly query: LogsQuery;
  private readonly growth: boolean;
  private readonly isRunning: () => boolean;
  private readonly format: LineFormat;

  constructor(cache: LogStepCache, { service, query, growth, isRunning }: FollowedLogOptions) {
    this.cache = cache;
    this.id = cache.nextLog();
    this.service = service;
    this.query = query;
    this.growth = growth;
    this.isRunning = isRunning;
    this.format = { raw: query.raw, stamp: query.timestamps ? localTime : null };
  }

  /** The step after `position`. Fails as the service does. */
  stepFrom(position: LogPosition): Promise<LogStep> {
    const key = `${this.id} ${position.offset} ${position.partial.bytes.length}`;
    return this.cache.share(key, () => this.take(position));
  }

  private async take(position: LogPosition): Promise<LogStep> {
    const { stream, timestamps } = this.query;
    let endAt = 0;
    const slice = await this.cache.reads.run(() => {
      // Output added from here on may be missing from the answer.
      endAt = this.growths;
      return this.service.ask('read', { offset: position.offset, limit: READ_BYTES, stream, timestamps });
    });
    const isAtEnd = slice.end <= position.offset;
    return this.cache.inTurn(() => ({
      ...(this.growth
        ? growthStep(position, slice)
        : formatStep(position, slice, this.isRunning(), this.format)),
      endAt: isAtEnd ? endAt : null,
    }));
  }
}
