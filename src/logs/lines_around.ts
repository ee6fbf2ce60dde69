// The lines around those that a query finds, as grep has them: docs/reference.md "Logs of many services".
import { KIB } from '../settings/limits.ts';
import type { LogFilter } from './log_filter.ts';
import { LogScan, type ScannedEntry } from './log_scan.ts';

const BLOCK_BYTES = { plain: 32 * KIB, hinted: 32 * KIB };
/** Blocks in which lines around another are looked for: those of a run or a stream may be rare. */
export const MAX_BLOCKS_AROUND = 8;

/** The lines around those of `filter`: of the same streams and times, whatever they contain. */
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

/** What is kept of one log, as it is read forwards, so that a wanted line has the lines around it. */
export class LinesAround<Line> {
  private readonly count: number;
  private readonly fetch: (count: number) => Line[];
  /** Lines that were read and are not shown, at most one more than is shown of them. */
  private unshown: Line[] = [];
  /** How many such lines there may be before those. */
  private earlier: number;
  /** Lines that are owed after the last wanted one. */
  private owed: number;

  /** `place` as `place` was where the reading begins; `fetch` reads the last lines before that. */
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

  /** Takes a line that is not wanted. Returns whether it is shown, because a wanted one is before it. */
  skip(line: Line): boolean {
    if (this.owed > 0) {
      this.owed -= 1;
      return true;
    }
    this.unshown.push(line);
    if (this.unshown.length > this.count + 1) this.unshown.shift();
    return false;
  }

  /** A wanted line comes: the lines before it, and whether others before them are left out. */
  take(): { lines: Line[]; hasGap: boolean } {
    const { count, earlier, unshown } = this;
    const lines = [...this.fetch(Math.min(count + 1 - unshown.length, earlier)), ...unshown];
    this.unshown = [];
    this.earlier = 0;
    this.owed = count;
    return { lines: lines.slice(-count), hasGap: lines.length > count };
  }
}
