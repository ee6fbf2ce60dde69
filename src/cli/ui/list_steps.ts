// Moving in the list, and how it stays in place while what it shows changes.
import type { Workload } from '../../client/records.ts';
import { listRowsOf, needsAttention } from './list_rows.ts';
import { type HeadMembers, layoutOf, type Model, ORDERS, type Step, type UiRow, viewOf } from './model.ts';

const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(most, value));

/** The place of the selected row; -1: nothing is selected. */
const selectedIndex = ({ rows, selected }: Model): number => rows.findIndex(({ key }) => key === selected);

/** The selected row. */
export const selectedRow = ({ rows, selected }: Model): UiRow | undefined =>
  rows.find(({ key }) => key === selected);

/** The marked rows that the list shows. */
export const markedRows = ({ rows, marked }: Model): readonly UiRow[] =>
  marked.size === 0 ? [] : rows.filter(({ key }) => marked.has(key));

/** The workload whose details are in sight; undefined: none are. */
export function shownWorkload(model: Model): Workload | undefined {
  const view = viewOf(model);
  return view.kind === 'workload' ? model.workloads.find(({ id }) => id === view.id) : undefined;
}

/** The model with the selected row in sight, and no empty lines below the last row. */
export function inSight(model: Model): Model {
  const { bodyRows } = layoutOf(model.size);
  const at = Math.max(0, selectedIndex(model));
  const last = Math.max(0, model.rows.length - bodyRows);
  // The head of its section is shown with the first row.
  const least = at === 1 ? 0 : at;
  const top = clamp(model.top, at - bodyRows + 1, bodyRows > 1 ? least : at);
  return { ...model, top: clamp(top, 0, last) };
}

/** The place of a row near `at` that is no head: what is done to a head is done to all of its section. */
function nearMember(rows: readonly UiRow[], at: number): number {
  const isMember = (place: number): boolean => rows[place] !== undefined && rows[place].kind !== 'head';
  const near = [at, at - 1, at + 1].find(isMember);
  return near ?? Math.max(0, at);
}

/** The model with its rows as they are now. The selected one stays on its line of the screen. */
export function withRows(model: Model): Model {
  const rows = listRowsOf(model);
  const before = selectedIndex(model);
  const found = rows.findIndex(({ key }) => key === model.selected);
  if (found >= 0) return inSight({ ...model, rows, top: model.top + found - Math.max(0, before) });
  // What was selected is gone: the row in its place is selected, at first the first service.
  const at = nearMember(rows, before < 0 ? 0 : clamp(before, 0, rows.length - 1));
  return inSight({ ...model, rows, selected: rows[at]?.key ?? '' });
}

/** Selects the row `steps` below. */
export function moveBy(model: Model, steps: number): Step {
  const at = clamp(Math.max(0, selectedIndex(model)) + steps, 0, Math.max(0, model.rows.length - 1));
  return [inSight({ ...model, selected: model.rows[at]?.key ?? '' })];
}

/** Selects the next row that needs a person, from the top again after the last one. */
export function moveToAttention(model: Model): Step {
  const at = selectedIndex(model);
  const ahead = [...model.rows.slice(at + 1), ...model.rows.slice(0, at + 1)];
  const next = ahead.find(needsAttention);
  if (next) return [inSight({ ...model, selected: next.key })];
  return [{ ...model, notice: { tone: 'good', text: 'Nothing has crashed, and no agent is blocked.' } }];
}

/** Marks the selected row for the next action, or unmarks it, and goes on to the next; folds a section. */
export function toggleMark(model: Model): Step {
  const row = selectedRow(model);
  if (!row || row.kind === 'head') return toggleFold(model);
  const marked = new Set(model.marked);
  if (!marked.delete(row.key)) marked.add(row.key);
  return moveBy({ ...model, marked }, 1);
}

/** Ends what narrows the list: the marks, then the filter. */
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
 * Shows only what has every word of `filter`. Unless a service that it finds is selected, the first one is:
 * who has typed a name means that, and not its section.
 */
export function withFilter(model: Model, filter: string): Model {
  const shown = withRows({ ...model, filter });
  if (filter === '' || filter === model.filter) return shown;
  const isKept = selectedRow(shown)?.kind !== 'head' && shown.selected === model.selected;
  const first = isKept ? undefined : shown.rows.find(({ kind }) => kind !== 'head');
  return first ? inSight({ ...shown, selected: first.key }) : shown;
}

/** Orders the members of each section by the next of the orders, and says by which. */
export function nextOrder(model: Model): Step {
  const order = ORDERS[(ORDERS.indexOf(model.order) + 1) % ORDERS.length] ?? 'name';
  return [{ ...withRows({ ...model, order }), notice: { tone: 'good', text: `ordered by ${order}` } }];
}

/** Opens what is selected: the details of a service or a workload, or the members of a section. */
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

/** The members of the section that the selected row heads; null: it heads none. */
export function selectedMembers(model: Model): (HeadMembers & { title: string }) | null {
  const row = selectedRow(model);
  return row?.kind === 'head' ? { ...row.members, title: row.title } : null;
}
