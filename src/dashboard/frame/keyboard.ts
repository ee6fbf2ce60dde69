// The keyboard shortcuts of the page. They are off in text fields and in terminals.
import { toneOf } from '../../presentation/state_tone.ts';
import { toggleWorst } from '../logs/log_view.tsx';
import { copyAddress, openAddress } from '../state/addresses.ts';
import { type WorkloadAction, workloadPages } from '../state/cloud_data.ts';
import { serviceByName, shownState } from '../state/daemon.ts';
import { endMarking, mark, markedServices, switchMark } from '../state/marks.ts';
import { go, openPane, shownPlace, VIEWS } from '../state/place.ts';
import { isAgent, type ListRow, listRows } from '../state/sections.ts';
import { loginReason } from '../state/session.ts';
import { selectedRowKey, selectedWorkloadId } from '../state/workload_tree.ts';
import { requestAction, requestWorkloadAction } from './action_question.tsx';
import { askToAct, type BulkAction } from './bulk_actions.tsx';
import { helpIsOpen, paletteIsOpen } from './dialogs.ts';
import { showLog } from './dock.tsx';
import { SEARCH_ID } from './resource_list.tsx';

/** The keys and what they do, for the help. */
export const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ['Ctrl K', 'go to anything, do anything'],
  ['Ctrl Shift K', 'the same from within a terminal'],
  ['/', 'search'],
  ['j  k', 'next, previous'],
  ['Enter', 'open'],
  ['Space', 'mark a service, to act on several'],
  ['Shift ↓  Shift ↑', 'mark the next, the previous'],
  ['s', 'start, or wake a workload'],
  ['r', 'restart'],
  ['x', 'stop, or put a workload to sleep'],
  ['l', 'log below'],
  ['e', 'only warnings and errors of a log, or all lines'],
  ['t', 'terminal of an agent below'],
  ['u', 'open the address'],
  ['y', 'copy the address'],
  ['n', 'next that has crashed or is blocked'],
  ['1 … 5', 'services, agents, logs, events, cloud'],
  ['Esc', 'close, leave a field, or unmark all'],
  ['?', 'this list'],
];

/** Selects the service, agent or workload of a row of the list. */
function selectRow(row: ListRow): void {
  if (row.kind === 'workload') go({ view: 'cloud', name: row.workload.id });
  else go({ view: isAgent(row.key) ? 'agents' : 'services', name: row.key });
}

/** The next (1) or previous (-1) row, from the selected one. */
function rowBeside(step: number): ListRow | undefined {
  const rows = listRows.peek().filter(({ kind }) => kind === 'service' || kind === 'workload');
  const at = rows.findIndex(({ key }) => key === selectedRowKey.peek());
  if (at < 0) return rows.at(step > 0 ? 0 : -1);
  return rows[Math.min(rows.length - 1, Math.max(0, at + step))];
}

function select(step: number): void {
  const next = rowBeside(step);
  if (next) selectRow(next);
}

/** Marks the selected service and the one beside it, which it selects. */
function extend(step: number): void {
  const { name } = shownPlace.peek();
  const next = rowBeside(step);
  if (next?.kind !== 'service') return;
  mark(name === null ? [next.key] : [name, next.key]);
  selectRow(next);
}

/** Marks or unmarks the selected service. The row that Tab has reached is selected first. */
function markSelected(): void {
  const focused = document.activeElement?.closest('.list-row:not(.workload-item)')?.getAttribute('data-name');
  const row = listRows.peek().find(({ kind, key }) => kind === 'service' && key === focused);
  if (row && row.key !== selectedRowKey.peek()) selectRow(row);
  withSelected(switchMark);
}

/** Performs `action` on the marked services after a question, or on the selected service. */
function actOnChosen(action: BulkAction): void {
  if (markedServices.peek().length > 0) askToAct(action, markedServices.peek());
  else withSelected((name) => requestAction(action, name));
}

/** Selects the next service that has crashed, or agent that waits for an answer, after the selected one. */
function selectUrgent(): void {
  const rows = listRows.peek();
  const at = rows.findIndex(({ key }) => key === selectedRowKey.peek());
  const next = [...rows.slice(at + 1), ...rows.slice(0, at + 1)].find(
    (row) => row.kind === 'service' && toneOf(shownState(row.service)) === 'bad',
  );
  if (next) selectRow(next);
}

/** Calls `action` with the name of the selected service, if one is selected. */
function withSelected(action: (name: string) => void): void {
  const { name } = shownPlace.peek();
  if (name !== null && serviceByName.peek().has(name)) action(name);
}

/** Performs `action` on the selected workload; returns whether one is selected. */
function actOnSelectedWorkload(action: WorkloadAction): boolean {
  const id = selectedWorkloadId.peek();
  const workload = workloadPages.rows.peek().find((one) => one.id === id);
  if (workload) requestWorkloadAction(action, workload);
  return id !== null;
}

