// Actions: what a key does to the shown or selected targets, and which actions ask for confirmation.

import { questionBefore } from '../../presentation/questions.ts';
import { isOfAgents } from '../../presentation/sections.ts';
import { faultOfPrompt } from '../../protocol/prompt_text.ts';
import { targetOf } from './list_rows.ts';
import { markedRows, selectedRow, shownWorkload } from './list_steps.ts';
import { type Action, faultOf, type Model, type Step, type Target, viewOf } from './model.ts';

const say = (model: Model, text: string): Step => [{ ...model, notice: { tone: 'bad', text } }];

/** The registered name of the service that is selected, shown in details, or alone in a log; null: none. */
function shownName(model: Model): string | null {
  const view = viewOf(model);
  if (view.kind === 'details') return view.name;
  if (view.kind === 'log')
    return view.log.selection.names?.length === 1 ? (view.log.selection.names[0] ?? null) : null;
  const row = selectedRow(model);
  return row?.kind === 'service' ? row.service.name : null;
}

/** The targets of an action: in the list, the marked rows or the selected row; elsewhere, what is shown. */
function shownTargets(model: Model): readonly Target[] {
  const view = viewOf(model);
  if (view.kind !== 'list') return [shownTarget(model)].filter((target) => target !== null);
  const marked = markedRows(model);
  const rows = marked.length > 0 ? marked : [selectedRow(model)];
  return rows.map(targetOf).filter((target) => target !== null);
}

/** The target that the current view shows; null if it shows nothing that has actions. */
function shownTarget(model: Model): Target | null {
  const workload = shownWorkload(model);
  if (workload) return targetOf({ kind: 'workload', key: '', workload });
  const name = shownName(model);
  const service = model.services?.find((one) => one.name === name);
  if (!service) return null;
  const agent = model.agents.find((one) => one.name === name) ?? null;
  return targetOf({ kind: 'service', key: '', service, agent });
}

/** Why there is no target. The calls of a group would also reach members that the section does not list. */
const noTargetText = (model: Model): string =>
  viewOf(model).kind === 'list' && selectedRow(model)?.kind === 'head'
    ? 'This section is not exactly one group; mark what to act on.'
    : 'Nothing is selected that can be started or stopped.';

/** The actions that are impossible for each kind of target. */
const IMPOSSIBLE: Readonly<Partial<Record<Target['kind'], readonly Action[]>>> = {
  group: ['remove'],
  workload: ['restart', 'remove'],
};

/** The confirmation to ask for before an action on what is marked; null if it needs none. */
function questionBeforeMarked(
  action: Action,
  targets: readonly [Target, ...(readonly Target[])],
): string | null {
  const [{ label }] = targets;
  const what = targets.length === 1 ? label : `the ${targets.length} marked`;
  if (action === 'remove') return `Stop ${what} and remove them with their logs?`;
  return action === 'start' || action === 'wake' ? null : `${action} ${what}?`;
}

/** The title of an action in progress. */
export const actionTitle = (action: Action, { label }: Pick<Target, 'label'>): string => `${action} ${label}`;

/** Requests an action on `targets`, and removes all marks. */
export const acting = (model: Model, action: Action, targets: readonly Target[]): Step => [
  { ...model, marked: new Set(), dialog: null },
  ...targets.map((target) => ({ kind: 'act', action, target }) as const),
];

/** Runs an action on the current targets, or asks for confirmation first. */
export function act(model: Model, wanted: Action | 'sleepOrWake'): Step {
  const [target, ...others] = shownTargets(model);
  if (!target) return say(model, noTargetText(model));
  const all = [target, ...others] as const;
  const areAsleep = all.every(({ isAsleep }) => isAsleep);
  const action = wanted === 'sleepOrWake' ? (areAsleep ? 'wake' : 'sleep') : wanted;
  const unable = all.find(({ kind }) => IMPOSSIBLE[kind]?.includes(action));
  if (unable) return say(model, `There is no ${action} for ${unable.label}.`);
  const fault = faultOf(model.connection);
  if (fault !== null) return say(model, `Nothing was done: ${fault}.`);
  const targets = all.filter((one) => !model.underWay.includes(actionTitle(action, one)));
  if (targets.length === 0) return [model];
  const marked = viewOf(model).kind === 'list' && markedRows(model).length > 0;
  const question =
    (others.length === 0 ? questionBefore(action, target) : null) ??
    (marked ? questionBeforeMarked(action, all) : null);
  if (question === null) return acting(model, action, targets);
  return [{ ...model, dialog: { kind: 'confirm', question, action, targets } }];
}

/** The name of the shown or selected agent, or the reason why there is none. */
function shownAgent(model: Model): { name: string } | { fault: string } {
  const name = shownName(model);
  const service = model.services?.find((one) => one.name === name);
  if (!service || !isOfAgents(service)) return { fault: 'Only agents have a terminal; l shows a log.' };
  return { name: service.name };
}

/** Shows the terminal of the shown or selected agent. */
export function attach(model: Model): Step {
  const agent = shownAgent(model);
  if ('fault' in agent) return say(model, agent.fault);
  return [
    { ...model, notice: null },
    { kind: 'attach', name: agent.name },
  ];
}

/** Opens the input line for a prompt to the shown or selected agent. */
export function askForPrompt(model: Model): Step {
  const agent = shownAgent(model);
  if ('fault' in agent) return say(model, agent.fault);
  return [
    { ...model, dialog: { kind: 'input', purpose: { kind: 'prompt', subject: agent.name }, text: '' } },
  ];
}

/** Sends a prompt, unless its text contains something that cannot be typed into a program. */
export function sendPrompt(model: Model, name: string, text: string): Step {
  if (text.trim() === '') return [{ ...model, dialog: null }];
  const fault = faultOfPrompt(text);
  if (fault !== null) return say(model, `The text ${fault}`);
  return [
    { ...model, dialog: null },
    { kind: 'prompt', name, text },
  ];
}
