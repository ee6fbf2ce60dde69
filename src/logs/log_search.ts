// Searches the logs of many services, the newest lines first: a pure function of their files, for the job
// threads. The log whose next entry may be the newest is always read first. So a page of the newest lines
// reads little, and entries come in order of time.
import { join } from 'node:path';
import type { FoundEntry, LogSearchAnswer, LogSearchTask } from '../protocol/logs.ts';
import { KIB, LOGS } from '../settings/limits.ts';
import { entryJson } from './log_entry_json.ts';
import { compileFilter, type LogFilter } from './log_filter.ts';
import { findRun } from './log_runs.ts';
import { LogScan, type ScannedEntry } from './log_scan.ts';
import { withLinesAround } from './page_context.ts';

/** The block size: small for the newest lines, and larger where most bytes are only scanned. */
const BLOCK_BYTES = { plain: 32 * KIB, hinted: 64 * KIB };
/** How many logs keep their files open between two blocks. */
const MAX_OPEN_LOGS = 64;

const MIN_SHARE = 10;

interface NamedScan {
  name: string;
  run: string | null;
  scan: LogScan;
}

function openScans({ folder, logs, run }: LogSearchTask, filter: LogFilter): NamedScan[] {
  const scans: NamedScan[] = [];
  for (const { name, before } of logs) {
    const path = join(folder, name);
    const runId = run === null ? null : findRun(path, run);
    if (run !== null && runId === null) continue;
    const scan = new LogScan({ folder: path, filter, run: runId, before, blockBytes: BLOCK_BYTES });
    if (logs.length > MAX_OPEN_LOGS) scan.close();
    scans.push({ name, run: runId, scan });
  }
  return scans;
}

/** How many lines to read at once from one of `logs` logs. Lines that are read but not taken are wasted. */
const shareOf = (lines: number, logs: number): number =>
  Math.min(lines, Math.max(MIN_SHARE, 2 * Math.ceil(lines / logs)));

/** The log whose next entry may be the newest; among equals, one that has already found it. */
function newestOf(scans: readonly NamedScan[]): NamedScan | null {
  let newest: NamedScan | null = null;
  for (const one of scans) {
    if (one.scan.isDone) continue;
    const { latest, hasFound } = one.scan;
    const best = newest?.scan.latest ?? Number.NEGATIVE_INFINITY;
    if (!newest || latest > best || (latest === best && hasFound)) newest = one;
  }
  return newest;
}

interface FoundLine {
  row: FoundEntry;
  entry: ScannedEntry;
}

/** Adds the lines around each match, up to `maxBytes` of text and while there is time. */
function addContext(
  { folder, ansi, budgetMs }: LogSearchTask,
  filter: LogFilter,
  found: ReadonlyMap<NamedScan, FoundLine[]>,
  maxBytes: number,
): void {
  const until = performance.now() + budgetMs;
  let left = maxBytes;
  for (const [{ name, run }, lines] of found) {
    const log = { folder: join(folder, name), filter, run };
    const ordered = lines.toReversed();
    const blocks = withLinesAround(
      log,
      ordered.map(({ entry }) => entry),
    );
    for (const { row } of ordered) {
      const { value: block } = left > 0 && performance.now() < until ? blocks.next() : { value: undefined };
      if (!block) return;
      row.json = block.map((entry) => entryJson(name, entry, ansi)).join(',');
      left -= row.json.length;
    }
  }
}

/**
 * The newest matching entries of `task.logs`, until there are enough or the time is up. Rejects with
 * invalid_spec when the regex is invalid.
 */
export async function searchLogs(task: LogSearchTask): Promise<LogSearchAnswer> {
  const { limit, budgetMs, ansi } = task;
  const until = performance.now() + budgetMs;
  const filter = await compileFilter(task.filter);
  const scans = openScans(task, filter);
  const found = new Map<NamedScan, FoundLine[]>();
  const entries: FoundEntry[] = [];
  const searched = new Set<NamedScan>();
  let [lines, marks, bytes] = [0, 0, 0];
  try {
    let next = newestOf(scans);
    for (; next && lines < limit && marks < limit && bytes < LOGS.maxPageBytes; next = newestOf(scans)) {
      const { name, scan } = next;
      const ofLog = found.get(next) ?? [];
      found.set(next, ofLog);
      const taken = scan.take();
      if (taken.length === 0) {
        // The next page repeats what is found and not taken here, so each log is searched once in any case.
        if (performance.now() > until && searched.has(next)) break;
        searched.add(next);
        scan.search(shareOf(limit - lines, scans.length));
        if (scans.length > MAX_OPEN_LOGS) scan.close();
      }
      for (const entry of taken) {
        const json = entryJson(name, entry, ansi);
        const row = { name, key: entry.key, time: entry.time, json, isLine: entry.line !== null };
        entries.push(row);
        ofLog.push({ row, entry });
        bytes += json.length;
        if (entry.line) lines += 1;
        else marks += 1;
      }
    }
    if (filter.context > 0) addContext(task, filter, found, LOGS.maxPageBytes - bytes);
    const bound = next?.scan.latest ?? null;
    return { entries, taken: scans.map(({ name, scan }) => ({ name, key: scan.taken })), bound };
  } finally {
    for (const { scan } of scans) scan.close();
  }
}
