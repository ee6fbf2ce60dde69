// The journal of events in files. There are two series, because a series stays bounded by dropping its oldest
// file whole: in a single one, a day of statistics would push out the last crash.
//
// A full disk must neither stop a service nor make subscribers wait. So lines that cannot be written wait in
// memory, up to the number that is kept anyway, and are written with the next ones once there is room. Those
// that are no statistics are also written to a file that was allocated while there was room, where the next
// daemon finds them. It knows from another one the newest id, as subscribers may have seen more.
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { LineReserve } from './line_reserve.ts';
import { Segments } from './segments.ts';

/** Lines of both series, each with its newline. */
export interface JournalLines {
  lifecycle: string[];
  statistics: string[];
}

/** Lines per file, as a multiple of the lines that must be kept. */
const LINES_PER_FILE_FACTOR = 4;

export class EventJournal {
  private readonly lifecycle: LineSeries;
  private readonly statistics: LineSeries;
  private readonly unwrittenId: NumberFile;
  private readonly keepLines: number;
  private readonly report: (text: string) => void;

  /**
   * Never loses the newest `keepLines` lines of a series. Allocates `reserveBytes` for lines on a full disk.
   * `report` is called when writing fails, and when it works again.
   */
  constructor(folder: string, keepLines: number, reserveBytes: number, report: (text: string) => void) {
    this.lifecycle = new LineSeries(folder, 'life', keepLines, reserveBytes);
    this.statistics = new LineSeries(folder, 'statistics', keepLines, 0);
    this.unwrittenId = new NumberFile(join(folder, 'unwritten'), report);
    this.keepLines = keepLines;
    this.report = report;
  }

  /**
   * The newest lines of both series without newlines, oldest first. One line more than is kept shows that
   * there are more.
   */
  newest(): JournalLines {
    return {
      lifecycle: this.lifecycle.newest(this.keepLines + 1),
      statistics: this.statistics.newest(this.keepLines + 1),
    };
  }

  /** The newest id whose line was still waiting for room when the last daemon ended; 0 without one. */
  get newestUnwrittenId(): number {
    return this.unwrittenId.value;
  }

  /** Appends `lines`, the last of which has the id `newestId`. Returns false while lines wait for room. */
  write(lines: JournalLines, newestId: number): boolean {
    const error = this.lifecycle.write(lines.lifecycle) ?? this.statistics.write(lines.statistics);
    const hasWaited = this.unwrittenId.value !== 0;
    this.unwrittenId.set(error ? newestId : 0);
    if (error && !hasWaited)
      this.report(`events: the journal cannot be written, they wait in memory: ${error}`);
    if (!error && hasWaited) this.report('events: the journal is written again');
    return error === undefined;
  }

  /** Waits until everything written is on disk. */
  sync(): void {
    this.lifecycle.segments.sync();
    this.statistics.segments.sync();
  }

  close(): void {
    this.lifecycle.close();
    this.statistics.close();
    this.unwrittenId.close();
  }
}

class LineSeries {
  readonly segments: Segments;
  private readonly keepLines: number;
  private readonly reserve: LineReserve | null;
  private waiting: string[] = [];

  /** `reserveBytes` 0: lines that wait for room are in memory only. */
  constructor(folder: string, name: string, keepLines: number, reserveBytes: number) {
    this.segments = new Segments(folder, name, keepLines * LINES_PER_FILE_FACTOR);
    this.keepLines = keepLines;
    this.reserve = reserveBytes > 0 ? new LineReserve(join(folder, `${name}.reserve`), reserveBytes) : null;
    const { found } = this.reserve ?? { found: [] };
    if (found.length === 0) return;
    // A kill between the write of the waiting lines and the clearing of the reserve leaves them in both.
    const written = new Set(this.segments.newest(keepLines + found.length));
    this.waiting = found.filter((line) => !written.has(line.slice(0, -1)));
    if (this.waiting.length === 0) this.reserve?.clear();
  }

  /** The newest lines, the waiting ones included, without newlines, oldest first. */
  newest(count: number): string[] {
    return [...this.segments.newest(count), ...this.waiting.map((line) => line.slice(0, -1))].slice(-count);
  }

  /** Appends `lines` and the waiting lines. Returns the system's message when they could not be written. */
  write(lines: string[]): string | undefined {
    if (lines.length === 0 && this.waiting.length === 0) return undefined;
    const all = this.waiting.length === 0 ? lines : [...this.waiting, ...lines];
    try {
      this.segments.append(all.join(''), all.length);
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      this.waiting = all.slice(-this.keepLines);
      this.reserve?.add(lines.join(''));
      return error.message;
    }
    if (this.waiting.length > 0) this.reserve?.clear();
    this.waiting = [];
    return undefined;
  }

  close(): void {
    this.segments.close();
    this.reserve?.close();
  }
}

const DIGITS = 16;

/** A number in a file, overwritten in place, which needs no room on the disk. Damaged, it counts as 0. */
class NumberFile {
  private readonly fd: number;
  private current: number;

  constructor(path: string, report: (text: string) => void) {
    this.fd = openSync(path, 'a', 0o600);
    closeSync(this.fd);
    this.fd = openSync(path, 'r+');
    const bytes = Buffer.alloc(DIGITS);
    const text = bytes.toString('latin1', 0, readSync(this.fd, bytes, 0, DIGITS, 0));
    const isSound = /^\d*$/.test(text) && Number.isSafeInteger(Number(text));
    if (!isSound) report(`events: ${path} is damaged, and begins anew`);
    this.current = isSound ? Number(text) : 0;
    if (this.current === 0) this.write(0);
  }

  get value(): number {
    return this.current;
  }

  set(value: number): void {
    if (value !== this.current) this.write(value);
  }

  close(): void {
    closeSync(this.fd);
  }

  private write(value: number): void {
    this.current = value;
    try {
      writeSync(this.fd, String(value).padStart(DIGITS, '0'), 0, 'latin1');
    } catch {
      // A copy-on-write file system may need room even here. A kill before there is room then loses the ids.
    }
  }
}
