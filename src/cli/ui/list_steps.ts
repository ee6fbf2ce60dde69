// Moves in the list, and keeps its position while its content changes.
import type { Workload } from '../../client/records.ts';
import { listRowsOf, needsAttention } from './list_rows.ts';
import { type HeadMembers, layoutOf, type Model, ORDERS, type Step, type UiRow, viewOf } from './model.ts';

const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value));

/** The index of the selected row; -1: none. */
const selectedIndex = ({ rows, selected }: Model): number => rows.findIndex(({ key }) => key === selected);

/** The selected row. */
export const selectedRow = ({ rows, selected }: Model): UiRow | undefined =>
  rows.find(({ key }) => key === selected);

/** The marked rows that the list shows. */
export const markedRows = ({ rows, marked }: Model): readonly UiRow[] =>
  marked.size === 0 ? [] : rows.filter(({ key }) => marked.has(key));

/** The workload whose details are shown; undefined: none. */
export function shownWorkload(model: Model): Workload | undefined {
  const view = viewOf(model);
  return view.kind === 'workload' ? model.workloads.find(({ id }) => id === view.id) : undefined;
}

/** Scrolls the list so that the selected row is visible and no empty lines follow the last row. */
export function inSight(model: Model): Model {
  const { bodyRows } = layoutOf(model.size);
  const at = Math.max(0, selectedIndex(model));
  const last = Math.max(0, model.rows.length - bodyRows);
  // If the second row is selected, the section's head above it stays visible.
  const least = at === 1 ? 0 : at;
  const top = clamp(model.top, at - bodyRows + 1, bodyRows > 1 ? least : at);
  return { ...model, top: clamp(top, 0, last) };
}

/** The index of a row near `at` that is not a head: actions on a head affect its whole section. */
function nearMember(rows: readonly UiRow[], at: number): number {
  const isMember = (place: number): boolean => rows[place] !== undefined && rows[place].kind !== 'head';
  const near = [at, at - 1, at + 1].find(isMember);
  return near ?? Math.max(0, at);
}

/** Updates the rows of the model. The selected row stays on its line of the screen. */
export function withRows(model: Model): Model {
  const rows = listRowsOf(model);
  const before = selectedIndex(model);
  const found = rows.findIndex(({ key }) => key === model.selected);
  if (found >= 0) return inSight({ ...model, rows, top: model.top + found - Math.max(0, before) });
  // The selected row is gone: selects the row that took its place, or at the start the first service.
  const at = nearMember(rows, before < 0 ? 0 : clamp(before, 0, rows.length - 1));
  return inSight({ ...model, rows, selected: rows[at]?.key ?? '' });
}

/** Moves the selection down by `steps` rows. */
export function moveBy(model: Model, steps: number): Step {
  const at = clamp(Math.max(0, selectedIndex(model)) + steps, 0, Math.max(0, model.rows.length - 1));
  return [inSight({ ...model, selected: model.rows[at]?.key ?? '' })];
}

/** Selects the next row that needs the user's attention; continues at the top after the last one. */
export function moveToAttention(model: Model): Step {
  const at = selectedIndex(model);
  const ahead = [...model.rows.slice(at + 1), ...model.rows.slice(0, at + 1)];
  const next = ahead.find(needsAttention);
  if (next) return [inSight({ ...model, selected: next.key })];
  return [{ ...model, notice: { tone: 'good', text: 'Nothing has crashed, and no agent is blocked.' } }];
}

/** Marks or unmarks the selected row for the next action, and selects the next row; on a head, folds. */
export function toggleMark(model: Model): Step {
  const row = selectedRow(model);
  if (!row || row.kind === 'head') return toggleFold(model);
  const marked = new Set(model.marked);
  if (!marked.delete(row.key)) marked.add(row.key);
  return moveBy({ ...model, marked }, 1);
}

/** Removes the marks or, if there are none, the filter. */
export const endSelection = (model: Model): Step =>
  model.marked.size > 0 ? [{ ...model, marked: new Set() }] : [withFilter(model, '')];

/** Hides the members of the selected section, or shows them again. */
function toggleFold(model: Model): Step {
  const row = selectedRow(model);
  if (row?.kind !== 'head') return [model];
  if (model.filter !== '')
    return [{ ...model, notice: { tone: 'bad', text: 'A filter shows all that it finds; Esc ends it.' } }];
  const folded = new Set(model.folded);
  if (!folded.delete(row.key)) folded.add(row.key);
  return [withRows({ ...model, folded })];
}

/**
 * Shows only what matches every word of `filter`. Selects the first match that is not a head, unless the
 * selected row is one: a user who types a name wants that service, not its section.
 */
export function withFilter(model: Model, filter: string): Model {
  const shown = withRows({ ...model, filter });
  if (filter === '' || filter === model.filter) return shown;
  const isKept = selectedRow(shown)?.kind !== 'head' && shown.selected === model.selected;
  const first = isKept ? undefined : shown.rows.find(({ kind }) => kind !== 'head');
  return first ? inSight({ ...shown, selected: first.key }) : shown;
}

/** Changes to the next order of the members of each section, and shows its name. */
export function nextOrder(model: Model): Step {
  const order = ORDERS[(ORDERS.indexOf(model.order) + 1) % ORDERS.length] ?? 'name';
  return [{ ...withRows({ ...model, order }), notice: { tone: 'good', text: `ordered by ${order}` } }];
}

/** Opens the selected row: the details of a service or a workload, or the members of a section. */
export function openSelected(model: Model): Step {
  const row = selectedRow(model);
  if (row?.kind === 'head') return toggleFold(model);
  if (row?.kind === 'workload')
    return [{ ...model, views: [...model.views, { kind: 'workload', id: row.workload.id, top: 0 }] }];
  if (row?.kind !== 'service') return [model];
  const { name } = row.service;
  const views = [...model.views, { kind: 'details', name, details: null, trouble: '', top: 0 } as const];
  return [
    { ...model, views },
    { kind: 'readDetails', name },
  ];
}

/** The members of the section whose head is selected; null if the selected row is not a head. */
export function selectedMembers(model: Model): (HeadMembers & { title: string }) | null {
  const row = selectedRow(model);
  return row?.kind === 'head' ? { ...row.members, title: row.title } : null;
}
