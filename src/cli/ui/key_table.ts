// The keys of each view: what they do, and how the help and the bottom line describe them.
import { act, askForPrompt, attach } from './action_steps.ts';
import { copyLine, copyShown, openShownUrl } from './copy_steps.ts';
import { openPolicies, scrollText } from './details_steps.ts';
import { endSelection, moveBy, moveToAttention, nextOrder, openSelected, toggleMark } from './list_steps.ts';
import { findInLog } from './log_find.ts';
import {
  changeLog,
  goToBeginning,
  goToEnd,
  nextLevel,
  openSelectedLog,
  openWholeLog,
  scrollLog,
  togglePause,
} from './log_steps.ts';
import { layoutOf, type Model, type Step, type View, viewOf } from './model.ts';

/** One key, or several that do the same. */
export interface KeyRow {
  keys: readonly string[];
  /** The keys as the help shows them. */
  label: string;
  about: string;
  /** One word for the bottom line; absent: the line omits the key. */
  hint?: string;
  run: (model: Model) => Step;
}

const back = (model: Model): Step => {
  const closed = model.views.at(-1)?.kind === 'log' ? [{ kind: 'closeLog' } as const] : [];
  return [{ ...model, views: model.views.slice(0, -1), notice: null }, ...closed];
};

const ask = (model: Model, kind: 'filter' | 'search' | 'lines'): Step => {
  const view = viewOf(model);
  const lines = view.kind === 'log' ? (view.log.selection.q ?? '') : '';
  const text = { filter: model.filter, search: '', lines }[kind];
  return [{ ...model, dialog: { kind: 'input', purpose: { kind, subject: text }, text } }];
};

const page = ({ size }: Model): number => Math.max(1, layoutOf(size).bodyRows - 1);
const FAR = 1_000_000;
const WIDTH_STEP = 20;

/** Keys of every view. */
const EVERYWHERE: readonly KeyRow[] = [
  {
    keys: ['?'],
    label: '?',
    about: 'this list of keys',
    hint: 'help',
    run: (model) => {
      const keys = KEY_TABLE[viewOf(model).kind];
      return [{ ...model, views: [...model.views, { kind: 'help', keys, top: 0 }] }];
    },
  },
  {
    keys: ['C-l'],
    label: 'Ctrl-L',
    about: 'draw the screen again',
    run: (model) => [model, { kind: 'redraw' }],
  },
  {
    keys: ['C-z'],
    label: 'Ctrl-Z',
    about: 'to the shell; fg comes back',
    run: (model) => [model, { kind: 'suspend' }],
  },
];

const QUIT: KeyRow = {
  keys: ['q'],
  label: 'q, Ctrl-C',
  about: 'quit',
  hint: 'quit',
  run: (model) => [model, { kind: 'quit', code: 0 }],
};
const BACK: KeyRow = { keys: ['q', 'Escape'], label: 'q, Esc', about: 'back', hint: 'back', run: back };

const START: KeyRow = {
  keys: ['s'],
  label: 's',
  about: 'start',
  hint: 'start',
  run: (model) => act(model, 'start'),
};
const STOP: KeyRow = {
  keys: ['x'],
  label: 'x',
  about: 'stop',
  hint: 'stop',
  run: (model) => act(model, 'stop'),
};
const RESTART: KeyRow = {
  keys: ['r'],
  label: 'r',
  about: 'restart',
  hint: 'restart',
  run: (model) => act(model, 'restart'),
};
/** Keys for actions on a service, an agent, a section or a workload. */
const ACTION_KEYS: readonly KeyRow[] = [
  START,
  STOP,
  RESTART,
  {
    keys: ['z'],
    label: 'z',
    about: 'put to sleep, or wake',
    run: (model) => act(model, 'sleepOrWake'),
  },
  {
    keys: ['X'],
    label: 'X',
    about: 'stop and remove, after a question',
    run: (model) => act(model, 'remove'),
  },
  { keys: ['l'], label: 'l', about: 'log, of a section all of its logs', hint: 'log', run: openSelectedLog },
  { keys: ['a'], label: 'a', about: 'terminal of an agent; Ctrl-] comes back', hint: 'attach', run: attach },
  { keys: ['p'], label: 'p', about: 'prompt for an agent', hint: 'prompt', run: askForPrompt },
  { keys: ['u'], label: 'u', about: 'open its URL in the browser', run: openShownUrl },
  { keys: ['y'], label: 'y', about: 'copy its URL, or the name where it has none', run: copyShown },
];

