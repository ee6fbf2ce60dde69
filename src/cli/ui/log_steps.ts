// Opens a log, moves in it, and changes which lines it shows.
import { selectedMembers, selectedRow } from './list_steps.ts';
import { entryPieces, LOG_HEAD_ROWS, nameWidthOf } from './log_lines.ts';
import { readNewer, readOlder, withLog } from './log_pages.ts';
import { layoutOf, type Model, type OpenLog, type ShownLogs, type Step, viewOf } from './model.ts';
import { wrapPieces } from './styled_line.ts';

/** The number of screen lines that show entries. */
export const logRows = ({ size }: Pick<Model, 'size'>): number =>
  Math.max(0, layoutOf(size).bodyRows - LOG_HEAD_ROWS);

/** The shown log; null: none. */
export function shownLog(model: Model): OpenLog | null {
  const view = viewOf(model);
  return view.kind === 'log' ? view.log : null;
}

/** The index of the first visible entry. */
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

/** Opens a log, or opens it again with other lines and at its end. */
export function openLog(model: Model, selection: ShownLogs): Step {
  const before = shownLog(model);
  const log: OpenLog = {
    isWrapped: before?.isWrapped ?? false,
    hasTimes: before?.hasTimes ?? false,
    search: before?.search ?? '',
    ...{ selection, entries: [], top: 0, left: 0, isFollowing: true, found: null, trouble: '' },
    ...{ isLive: true, isOldest: false, cursor: null, reading: null },
  };
  const views = [...model.views.filter(({ kind }) => kind !== 'log'), { kind: 'log', log } as const];
  return [
    { ...model, views },
    { kind: 'openLog', selection },
  ];
}

/** Opens the shown log again with a changed selection of lines. */
export function reopenLog(model: Model, change: (selection: ShownLogs) => Partial<ShownLogs>): Step {
  const log = shownLog(model);
  return log ? openLog(model, { ...log.selection, ...change(log.selection) }) : [model];
}

/** The next level after each: all lines, then warnings and worse, then errors. */
const LEVELS = { all: 'warn', warn: 'error', error: undefined } as const;

/** Shows only the lines of the next level, or all lines again. */
export const nextLevel = (model: Model): Step =>
  reopenLog(model, ({ level }) => ({ level: LEVELS[level === 'warn' || level === 'error' ? level : 'all'] }));

/** Opens the log of the selected row: of a service, or of all services of a section. */
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

/** Scrolls down by `steps` entries; at the end, follows the log again. Near an end, requests more lines. */
export function scrollLog(model: Model, steps: number): Step {
  const log = shownLog(model);
  if (!log) return [model];
  const rows = logRows(model);
  const last = Math.max(0, log.entries.length - (log.isWrapped ? 1 : rows));
  const top = Math.max(0, Math.min(last, firstShown(log, model) + steps));
  const isFollowing = log.isLive && steps > 0 && top >= last;
  const moved = withLog(model, (open) => ({ ...open, top, isFollowing }));
  if (steps < 0 && top < rows) return readOlder(moved);
  return steps > 0 && top > last - rows ? readNewer(moved) : [moved];
}

/** Pauses the log, or follows it again. */
export function togglePause(model: Model): Step {
  const log = shownLog(model);
  if (!log) return [model];
  if (!log.isFollowing) return goToEnd(model);
  const top = firstShown(log, model);
  return [withLog(model, (open) => ({ ...open, top, isFollowing: false }))];
}

/** Goes to the first loaded line, and requests older ones. */
export const goToBeginning = (model: Model): Step =>
  readOlder(withLog(model, (log) => ({ ...log, top: 0, isFollowing: false })));

/** Goes to the newest line, and follows. */
export function goToEnd(model: Model): Step {
  const log = shownLog(model);
  if (log && !log.isLive) return reopenLog(model, () => ({}));
  return [withLog(model, (open) => ({ ...open, isFollowing: true }))];
}

/** Changes how lines are shown. */
export const changeLog = (model: Model, change: (log: OpenLog) => Partial<OpenLog>): Step => [
  withLog(model, (log) => ({ ...log, ...change(log) })),
];
