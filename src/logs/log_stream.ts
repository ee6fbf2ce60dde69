// Reads the logs of many services forwards, merged by time, as frames of an event stream: pure functions of
// their files, for the job threads.
import { join } from 'node:path';
import type { LogPlace, LogReadAnswer, LogReadTask, LogStart, LogStartTask } from '../protocol/logs.ts';
import { KIB } from '../settings/limits.ts';
import { linesBefore } from './lines_around.ts';
import { LogFiles, marksAtEnd, offsetAfterTime } from './log_blocks.ts';
import { entryJson } from './log_entry_json.ts';
import { compileFilter, type LogFilter } from './log_filter.ts';
import { placesCursor } from './log_places.ts';
import { LogReading, type LogReadingOptions, openLineAt } from './log_reading.ts';
import { findRun, marksBeforeRun, startOfRun } from './log_runs.ts';
import { LogScan } from './log_scan.ts';

/** The block size for searching backwards for the last lines of a log. */
const BLOCK_BYTES = { plain: 32 * KIB, hinted: 256 * KIB };
/** After this time, in milliseconds, the lines found so far are taken as the last ones. */
const START_BUDGET_MS = 2_000;
const NEWLINE = 0x0a;

const placeAt = (offset: number, { context }: Pick<LogFilter, 'context'>): LogPlace => ({
  offset,
  marks: 0,
  open: [null, null],
  // All lines before it count as not shown.
  around: context > 0 ? context + 1 : 0,
});

/** The end of a log. */
function endPlace(files: LogFiles, filter: LogFilter): LogPlace {
  const pair = files.pairBefore(files.end + 1);
  return { ...placeAt(files.end, filter), marks: pair ? marksAtEnd(pair).length : 0 };
}

/**
 * The beginning of the earliest line that is unfinished at the logical offset `offset`, because output of the
 * other stream interrupts it; null: none is.
 */
function interruptedAt(log: { folder: string; filter: LogFilter; run: string | null }, offset: number) {
  // The last lines of one stream are whole. Lines around others are found without this.
  if (log.filter.stream !== null || log.filter.context > 0) return null;
  const files = new LogFiles(log.folder);
  const starts = ([1, 2] as const).flatMap((stream) => {
    const [last] = linesBefore({ ...log, filter: { ...log.filter, stream } }, offset, 1);
    const start = last?.line?.offset ?? null;
    const line = openLineAt(files, start, offset, stream);
    return line === null || line.bytes.includes(NEWLINE) ? [] : [line.start];
  });
  files.close();
  return starts.length === 0 ? null : Math.min(...starts);
}

/** The position before the last `lines` of a reading; null: reading them takes too long. */
function placeBeforeLast(options: LogReadingOptions, lines: number): LogPlace | null {
  const until = performance.now() + START_BUDGET_MS;
  const reading = new LogReading(options);
  const places: LogPlace[] = [options.place];
  while (reading.earliest !== Number.POSITIVE_INFINITY && performance.now() < until) {
    const read = reading.next();
    if (read?.entry.line) places.push(read.place);
  }
  const isWhole = reading.earliest === Number.POSITIVE_INFINITY;
  reading.close();
  return isWhole ? (places.at(-1 - lines) ?? options.place) : null;
}

/** The position where the last `lines` of a log that pass `filter` begin. */
function placeOfLast(folder: string, filter: LogFilter, run: string | null, lines: number): LogPlace {
  const files = new LogFiles(folder);
  const end = endPlace(files, filter);
  files.close();
  const scan = new LogScan({ folder, filter, run, before: null, blockBytes: BLOCK_BYTES });
  const until = performance.now() + START_BUDGET_MS;
  let first: number | null = null;
  try {
    for (let left = lines; left > 0 && !scan.isDone; ) {
      if (scan.hasFound) {
        for (const { line, mark } of scan.take()) {
          first = line?.offset ?? mark?.offset ?? first;
          if (line) left -= 1;
        }
      } else if (performance.now() < until) scan.search(left);
      else break;
    }
  } finally {
    scan.close();
  }
  if (first === null) return end;
  const interrupted = interruptedAt({ folder, filter, run }, first);
  const from = (offset: number): LogPlace => placeOfRun(folder, filter, run, offset);
  if (interrupted === null) return from(first);
  const options = { folder, place: from(interrupted), filter, run, isRunning: true };
  return placeBeforeLast(options, lines) ?? from(first);
}