/** Keys that move by calling `move` with a number of steps down. */
const movingKeys = (move: (model: Model, steps: number) => Step): KeyRow[] => [
  { keys: ['j', 'Down'], label: 'j, ↓', about: 'down', run: (model) => move(model, 1) },
  { keys: ['k', 'Up'], label: 'k, ↑', about: 'up', run: (model) => move(model, -1) },
  {
    keys: ['PageDown', 'C-f', 'C-d'],
    label: 'PgDn',
    about: 'a page down',
    run: (model) => move(model, page(model)),
  },
  {
    keys: ['PageUp', 'C-b', 'C-u'],
    label: 'PgUp',
    about: 'a page up',
    run: (model) => move(model, -page(model)),
  },
];
const endKeys = (move: (model: Model, steps: number) => Step): KeyRow[] => [
  { keys: ['g', 'Home'], label: 'g, Home', about: 'to the beginning', run: (model) => move(model, -FAR) },
  { keys: ['G', 'End'], label: 'G, End', about: 'to the end', run: (model) => move(model, FAR) },
];

const LOG_KEYS: readonly KeyRow[] = [
  { keys: [' '], label: 'Space', about: 'pause, or follow again', hint: 'pause', run: togglePause },
  {
    keys: ['/'],
    label: '/',
    about: 'search in all that is kept',
    hint: 'search',
    run: (model) => ask(model, 'search'),
  },
  { keys: ['n'], label: 'n', about: 'the next newer match', run: (model) => findInLog(model, 1) },
  { keys: ['N'], label: 'N', about: 'the next older match', run: (model) => findInLog(model, -1) },
  {
    keys: ['f'],
    label: 'f',
    about: 'only lines with a text, of all that is kept; an empty one ends it',
    hint: 'only',
    run: (model) => ask(model, 'lines'),
  },
  {
    keys: ['e'],
    label: 'e',
    about: 'warnings and worse, errors, or all lines',
    hint: 'errors',
    run: nextLevel,
  },
  {
    keys: ['w'],
    label: 'w',
    about: 'wrap long lines, or not',
    hint: 'wrap',
    run: (model) => changeLog(model, ({ isWrapped }) => ({ isWrapped: !isWrapped, left: 0 })),
  },
  {
    keys: ['t'],
    label: 't',
    about: 'times, or none',
    hint: 'times',
    run: (model) => changeLog(model, ({ hasTimes }) => ({ hasTimes: !hasTimes })),
  },
  {
    keys: ['Left'],
    label: '←',
    about: 'to the left of long lines',
    run: (model) => changeLog(model, ({ left }) => ({ left: Math.max(0, left - WIDTH_STEP) })),
  },
  {
    keys: ['Right'],
    label: '→',
    about: 'to the right of long lines',
    run: (model) =>
      changeLog(model, ({ left, isWrapped }) => ({ left: isWrapped ? 0 : Math.min(FAR, left + WIDTH_STEP) })),
  },
];

/** Keys of a scrollable text. */
const textKeys: readonly KeyRow[] = [...movingKeys(scrollText), ...endKeys(scrollText), ...EVERYWHERE, BACK];

/** The keys of each view, the most important first. */
export const KEY_TABLE: Readonly<Record<View['kind'], readonly KeyRow[]>> = {
  list: [
    {
      keys: ['/'],
      label: '/',
      about: 'filter the list',
      hint: 'filter',
      run: (model) => ask(model, 'filter'),
    },
    ...ACTION_KEYS,
    { keys: ['Escape'], label: 'Esc', about: 'end the marks, then the filter', run: endSelection },
    {
      keys: ['Enter', 'd'],
      label: 'Enter, d',
      about: 'details; of a section: fold',
      hint: 'details',
      run: openSelected,
    },
    { keys: [' '], label: 'Space', about: 'mark for the next action; fold a section', run: toggleMark },
    { keys: ['o'], label: 'o', about: 'order by name, state, CPU or memory', run: nextOrder },
    { keys: ['n'], label: 'n', about: 'next that has crashed or is blocked', run: moveToAttention },
    { keys: ['L'], label: 'L', about: 'log of all services', run: openWholeLog },
    { keys: ['P'], label: 'P', about: 'policies of workloads', run: openPolicies },
    ...movingKeys(moveBy),
    ...endKeys(moveBy),
    ...EVERYWHERE,
    QUIT,
  ],
  details: [...ACTION_KEYS, ...textKeys],
  workload: [
    ...ACTION_KEYS.filter(({ keys: [key] }) => ['s', 'x', 'z', 'y'].includes(key ?? '')),
    ...textKeys,
  ],
  policies: textKeys,
  log: [
    ...LOG_KEYS,
    { keys: ['y'], label: 'y', about: 'copy the found line, or the last one in sight', run: copyLine },
    START,
    STOP,
    RESTART,
    ...movingKeys(scrollLog),
    {
      keys: ['g', 'Home'],
      label: 'g, Home',
      about: 'to the first line; older ones are read',
      run: goToBeginning,
    },
    {
      keys: ['G', 'End'],
      label: 'G, End',
      about: 'to the end, and follow',
      run: goToEnd,
    },
    ...EVERYWHERE,
    BACK,
  ],
  help: [...movingKeys(scrollText), ...endKeys(scrollText), { ...BACK, keys: ['q', 'Escape', '?', 'Enter'] }],
};
