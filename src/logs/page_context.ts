// The lines around the matches on a page of a search: docs/reference.md "Logs of many services".

import { filterAround, linesBefore, MAX_BLOCKS_AROUND } from './lines_around.ts';
import type { LogFilter } from './log_filter.ts';
import { LogReading } from './log_reading.ts';
import type { ScannedEntry } from './log_scan.ts';

interface SearchedLog {
  folder: string;
  filter: LogFilter;
  run: string | null;
}

/** The first `count` lines after the line at the logical offset `offset`. */
function linesAfter({ folder, filter, run }: SearchedLog, offset: number, count: number): ScannedEntry[] {
  const place = { offset, marks: 0, open: [null, null] as [null, null], around: 0 };
  const options = { folder, place, filter: filterAround(filter), run, isRunning: true };
  const reading = new LogReading(options);
  const lines: ScannedEntry[] = [];
  try {
    let blocks = 0;
    while (lines.length < count && blocks < MAX_BLOCKS_AROUND && Number.isFinite(reading.earliest)) {
      const read = reading.next();
      if (!read) blocks += 1;
      else if ((read.entry.line?.offset ?? offset) > offset) lines.push(read.entry);
    }
  } finally {
    reading.close();
  }
  return lines;
}

const offsetOf = ({ line }: ScannedEntry): number => line?.offset ?? 0;

/**
 * The matches of one log on a page, `found` in their order, with the lines around each, in order. A line
 * between two matches is shown only once, and a match on this page or the next is not also shown as context.
 */
export function* withLinesAround(
  log: SearchedLog,
  found: readonly ScannedEntry[],
): Generator<ScannedEntry[], undefined> {
  const { filter } = log;
  const { context } = filter;
  let shownTo = -1;
  for (const entry of found) {
    const isShown = (one: ScannedEntry): boolean =>
      offsetOf(one) <= shownTo || (one.line !== null && filter.accepts(one.line));
    const earlier = linesBefore(log, offsetOf(entry), context + 1);
    const free = earlier.slice(earlier.findLastIndex(isShown) + 1);
    const before = free.slice(-context).map((one): ScannedEntry => ({ ...one, around: true }));
    const [first] = before;
    if (first && free.length > context) first.gap = true;
    const later = linesAfter(log, offsetOf(entry), context);
    const end = later.findIndex(isShown);
    const after = later
      .slice(0, end < 0 ? context : end)
      .map((one): ScannedEntry => ({ ...one, around: true }));
    shownTo = offsetOf(after.at(-1) ?? entry);
    yield [...before, entry, ...after];
  }
}
