// The log of one service: read from its files, followed through the host.
import { inTurns, type Showing, textOf, unended } from '../adapters/linecut.ts';
import { jsonOf } from '../adapters/linejson.ts';
import { logEnd, readLog, readTail, type Tail } from '../adapters/logread.ts';
import { LOGS, SERVICE } from '../limits.ts';
import type { LogsAnswer, LogsQuery } from '../protocol/service.ts';
import { localTime } from '../protocol/time.ts';
import type { ServiceEffects } from './service_effects.ts';
import { Turns } from './turns.ts';

export interface Span {
  start: number;
  end: number;
  bytes: Uint8Array;
}

/** Long tails are shown one after the other, over all services of a thread: each may hold hundreds of megabytes meanwhile. */
const longOnes = new Turns();
const isLong = ({ lines }: Tail): boolean =>
  lines.reduce((bytes, { from, to }) => bytes + to - from, 0) > LOGS.longTailBytes;

const AS_READ: Showing = { raw: false, stamp: null };

const answerOf = async ({ lines, end }: Tail, showing: Showing): Promise<LogsAnswer> => ({
  lines: await jsonOf(lines, showing),
  end,
  rest: unended(lines),
});

export class ServiceLog {
  private readonly folder: string;
  private readonly effects: ServiceEffects;
  private followers = 0;

  constructor(folder: string, effects: ServiceEffects) {
    this.folder = folder;
    this.effects = effects;
  }

  async tail({ lines, stream, raw, timestamps }: LogsQuery): Promise<LogsAnswer> {
    const showing: Showing = { raw, stamp: timestamps ? localTime : null };
    const read = () => readTail(this.folder, { lines, stream, run: null });
    const tail = read();
    // Read again when it is its turn: nothing of it is kept until then.
    return isLong(tail) ? longOnes.take('', () => answerOf(read(), showing)) : answerOf(tail, showing);
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
  async lastLines(run: string): Promise<string[]> {
    const { lines } = readTail(this.folder, { stream: null, run, lines: SERVICE.hintLines });
    const texts = await inTurns(lines, (some) => some.map((line) => textOf(line, AS_READ)));
    return texts.flat();
  }

  /** Counted: each on needs its off. */
  follow(on: boolean): null {
    const before = this.followers;
    this.followers = Math.max(0, before + (on ? 1 : -1));
    if (before === 0 || this.followers === 0) this.effects.follow(on);
    return null;
  }

  grew(end: number): void {
    this.effects.grew(end);
  }

  /** A host that was away does not know who follows. */
  followAgain(): void {
    if (this.followers > 0) this.effects.follow(true);
  }
}
