// The log of one service: read from its files, followed through the host.
import { logEnd, readLog, readTail } from '../adapters/logread.ts';
import { SERVICE } from '../limits.ts';
import type { LogsAnswer, LogsQuery } from '../protocol/service.ts';
import { localTime } from '../protocol/time.ts';
import type { Others } from './service_others.ts';

export interface Span {
  start: number;
  end: number;
  bytes: Uint8Array;
}

export class ServiceLog {
  private readonly folder: string;
  private readonly others: Others;
  private followers = 0;

  constructor(folder: string, others: Others) {
    this.folder = folder;
    this.others = others;
  }

  tail(query: LogsQuery): LogsAnswer {
    const { lines, end } = readTail(this.folder, { ...query, run: null, stamp: localTime });
    return { lines: Buffer.from(JSON.stringify(lines)), end };
  }

  /** `run` null: of all runs. */
  read(offset: number, limit: number, stream: LogsQuery['stream'], run: string | null): Span {
    return readLog(this.folder, offset, limit, stream, run);
  }

  /** The logical offset of its end. */
  end(): number {
    return logEnd(this.folder);
  }

  /** What `run` has printed last, as a person would read it. */
  lastLines(run: string): string[] {
    const as = { stream: null, timestamps: false, raw: false, stamp: localTime };
    return readTail(this.folder, { ...as, run, lines: SERVICE.hintLines }).lines;
  }

  /** Counted: each on needs its off. */
  follow(on: boolean): null {
    const before = this.followers;
    this.followers = Math.max(0, before + (on ? 1 : -1));
    if (before === 0 || this.followers === 0) this.others.follow(on);
    return null;
  }

  grew(end: number): void {
    this.others.grew(end);
  }

  /** A host that was away does not know who follows. */
  followAgain(): void {
    if (this.followers > 0) this.others.follow(true);
  }
}
