// The journal of events in files: two series, because each of them stays bounded by dropping its oldest file whole. In one
// series a day of statistics would push the last crash out, or everything would have to be copied around them.
//
// A disk that is full must not stop a service, nor make its subscribers wait. So lines that cannot be written wait in
// memory, as many as are kept anyway, and are written with the next ones once there is room. Their newest id is noted in a
// small file that was made while there was room: the next life knows by it what only a subscriber has seen.
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Segments } from './segments.ts';

/** Lines of each series, each with its newline. */
export interface JournalLines {
  lifecycle: string[];
  statistics: string[];
}

/** A file takes so many times the lines that must be kept before the next one begins. */
const LINES_PER_FILE_FACTOR = 4;

export class EventJournal {
  private readonly lifecycle: LineSeries;
  private readonly statistics: LineSeries;
  private readonly unwrittenId: NumberFile;
  private readonly keepLines: number;
  private readonly report: (text: string) => void;

  /** `kept`: the newest lines of each series that are never lost. `report` is told when writing fails and works again. */
  constructor(folder: string, kept: number, report: (text: string) => void) {
    this.lifecycle = new LineSeries(folder, 'life', kept);
    this.statistics = new LineSeries(folder, 'statistics', kept);
    this.unwrittenId = new NumberFile(join(folder, 'unwritten'));
    this.keepLines = kept;
    this.report = report;
  }

  /** The newest lines of both series without their newlines, oldest first: one more than is kept where there are more. */
  newest(): JournalLines {
    return {
      lifecycle: this.lifecycle.segments.newest(this.keepLines + 1),
      statistics: this.statistics.segments.newest(this.keepLines + 1),
    };
  }

  /** The newest id whose line was waiting for room when the last life ended; 0: none was. */
  get newestUnwrittenId(): number {
    return this.unwrittenId.value;
  }

  /** Appends; `newest` is the id of the last of all these lines. False when lines wait for room. */
  write(lines: JournalLines, newestId: number): boolean {
    const error = this.lifecycle.write(lines.lifecycle) ?? this.statistics.write(lines.statistics);
    const waited = this.unwrittenId.value !== 0;
    this.unwrittenId.set(error ? newestId : 0);
    if (error && !waited) this.report(`events: the journal cannot be written, they wait in memory: ${error}`);
    if (!error && waited) this.report('events: the journal is written again');
    return error === undefined;
  }

  /** Waits until everything written is on disk. */
  sync(): void {
    this.lifecycle.segments.sync();
    this.statistics.segments.sync();
  }

  close(): void {
    this.lifecycle.segments.close();
    this.statistics.segments.close();
    this.unwrittenId.close();
  }
}

class LineSeries {
  readonly segments: Segments;
  private readonly keepLines: number;
  private waiting: string[] = [];

  constructor(folder: string, name: string, kept: number) {
    this.segments = new Segments(folder, name, kept * LINES_PER_FILE_FACTOR);
    this.keepLines = kept;
  }

  /** What the system said when it could not be written. */
  write(lines: string[]): string | undefined {
    if (lines.length === 0 && this.waiting.length === 0) return undefined;
    const all = this.waiting.length === 0 ? lines : [...this.waiting, ...lines];
    try {
      this.segments.append(all.join(''), all.length);
      this.waiting = [];
      return undefined;
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      this.waiting = all.slice(-this.keepLines);
      return error.message;
    }
  }
}

const DIGITS = 16;

/** A number in a file, overwritten in place: that needs no room. */
class NumberFile {
  private readonly fd: number;
  private current: number;

  constructor(path: string) {
    this.fd = openSync(path, 'a', 0o600);
    closeSync(this.fd);
    this.fd = openSync(path, 'r+');
    const bytes = Buffer.alloc(DIGITS);
    this.current = Number(bytes.toString('latin1', 0, readSync(this.fd, bytes, 0, DIGITS, 0)));
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
      // A file system that copies on write may need room even here: then a kill before there is room costs the ids.
    }
  }
}
