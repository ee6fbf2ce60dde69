// Computes the new state after a message. Pure: requests everything else as effects.
import { acting, sendPrompt } from './action_steps.ts';
import { refreshDetails, scrollText, takeDetails, takePolicies } from './details_steps.ts';
import { KEY_TABLE } from './key_table.ts';
import type { TypedInput } from './keys.ts';
import { inSight, withFilter, withRows } from './list_steps.ts';
import { searchLog } from './log_find.ts';
import { takeLogged, takeLogRead, withLog } from './log_pages.ts';
import { reopenLog } from './log_steps.ts';
import { type Dialog, type Message, type Model, type Purpose, type Step, viewOf } from './model.ts';

type Input = Extract<Dialog, { kind: 'input' }>;

const closed = (model: Model): Model => ({ ...model, dialog: null });

/** What an input line does on each change of its text, on Enter, and on Escape. */
interface InputLine {
  typed?: (model: Model, text: string) => Model;
  entered: (model: Model, text: string, subject: string) => Step;
  left?: (model: Model, subject: string) => Model;
}

const INPUT_LINES: Readonly<Record<Purpose['kind'], InputLine>> = {
  filter: { typed: withFilter, entered: (model) => [closed(model)], left: withFilter },
  search: { entered: (model, text) => searchLog(closed(model), text) },
  lines: {
    entered: (model, text) => reopenLog(closed(model), () => ({ q: text === '' ? undefined : text })),
  },
  prompt: { entered: (model, text, name) => sendPrompt(model, name, text) },
};

function withText(model: Model, dialog: Input, text: string): Step {
  const changed = { ...model, dialog: { ...dialog, text }, notice: null };
  return [INPUT_LINES[dialog.purpose.kind].typed?.(changed, text) ?? changed];
}

const withoutLast = (text: string): string => [...text].slice(0, -1).join('');
const withoutLastWord = (text: string): string => text.replace(/\S*\s*$/, '');

const EDITS: Readonly<Record<string, (text: string) => string>> = {
  Backspace: withoutLast,
  'C-w': withoutLastWord,
  'C-u': () => '',
};

function typeInto(model: Model, dialog: Input, key: string): Step {
  const { purpose, text } = dialog;
  if (key === 'Enter') return INPUT_LINES[purpose.kind].entered(model, text, purpose.subject);
  if (key === 'Escape') {
    const left = closed({ ...model, notice: null });
    return [INPUT_LINES[purpose.kind].left?.(left, purpose.subject) ?? left];
  }
  const edit = EDITS[key];
  if (edit) return withText(model, dialog, edit(text));
  const isCharacter = [...key].length === 1;
  return isCharacter ? withText(model, dialog, text + key) : [model];
}

function answer(model: Model, { action, targets }: Extract<Dialog, { kind: 'confirm' }>, key: string): Step {
  if (key === 'y' || key === 'Y') return acting(model, action, targets);
  return key === 'n' || key === 'N' || key === 'Escape' || key === 'q' ? [closed(model)] : [model];
}

function press(model: Model, key: string): Step {
  if (key === 'C-c') return [model, { kind: 'quit', code: INTERRUPTED }];
  const { dialog } = model;
  if (dialog?.kind === 'input') return typeInto(model, dialog, key);
  if (dialog) return answer(model, dialog, key);
  const row = KEY_TABLE[viewOf(model).kind].find(({ keys }) => keys.includes(key));
  return row ? row.run({ ...model, notice: null }) : [model];
}

/** A paste is text and never keys: without an input line, it has no effect. */
function paste(model: Model, { text, isCut }: Extract<TypedInput, { kind: 'paste' }>): Step {
  const { dialog } = model;
  if (dialog?.kind !== 'input') {
    const notice = {
      tone: 'bad',
      text: 'Text was pasted where none is asked for: nothing was done.',
    } as const;
    return [{ ...model, notice }];
  }
  if (isCut) return [{ ...model, notice: { tone: 'bad', text: 'The pasted text is too long.' } }];
  const lines = text.replace(/\r\n?/g, '\n');
  return withText(
    model,
    dialog,
    dialog.text + (dialog.purpose.kind === 'prompt' ? lines : lines.replaceAll('\n', ' ')),
  );
}

const INTERRUPTED = 130;

/** Updates the list. Open details of a service that is no longer registered say so. */
function takeLists(model: Model, { services, agents }: Extract<Message, { kind: 'lists' }>): Model {
  // The selection starts at the first service, even if workloads arrived earlier.
  const place = model.services === null ? { selected: '', top: 0 } : {};
  const listed = withRows({ ...model, ...place, services, agents });
  const names = new Set(services.map(({ name }) => name));
  const views = listed.views.map((view) =>
    view.kind === 'details' && !names.has(view.name)
      ? { ...view, trouble: `${view.name} is not registered any more.` }
      : view,
  );
  return { ...listed, views };
}

/** Updates the usages. They change the rows only if the list is ordered by them. */
function takeUsages(model: Model, usages: Model['usages']): Model {
  const used = { ...model, usages };
  return model.order === 'cpu' || model.order === 'memory' ? withRows(used) : used;
}

const withoutOne = (list: readonly string[], one: string): readonly string[] => {
  const at = list.indexOf(one);
  return at < 0 ? list : [...list.slice(0, at), ...list.slice(at + 1)];
};

const HANDLERS: { [K in Message['kind']]: (model: Model, message: Extract<Message, { kind: K }>) => Step } = {
  key: (model, { key }) => press(model, key),
  paste,
  resized: (model, { size }) => scrollText(inSight({ ...model, size }), 0),
  ticked: (model, { now }) => [{ ...model, now }],
  connection: (model, { connection, address = model.address }) => [{ ...model, connection, address }],
  lists: (model, message) => [takeLists(model, message)],
  workloads: (model, { workloads }) => [withRows({ ...model, workloads })],
  usages: (model, { usages }) => [takeUsages(model, new Map([...model.usages, ...usages]))],
  happened: (model, { names }) => refreshDetails(model, names),
  details: (model, message) => [takeDetails(model, message)],
  noDetails: (model, message) => [takeDetails(model, message)],
  policies: (model, message) => [takePolicies(model, message)],
  noPolicies: (model, message) => [takePolicies(model, message)],
  logged: (model, { entries }) => takeLogged(model, entries),
  logRead: takeLogRead,
  logTrouble: (model, { trouble }) => [withLog(model, (log) => ({ ...log, trouble }))],
  began: (model, { title }) => [{ ...model, underWay: [...model.underWay, title], notice: null }],
  ended: (model, { title, error }) => {
    const notice = error === null ? model.notice : ({ tone: 'bad', text: `${title}: ${error}` } as const);
    return [{ ...model, underWay: withoutOne(model.underWay, title), notice }];
  },
  said: (model, { tone, text }) => [{ ...model, notice: { tone, text } }],
};

/** The state after `message`, and the effects that it requests. */
export function update<K extends Message['kind']>(
  model: Model,
  message: Extract<Message, { kind: K }>,
): Step {
  return HANDLERS[message.kind as K](model, message);
}