/** The position at `offset`; of a run, after the marks of others that come before it there. */
function placeOfRun(folder: string, filter: LogFilter, run: string | null, offset: number): LogPlace {
  if (run === null) return placeAt(offset, filter);
  const files = new LogFiles(folder);
  try {
    return { ...placeAt(offset, filter), marks: marksBeforeRun(files, offset, run) };
  } finally {
    files.close();
  }
}

/** The positions from which logs are read on. Rejects with invalid_spec when the regex is invalid. */
export async function startMergedLogs({
  folder,
  names,
  filter: spec,
  run,
  lines,
}: LogStartTask): Promise<LogStart[]> {
  const filter = await compileFilter(spec);
  return names.map((name) => {
    const path = join(folder, name);
    const id = run === null ? null : findRun(path, run);
    // A log without that run will never have lines of it.
    const only = run === null || run === 'last' ? null : (id ?? run);
    if (lines !== null) return { name, run: only, place: placeOfLast(path, filter, id, lines) };
    const files = new LogFiles(path);
    try {
      const since = spec.since === null ? files.start : offsetAfterTime(files, files.end, spec.since - 1);
      const begin = id === null ? 0 : startOfRun(files, id);
      return { name, run: only, place: placeOfRun(path, filter, id, Math.max(since, begin)) };
    } finally {
      files.close();
    }
  });
}

/** The log whose next entry is the earliest; null: none has one. */
function earliestOf(readings: readonly (readonly [string, LogReading])[]) {
  let earliest: readonly [string, LogReading] | null = null;
  for (const one of readings)
    if (one[1].earliest < (earliest?.[1].earliest ?? Number.POSITIVE_INFINITY)) earliest = one;
  return earliest;
}

/** Reads on in the logs that have grown. Rejects with invalid_spec when the regex is invalid. */
export async function readMergedLogs(task: LogReadTask): Promise<LogReadAnswer> {
  const { folder, logs, filter: spec, ansi, grown, maxBytes, budgetMs } = task;
  const filter = await compileFilter(spec);
  let until = performance.now() + budgetMs;
  const places = new Map(logs.map(({ name, place, run }) => [name, { place, run }]));
  const wanted = new Set(grown);
  const readings = logs
    .filter(({ name }) => wanted.has(name))
    .map(
      ({ name, ...log }) => [name, new LogReading({ ...log, folder: join(folder, name), filter })] as const,
    );
  let lost = '';
  for (const [name, { lostBytes, place }] of readings) {
    if (lostBytes === 0) continue;
    places.set(name, { place, run: places.get(name)?.run ?? null });
    const data = JSON.stringify({ name, bytes: lostBytes });
    lost += `id: ${placesCursor(places)}\nevent: lost\ndata: ${data}\n\n`;
  }
  let frames = '';
  try {
    for (let next = earliestOf(readings); next; next = earliestOf(readings)) {
      const [name, reading] = next;
      const now = performance.now();
      const { hasReadBlock, hasEntry } = reading;
      // At least one entry must be taken: the next call repeats what was read and not taken here.
      if (frames.length > maxBytes || (now > until && (frames !== '' || (hasReadBlock && !hasEntry)))) break;
      const read = reading.next();
      // Every call reads the first blocks, which may take more than its time if there are many.
      if (!hasReadBlock) until += performance.now() - now;
      if (!read) continue;
      places.set(name, { place: read.place, run: places.get(name)?.run ?? null });
      const event = read.entry.line ? 'line' : 'run';
      frames += `id: ${placesCursor(places)}\nevent: ${event}\ndata: ${entryJson(name, read.entry, ansi)}\n\n`;
    }
    return {
      frames: Buffer.from(lost + frames),
      moved: readings.map(([name, { place }]) => ({ name, place })),
      unfinished: readings
        .filter(([, { earliest }]) => earliest !== Number.POSITIVE_INFINITY)
        .map(([name]) => name),
    };
  } finally {
    for (const [, reading] of readings) reading.close();
  }
}