function focusSearch(): void {
  const field =
    document.getElementById(SEARCH_ID) ?? document.querySelector<HTMLInputElement>('input[type=search]');
  if (field instanceof HTMLInputElement) field.select();
}

const ACTIONS: Readonly<Record<string, () => void>> = {
  '/': focusSearch,
  j: () => select(1),
  k: () => select(-1),
  ArrowDown: () => select(1),
  ArrowUp: () => select(-1),
  'Shift ArrowDown': () => extend(1),
  'Shift ArrowUp': () => extend(-1),
  ' ': markSelected,
  Escape: endMarking,
  s: () => actOnSelectedWorkload('wake') || actOnChosen('start'),
  r: () => actOnChosen('restart'),
  x: () => actOnSelectedWorkload('sleep') || actOnChosen('stop'),
  l: () => withSelected(showLog),
  t: () => withSelected((name) => isAgent(name) && openPane({ kind: 'terminal', name })),
  e: toggleWorst,
  u: () => withSelected(openAddress),
  y: () => withSelected(copyAddress),
  n: selectUrgent,
  '?': () => {
    helpIsOpen.value = true;
  },
  ...Object.fromEntries(VIEWS.map((view, at) => [String(at + 1), () => go({ view, name: null, query: {} })])),
};

/** Elements in which a person types text. */
const TEXT = 'input:not([type=checkbox]), textarea, [contenteditable], .xterm';
/** Elements that take letters. */
const TYPED = `${TEXT}, select`;
/** Elements in which the arrow keys and Space scroll or move something. */
const MOVED = '.log-lines, [role=separator], .view-body';

/** Elements that Space presses. */
const PRESSED = 'button, summary, input';

function openPalette(event: KeyboardEvent): boolean {
  const isCommand = event.ctrlKey || event.metaKey;
  if (!isCommand || event.key.toLowerCase() !== 'k') return false;
  const isInTerminal = event.target instanceof Element && event.target.closest('.xterm') !== null;
  if (isInTerminal && !event.shiftKey) return false;
  paletteIsOpen.value = true;
  return true;
}

/** The text field with the focus, or that had it and has vanished. null: none, or the person has left it. */
let lastField: Element | null = null;

const fieldOf = ({ target }: Event): Element | null =>
  target instanceof Element && target.closest(TEXT) !== null ? target : null;

const noteField = (event: Event): void => {
  lastField = fieldOf(event);
};

/** Notes the field that gets a key. Escape, Tab, and Enter in a field of one line end what is typed there. */
function noteFieldKey(event: KeyboardEvent): void {
  const field = fieldOf(event);
  if (!field) return;
  const isEnd = ['Escape', 'Tab'].includes(event.key) || (event.key === 'Enter' && field.matches('input'));
  lastField = isEnd && !field.closest('.xterm') ? null : field;
}

/** Whether a key is of someone who still types into a field that has vanished. Escape and Tab end that. */
function isForLostField(key: string): boolean {
  if (lastField === null || lastField.isConnected) return false;
  if (key === 'Escape' || key === 'Tab') lastField = null;
  return true;
}

/** Whether the page leaves `event` to the dialog that is open, if one is. */
function isForDialog(event: KeyboardEvent): boolean {
  if (loginReason.peek() === null) return document.querySelector('dialog[open]') !== null;
  // A dialog can refuse only the first Escape.
  if (event.key === 'Escape') event.preventDefault();
  return true;
}

function onKey(event: KeyboardEvent): void {
  noteFieldKey(event);
  if (loginReason.peek() === null && openPalette(event)) {
    event.preventDefault();
    event.stopPropagation();
    return;
  }
  if (isForDialog(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const { target, key } = event;
  if (!(target instanceof Element)) return;
  if (target.closest(TYPED)) {
    if (key === 'Escape' && target instanceof HTMLElement && !target.closest('.xterm')) target.blur();
    return;
  }
  if (isForLostField(key)) return;
  if ((key.startsWith('Arrow') || key === ' ') && target.closest(MOVED)) return;
  if (key === ' ' && target.closest(PRESSED)) return;
  const shifted = event.shiftKey ? `Shift ${key}` : key;
  const name = Object.hasOwn(ACTIONS, shifted) ? shifted : key;
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  if (!action) return;
  event.preventDefault();
  action();
}

/** Starts to handle the keyboard shortcuts. */
export function listenForKeys(): void {
  // In the capture phase, before a terminal gets the event.
  addEventListener('keydown', onKey, { capture: true });
  for (const type of ['focusin', 'pointerdown', 'popstate'])
    addEventListener(type, noteField, { capture: true });
}
