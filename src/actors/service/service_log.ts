// The log of one service: read from its files, followed through the host.

import { linesToJson } from '../../logs/json_lines.ts';
import { type LineFormat, lineText, mapInBatches } from '../../logs/line_text.ts';
import { type LogTail, logEndOffset, readLog, readLogParts, readLogTail } from '../../logs/reader.ts';
import type { LogSlice, LogsQuery } from '../../protocol/logs.ts';
import { localTime } from '../../protocol/timestamps.ts';
import { KeyedMutex } from '../../runtime/keyed_mutex.ts';
import { LOGS, SERVICE } from '../../settings/limits.ts';
import type { ServiceEffects } from './effects.ts';

export interface LogChunk {
  start: number;
  end: number;
  bytes: Uint8Array;
}

/**
 * Allows one long tail at a time among all services of a thread, because each may take hundreds of megabytes.
 */
const longTailMutex = new KeyedMutex();
const isLong = ({ lines }: LogTail): boolean =>
  lines.reduce((bytes, { from, to }) => bytes + to - from, 0) > LOGS.longTailBytes;

const READABLE: LineFormat = { raw: false, stamp: null };

export class ServiceLog {
  private readonly folder: string;
  private readonly effects: Pick<ServiceEffects, 'follow' | 'grew'>;
  private followers = 0;
  private readonly watchers = new Set<() => void>();

  constructor(folder: string, effects: Pick<ServiceEffects, 'follow' | 'grew'>) {
    this.folder = folder;
    this.effects = effects;
  }

  async tail({ lines, stream, raw, timestamps }: LogsQuery): Promise<Uint8Array> {
    const showing: LineFormat = { raw, stamp: timestamps ? localTime : null };
    const read = () => readLogTail(this.folder, { lines, stream, run: null });
    const tail = read();
    // Read again in its turn, so that waiting requests hold no bytes.
    return isLong(tail)
      ? longTailMutex.runExclusive('', () => linesToJson(read().lines, showing))
      : linesToJson(tail.lines, showing);
  }

  /** The logical offset of the first of the last `lines`. */
  tailStart({ lines, stream }: Pick<LogsQuery, 'lines' | 'stream'>): number {
    if (lines === 0) return this.end();
    const tail = readLogTail(this.folder, { lines, stream, run: null });
    return tail.lines[0]?.offset ?? tail.end;
  }

  /** Output of `run` from `offset` on. */
  read(offset: number, limit: number, run: string): LogChunk {
    return readLog(this.folder, offset, limit, run);
  }

  parts(offset: number, limit: number, query: Pick<LogsQuery, 'stream' | 'timestamps'>): LogSlice {
    return readLogParts(this.folder, offset, limit, query);
  }

  /** The logical end offset of the log. */
  end(): number {
    return logEndOffset(this.folder);
  }

  /** The last lines of `run` as readable text. */
  async lastLines(run: string): Promise<string[]> {
    const { lines } = readLogTail(this.folder, { stream: null, run, lines: SERVICE.hintLines });
    const texts = await mapInBatches(lines, (some) => some.map((line) => lineText(line, READABLE)));
    return texts.flat();
  }

  /** Counts followers: each `on` needs one `off`. */
  follow(on: boolean): null {
    const before = this.followers;
    this.followers = Math.max(0, before + (on ? 1 : -1));
    if (before === 0 || this.followers === 0) this.effects.follow(on);
    return null;
  }

  grew(): void {
    this.effects.grew();
    for (const onGrown of this.watchers) onGrown();
  }

  /** Calls `onGrown` whenever the log has grown. Returns a function that unsubscribes. */
  watch(onGrown: () => void): () => void {
    this.watchers.add(onGrown);
    this.follow(true);
    return () => {
      if (this.watchers.delete(onGrown)) this.follow(false);
    };
  }

  /** Follows the log again after a loss of the host, which does not remember followers. */
  resumeFollow(): void {
    if (this.followers > 0) this.effects.follow(true);
  }
}
