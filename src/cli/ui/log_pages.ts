// Manages the loaded lines of a log: adds new lines as they arrive, and reads older or newer ones on
// demand.
import type { LogEntry } from '../../client/records.ts';
import { entryKey } from '../../presentation/log_entry.ts';
import type { LineReading, LogPageRead, Message, Model, OpenLog, Step } from './model.ts';

/** The most entries in memory. Beyond, those farthest from the visible ones are dropped. */
export const MAX_LOG_ENTRIES = 5_000;

/** Changes the open log of the model, which is shown or behind the help. */
export const withLog = (model: Model, change: (log: OpenLog) => OpenLog): Model => ({
  ...model,
  views: model.views.map((view) => (view.kind === 'log' ? { kind: 'log', log: change(view.log) } : view)),
});

const openLogOf = ({ views }: Model): OpenLog | null => {
  const view = views.find(({ kind }) => kind === 'log');
  return view?.kind === 'log' ? view.log : null;
};

/**
 * Whether `entry` comes before `other`. Within one millisecond, the offsets in the service's log decide. For
 * marks, and for two services in the same millisecond, the order is unknown: null.
 */
export function standsBefore(entry: LogEntry, other: LogEntry): boolean | null {
  const [at, from] = [Date.parse(entry.at), Date.parse(other.at)];
  if (at !== from) return at < from;
  const isComparable = 'text' in entry && 'text' in other && entry.name === other.name;
  return isComparable && entry.offset !== other.offset ? entry.offset < other.offset : null;
}

/** The entries of `from` that are not in `known`: a page repeats the lines of the same millisecond. */
function freshOf(from: readonly LogEntry[], known: readonly LogEntry[]): LogEntry[] {
  const keys = new Set(known.map(entryKey));
  return from.filter((entry) => !keys.has(entryKey(entry)));
}

/** Requests a read, unless one is in progress. A search does not wait for a page. */
export function readLines(model: Model, reading: LineReading): Step {
  const log = openLogOf(model);
  if (!log || log.reading === 'find' || (log.reading !== null && reading.kind !== 'find')) return [model];
  return [
    withLog(model, (open) => ({ ...open, reading: reading.kind })),
    { kind: 'readLog', selection: log.selection, reading },
  ];
}

/** Requests the lines before the first one, if there may be any. */
export function readOlder(model: Model): Step {
  const log = openLogOf(model);
  const first = log?.entries[0];
  if (!log || !first || log.isOldest) return [model];
  return readLines(model, { kind: 'older', first, cursor: log.cursor });
}

/** Requests the lines after the last one, unless the log streams them. */
export function readNewer(model: Model): Step {
  const log = openLogOf(model);
  const last = log?.entries.at(-1);
  return log && last && !log.isLive ? readLines(model, { kind: 'newer', last }) : [model];
}

/** `log` without `count` of its first entries. */
function withoutFirst(log: OpenLog, count: number): OpenLog {
  if (count <= 0) return log;
  return {
    ...log,
    entries: log.entries.slice(count),
    top: Math.max(0, log.top - count),
    found: log.found === null || log.found < count ? null : log.found - count,
    isOldest: false,
    cursor: null,
  };
}

/** `log` without the last entries beyond MAX_LOG_ENTRIES; new entries then no longer continue it. */
function withoutLast(log: OpenLog): OpenLog {
  if (log.entries.length <= MAX_LOG_ENTRIES) return log;
  const found = log.found !== null && log.found < MAX_LOG_ENTRIES ? log.found : null;
  return { ...log, entries: log.entries.slice(0, MAX_LOG_ENTRIES), found, isLive: false };
}

/** The step to `log`; ends the stream if the log no longer takes new entries. */
function stepTo(model: Model, log: OpenLog): Step {
  const changed = withLog(model, () => log);
  return openLogOf(model)?.isLive && !log.isLive ? [changed, { kind: 'detachLog' }] : [changed];
}

/** Adds new entries. The visible entries stay in place, unless the log is followed. */
export function takeLogged(model: Model, fresh: readonly LogEntry[]): Step {
  const log = openLogOf(model);
  if (!log?.isLive) return [model];
  const grown = { ...log, entries: [...log.entries, ...fresh], trouble: '' };
  const excess = grown.entries.length - MAX_LOG_ENTRIES;
  // While the log is paused, visible entries must not be dropped for entries that are not visible.
  return stepTo(
    model,
    log.isFollowing || excess <= log.top ? withoutFirst(grown, excess) : withoutLast(grown),
  );
}

type Taken<K extends LogPageRead['kind']> = Extract<LogPageRead, { kind: K }>;

function takeOlder(model: Model, log: OpenLog, { entries, cursor }: Taken<'older'>): Step {
  const fresh = freshOf(entries, log.entries);
  const grown: OpenLog = {
    ...log,
    entries: [...fresh, ...log.entries],
    top: log.top + fresh.length,
    found: log.found === null ? null : log.found + fresh.length,
    cursor,
    isOldest: cursor === null,
  };
  const [taken, ...effects] = stepTo(model, withoutLast(grown));
  // A page may contain nothing new if many lines were written in one millisecond.
  const [next, ...more] = fresh.length === 0 ? readOlder(taken) : [taken];
  return [next, ...effects, ...more];
}

function takeNewer(model: Model, log: OpenLog, { entries, lastId }: Taken<'newer'>): Step {
  const fresh = freshOf(entries, log.entries);
  const grown = { ...log, entries: [...log.entries, ...fresh], isLive: lastId !== null };
  const taken = withLog(model, () => withoutFirst(grown, grown.entries.length - MAX_LOG_ENTRIES));
  return lastId === null ? [taken] : [taken, { kind: 'openLog', selection: log.selection, after: lastId }];
}

/** Goes to a line that was found beyond the loaded ones, and loads the lines around it. */
function takeFound(model: Model, log: OpenLog, { entries, cursor, found }: Taken<'found'>): Step {
  const at = entries.findIndex((entry) => entryKey(entry) === found);
  return stepTo(model, {
    ...log,
    ...{ entries, cursor, isOldest: cursor === null, isLive: false, isFollowing: false },
    ...{ found: at < 0 ? null : at, top: Math.max(0, at - LINES_BEFORE_FOUND) },
  });
}

/** The number of lines shown before a found line. */
export const LINES_BEFORE_FOUND = 5;

/** Stores the lines that were read for the open log. Drops answers that are no longer wanted. */
export function takeLogRead(
  model: Model,
  { selection, reading, page }: Extract<Message, { kind: 'logRead' }>,
): Step {
  const open = openLogOf(model);
  if (open?.selection !== selection || open.reading !== reading) return [model];
  const log = { ...open, reading: null };
  const ready = withLog(model, () => log);
  if (page.kind === 'older') return takeOlder(ready, log, page);
  if (page.kind === 'newer') return takeNewer(ready, log, page);
  if (page.kind === 'found') return takeFound({ ...ready, notice: null }, log, page);
  return [{ ...ready, notice: { tone: 'bad', text: page.reason } }];
}
