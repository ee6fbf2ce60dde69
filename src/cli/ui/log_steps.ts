// Reading a log: what comes, moving in it, and searching.
import type { LogEntry } from '../../client/records.ts';
import { selectedMembers, selectedRow } from './list_steps.ts';
import { entryPieces, LOG_HEAD_ROWS, nameWidthOf, plainTextOf } from './log_lines.ts';
import { layoutOf, type Model, type OpenLog, type ShownLogs, type Step, viewOf } from './model.ts';
import { wrapPieces } from './styled_line.ts';

/** Entries that are kept; beyond, the oldest are dropped. */
export const MAX_LOG_ENTRIES = 5_000;

/** The lines of the screen that show entries. */
export const logRows = ({ size }: Pick<Model, 'size'>): number =>
  Math.max(0, layoutOf(size).bodyRows - LOG_HEAD_ROWS);

/** The log in sight; null: there is none. */
function shownLog(model: Model): OpenLog | null {
  const view = viewOf(model);
  return view.kind === 'log' ? view.log : null;
}

/** The model with another state of the log that is open, in sight or behind the help. */
export const withLog = (model: Model, change: (log: OpenLog) => OpenLog): Model => ({
  ...model,
  views: model.views.map((view) => (view.kind === 'log' ? { kind: 'log', log: change(view.log) } : view)),
});

/** The first entry in sight. */
export function firstShown(log: OpenLog, model: Model): number {
  const { entries, isFollowing, top, isWrapped } = log;
  if (!isFollowing) return top;
  let room = logRows(model);
  if (!isWrapped) return Math.max(0, entries.length - room);
  const names = nameWidthOf(log);
  let at = entries.length;
  while (at > 0 && room > 0) {
    const entry = entries[at - 1];
    room -= entry ? wrapPieces(entryPieces(entry, log, names), model.size.columns).length : 1;
    if (room < 0) break;
    at -= 1;
  }
  return Math.min(at, Math.max(0, entries.length - 1));
}

/** Opens a log. */
export function openLog(model: Model, selection: ShownLogs): Step {
  const log: OpenLog = {
    selection,
    entries: [],
    top: 0,
    isFollowing: true,
    left: 0,
    isWrapped: false,
    hasTimes: false,
    search: '',
    found: null,
    trouble: '',
  };
  const views = [...model.views.filter(({ kind }) => kind !== 'log'), { kind: 'log', log } as const];
  return [
    { ...model, views },
    { kind: 'openLog', selection },
  ];
}

/** Opens the log of what is selected: of a service, or of all services of a section. */
export function openSelectedLog(model: Model): Step {
  const view = viewOf(model);
  if (view.kind === 'details') return openLog(model, { title: view.name, names: [view.name] });
  const row = selectedRow(model);
  if (row?.kind === 'service') return openLog(model, { title: row.service.name, names: [row.service.name] });
  const members = selectedMembers(model);
  if (!members || members.names.length === 0)
    return [{ ...model, notice: { tone: 'bad', text: 'Only services and agents have logs here.' } }];
  const { title, names, stack } = members;
  const isStack = stack !== null && title === stack && model.filter === '';
  return openLog(model, isStack ? { title, stack } : { title, names });
}

/** Opens the log of all services. */
export const openWholeLog = (model: Model): Step => openLog(model, { title: 'all services' });

/** Adds entries. What is in sight stays there, unless the log is followed. */
export function withEntries(model: Model, fresh: readonly LogEntry[]): Model {
  return withLog(model, (log) => {
    const all = [...log.entries, ...fresh];
    const dropped = Math.max(0, all.length - MAX_LOG_ENTRIES);
    const found = log.found === null || log.found < dropped ? null : log.found - dropped;
    return {
      ...log,
      entries: all.slice(dropped),
      top: Math.max(0, log.top - dropped),
      found,
      trouble: '',
    };
  });
}

/** Moves `steps` entries down; at the end the log is followed again. */
export function scrollLog(model: Model, steps: number): Step {
  const log = shownLog(model);
  if (!log) return [model];
  const last = Math.max(0, log.entries.length - (log.isWrapped ? 1 : logRows(model)));
  const top = Math.max(0, Math.min(last, firstShown(log, model) + steps));
  const isFollowing = steps > 0 && top >= last;
  return [withLog(model, (open) => ({ ...open, top, isFollowing }))];
}

/** Stays where the log is, or follows it again. */
export function togglePause(model: Model): Step {
  const log = shownLog(model);
  if (!log) return [model];
  const top = firstShown(log, model);
  return [withLog(model, (open) => ({ ...open, top, isFollowing: !open.isFollowing }))];
}

/** Goes to the beginning or the end of what is kept here. */
export const goInLog = (model: Model, isEnd: boolean): Step => [
  withLog(model, (log) => ({ ...log, top: 0, isFollowing: isEnd })),
];

/** Changes how lines are shown. */
export const changeLog = (model: Model, change: (log: OpenLog) => Partial<OpenLog>): Step => [
  withLog(model, (log) => ({ ...log, ...change(log) })),
];

/** Goes to the next entry with the text that is searched; `direction` -1: to the one before. */
export function findInLog(model: Model, direction: 1 | -1): Step {
  const log = shownLog(model);
  if (!log || log.search === '') return [model];
  const { entries, search } = log;
  const wanted = search.toLowerCase();
  const from = log.found ?? (direction > 0 ? firstShown(log, model) - 1 : entries.length);
  for (let step = 1; step <= entries.length; step += 1) {
    const at = (from + direction * step + entries.length * 2) % entries.length;
    const entry = entries[at];
    if (!entry || !plainTextOf(entry).toLowerCase().includes(wanted)) continue;
    // A third of the screen before it is shown as well.
    const top = Math.max(0, Math.min(at - Math.floor(logRows(model) / 3), entries.length - 1));
    return [withLog({ ...model, notice: null }, (open) => ({ ...open, top, found: at, isFollowing: false }))];
  }
  return [{ ...model, notice: { tone: 'bad', text: `No line of these has ${search}` } }];
}
