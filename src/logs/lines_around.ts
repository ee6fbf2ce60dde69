// The lines around the matches of a query, as with grep: docs/reference.md "Logs of many services".
import { KIB } from '../settings/limits.ts';
import type { LogFilter } from './log_filter.ts';
import { LogScan, type ScannedEntry } from './log_scan.ts';

const BLOCK_BYTES = { plain: 32 * KIB, hinted: 32 * KIB };
/** How many blocks to search for surrounding lines: those of a run or a stream may be rare. */
export const MAX_BLOCKS_AROUND = 8;

/** A filter for the lines around those of `filter`: the same streams and times, any content. */
export const filterAround = (filter: LogFilter): LogFilter => ({
  ...filter,
  hint: null,
  hasText: true,
  context: 0,
  accepts: () => true,
});

/** The last `count` lines that begin before the logical offset `before`, the oldest first. */
export function linesBefore(
  log: { folder: string; filter: LogFilter; run: string | null },
  before: number,
  count: number,
): ScannedEntry[] {
  if (count === 0) return [];
  const filter = filterAround(log.filter);
  const scan = new LogScan({ ...log, filter, before: 2 * before, blockBytes: BLOCK_BYTES });
  const lines: ScannedEntry[] = [];
  try {
    for (let blocks = 0; lines.length < count && !scan.isDone && blocks < MAX_BLOCKS_AROUND; ) {
      if (scan.hasFound) lines.push(...scan.take());
      else {
        scan.search(count - lines.length);
        blocks += 1;
      }
    }
  } finally {
    scan.close();
  }
  return lines.slice(0, count).reverse();
}

/** Tracks one log as it is read forwards, so that matches can be shown with the lines around them. */
export class LinesAround<Line> {
  private readonly count: number;
  private readonly fetch: (count: number) => Line[];
  /** Lines that were read but not shown, at most one more than may be shown before a match. */
  private unshown: Line[] = [];
  /** How many such lines there may be before those. */
  private earlier: number;
  /** How many lines are still to be shown after the last match. */
  private owed: number;

  /** `place` is the value of `place` where the reading begins; `fetch` reads the last lines before that. */
  constructor(count: number, place: number, fetch: (count: number) => Line[]) {
    this.count = count;
    this.fetch = fetch;
    this.earlier = Math.max(0, place);
    this.owed = Math.max(0, -place);
  }

  /** See `LogPlace.around`. */
  get place(): number {
    return this.owed > 0 ? -this.owed : Math.min(this.count + 1, this.earlier + this.unshown.length);
  }

  /** Processes a line that does not match. Returns whether to show it, because it follows a match. */
  skip(line: Line): boolean {
    if (this.owed > 0) {
      this.owed -= 1;
      return true;
    }
    this.unshown.push(line);
    if (this.unshown.length > this.count + 1) this.unshown.shift();
    return false;
  }

  /** Processes a match. Returns the lines to show before it, and whether others before them are left out. */
  take(): { lines: Line[]; hasGap: boolean } {
    const { count, earlier, unshown } = this;
    const lines = [...this.fetch(Math.min(count + 1 - unshown.length, earlier)), ...unshown];
    this.unshown = [];
    this.earlier = 0;
    this.owed = count;
    return { lines: lines.slice(-count), hasGap: lines.length > count };
  }
}
