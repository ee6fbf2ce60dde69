// The lines of a log that are here: what comes is added, and older or newer ones are read when they are
// wanted.
import type { LogEntry } from '../../client/records.ts';
import { entryKey } from '../../presentation/log_entry.ts';
import type { LineReading, LogPageRead, Message, Model, OpenLog, Step } from './model.ts';

/** Entries that are kept. Beyond, those are dropped that are farthest from what is in sight. */
export const MAX_LOG_ENTRIES = 5_000;

/** The model with another state of the log that is open, in sight or behind the help. */
export const withLog = (model: Model, change: (log: OpenLog) => OpenLog): Model => ({
  ...model,
  views: model.views.map((view) => (view.kind === 'log' ? { kind: 'log', log: change(view.log) } : view)),
});

const openLogOf = ({ views }: Model): OpenLog | null => {
  const view = views.find(({ kind }) => kind === 'log');
  return view?.kind === 'log' ? view.log : null;
};

/**
 * Whether `entry` stands before `other`. A burst is written in one millisecond: there the places in the log
 * of the service tell. Of two services in one millisecond, and of marks, nothing is told: null.
 */
export function standsBefore(entry: LogEntry, other: LogEntry): boolean | null {
  const [at, from] = [Date.parse(entry.at), Date.parse(other.at)];
  if (at !== from) return at < from;
  const isComparable = 'text' in entry && 'text' in other && entry.name === other.name;
  return isComparable && entry.offset !== other.offset ? entry.offset < other.offset : null;
}

/** The entries of `from` that are not in `known`: lines of the same millisecond are read again. */
function freshOf(from: readonly LogEntry[], known: readonly LogEntry[]): LogEntry[] {
  const keys = new Set(known.map(entryKey));
  return from.filter((entry) => !keys.has(entryKey(entry)));
}

/** Has something read, unless something is. A search does not wait for a page. */
export function readLines(model: Model, reading: LineReading): Step {
  const log = openLogOf(model);
  if (!log || log.reading === 'find' || (log.reading !== null && reading.kind !== 'find')) return [model];
  return [
    withLog(model, (open) => ({ ...open, reading: reading.kind })),
    { kind: 'readLog', selection: log.selection, reading },
  ];
}

/** Has lines read that are older than the first one, if there are any. */
export function readOlder(model: Model): Step {
  const log = openLogOf(model);
  const first = log?.entries[0];
  if (!log || !first || log.isOldest) return [model];
  return readLines(model, { kind: 'older', first, cursor: log.cursor });
}

/** Has lines read that are newer than the last one, unless they come by themselves. */
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

/** `log` without the last entries beyond what is kept: then what comes does not follow any more. */
function withoutLast(log: OpenLog): OpenLog {
  if (log.entries.length <= MAX_LOG_ENTRIES) return log;
  const found = log.found !== null && log.found < MAX_LOG_ENTRIES ? log.found : null;
  return { ...log, entries: log.entries.slice(0, MAX_LOG_ENTRIES), found, isLive: false };
}

/** The step to `log`, which is told if it does not want what comes any more. */
function stepTo(model: Model, log: OpenLog): Step {
  const changed = withLog(model, () => log);
  return openLogOf(model)?.isLive && !log.isLive ? [changed, { kind: 'detachLog' }] : [changed];
}

/** Adds what has come. What is in sight stays there, unless the log is followed. */
export function takeLogged(model: Model, fresh: readonly LogEntry[]): Step {
  const log = openLogOf(model);
  if (!log?.isLive) return [model];
  const grown = { ...log, entries: [...log.entries, ...fresh], trouble: '' };
  const excess = grown.entries.length - MAX_LOG_ENTRIES;
  // While it is paused, nothing in sight is dropped for what is not.
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
  // A page may have nothing new where many lines were written in one millisecond.
  const [next, ...more] = fresh.length === 0 ? readOlder(taken) : [taken];
  return [next, ...effects, ...more];
}

function takeNewer(model: Model, log: OpenLog, { entries, lastId }: Taken<'newer'>): Step {
  const fresh = freshOf(entries, log.entries);
  const grown = { ...log, entries: [...log.entries, ...fresh], isLive: lastId !== null };
  const taken = withLog(model, () => withoutFirst(grown, grown.entries.length - MAX_LOG_ENTRIES));
  return lastId === null ? [taken] : [taken, { kind: 'openLog', selection: log.selection, after: lastId }];
}

/** Goes to a line that was found elsewhere, with what is around it. */
function takeFound(model: Model, log: OpenLog, { entries, cursor, found }: Taken<'found'>): Step {
  const at = entries.findIndex((entry) => entryKey(entry) === found);
  return stepTo(model, {
    ...log,
    ...{ entries, cursor, isOldest: cursor === null, isLive: false, isFollowing: false },
    ...{ found: at < 0 ? null : at, top: Math.max(0, at - LINES_BEFORE_FOUND) },
  });
}

/** Lines that are shown before one that was found. */
export const LINES_BEFORE_FOUND = 5;

/** Takes what was read of the log in sight. What is not waited for any more is dropped. */
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
