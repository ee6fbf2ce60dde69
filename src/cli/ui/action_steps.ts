// Actions: what a key does to what is in sight, and which of them ask first.

import { isOfAgents } from '../../presentation/sections.ts';
import { faultOfPrompt } from '../../protocol/prompt_text.ts';
import { targetOf } from './list_rows.ts';
import { markedRows, selectedRow, shownWorkload } from './list_steps.ts';
import { type Action, faultOf, type Model, type Step, type Target, viewOf } from './model.ts';

const say = (model: Model, text: string): Step => [{ ...model, notice: { tone: 'bad', text } }];

/** The registered name of the service in sight: selected, in details, or alone in a log; null: none is. */
function shownName(model: Model): string | null {
  const view = viewOf(model);
  if (view.kind === 'details') return view.name;
  if (view.kind === 'log')
    return view.log.selection.names?.length === 1 ? (view.log.selection.names[0] ?? null) : null;
  const row = selectedRow(model);
  return row?.kind === 'service' ? row.service.name : null;
}

/** What the actions are for now: what is marked in the list, or else selected, or what is in sight. */
function shownTargets(model: Model): readonly Target[] {
  const view = viewOf(model);
  if (view.kind !== 'list') return [shownTarget(model)].filter((target) => target !== null);
  const marked = markedRows(model);
  const rows = marked.length > 0 ? marked : [selectedRow(model)];
  return rows.map(targetOf).filter((target) => target !== null);
}

/** What the view above the list shows; null: nothing that has actions. */
function shownTarget(model: Model): Target | null {
  const workload = shownWorkload(model);
  if (workload) return targetOf({ kind: 'workload', key: '', workload });
  const name = shownName(model);
  const service = model.services?.find((one) => one.name === name);
  if (!service) return null;
  const agent = model.agents.find((one) => one.name === name) ?? null;
  return targetOf({ kind: 'service', key: '', service, agent });
}

/** What no target of a kind can do. */
const IMPOSSIBLE: Readonly<Partial<Record<Target['kind'], readonly Action[]>>> = {
  group: ['remove'],
  workload: ['restart', 'remove'],
};

/** What is asked before an action; null: it is done at once. */
function questionBefore(action: Action, { kind, label }: Target): string | null {
  if (action === 'remove') return `Stop ${label} and remove it with its logs?`;
  if (action === 'start' || action === 'wake' || kind === 'service') return null;
  if (kind === 'agent') return action === 'sleep' ? null : `${action} ${label}? What it is doing ends.`;
  if (kind === 'workload') return `Put ${label} to sleep? It serves nobody until it is woken.`;
  return `${action} ${label}?`;
}

/** What is asked before an action for several; null: it is done at once. */
function questionBeforeMany(action: Action, count: number): string | null {
  if (action === 'remove') return `Stop the ${count} marked and remove them with their logs?`;
  return action === 'start' || action === 'wake' ? null : `${action} the ${count} marked?`;
}

/** What an action is called while it is under way. */
export const actionTitle = (action: Action, { label }: Pick<Target, 'label'>): string => `${action} ${label}`;

/** Asks for an action for `targets`, of which none is marked any more. */
export const acting = (model: Model, action: Action, targets: readonly Target[]): Step => [
  { ...model, marked: new Set(), dialog: null },
  ...targets.map((target) => ({ kind: 'act', action, target }) as const),
];

/** Does an action with what is marked or in sight, or asks first. */
export function act(model: Model, wanted: Action | 'sleepOrWake'): Step {
  const [target, ...others] = shownTargets(model);
  if (!target) return say(model, 'Nothing is selected that can be started or stopped.');
  const all = [target, ...others];
  const areAsleep = all.every(({ isAsleep }) => isAsleep);
  const action = wanted === 'sleepOrWake' ? (areAsleep ? 'wake' : 'sleep') : wanted;
  const unable = all.find(({ kind }) => IMPOSSIBLE[kind]?.includes(action));
  if (unable) return say(model, `There is no ${action} for ${unable.label}.`);
  const fault = faultOf(model.connection);
  if (fault !== null) return say(model, `Nothing was done: ${fault}.`);
  const targets = all.filter((one) => !model.underWay.includes(actionTitle(action, one)));
  if (targets.length === 0) return [model];
  const question =
    others.length > 0 ? questionBeforeMany(action, all.length) : questionBefore(action, target);
  if (question === null) return acting(model, action, targets);
  return [{ ...model, dialog: { kind: 'confirm', question, action, targets } }];
}

/** The name of the agent in sight, or why there is none. */
function shownAgent(model: Model): { name: string } | { fault: string } {
  const name = shownName(model);
  const service = model.services?.find((one) => one.name === name);
  if (!service || !isOfAgents(service)) return { fault: 'Only agents have a terminal; l shows a log.' };
  return { name: service.name };
}

/** Shows the terminal of the agent in sight. */
export function attach(model: Model): Step {
  const agent = shownAgent(model);
  if ('fault' in agent) return say(model, agent.fault);
  return [
    { ...model, notice: null },
    { kind: 'attach', name: agent.name },
  ];
}

/** Asks for a prompt for the agent in sight. */
export function askForPrompt(model: Model): Step {
  const agent = shownAgent(model);
  if ('fault' in agent) return say(model, agent.fault);
  return [
    { ...model, dialog: { kind: 'input', purpose: { kind: 'prompt', subject: agent.name }, text: '' } },
  ];
}

/** Sends a prompt, unless no program could be typed its text. */
export function sendPrompt(model: Model, name: string, text: string): Step {
  if (text.trim() === '') return [{ ...model, dialog: null }];
  const fault = faultOfPrompt(text);
  if (fault !== null) return say(model, `The text ${fault}`);
  return [
    { ...model, dialog: null },
    { kind: 'prompt', name, text },
  ];
}
