// Scrollable texts: the details of a service or a workload, the policies, and the help.
import type { Details, Message, Model, Step, View } from './model.ts';
import { layoutOf, viewOf } from './model.ts';
import { textLines } from './view_text.ts';

const isOf = (view: View, name: string): view is Extract<View, { kind: 'details' }> =>
  view.kind === 'details' && view.name === name;

/** Scrolls the shown text down by `steps` lines, at most to its end. */
export function scrollText(model: Model, steps: number): Step {
  const view = viewOf(model);
  if (view.kind === 'list' || view.kind === 'log') return [model];
  const last = Math.max(0, textLines(view, model).length - layoutOf(model.size).bodyRows);
  const top = Math.max(0, Math.min(last, view.top + steps));
  return [{ ...model, views: [...model.views.slice(0, -1), { ...view, top }] }];
}

function withDetails(model: Model, name: string, change: { details: Details } | { trouble: string }): Model {
  return {
    ...model,
    views: model.views.map((view) => (isOf(view, name) ? { ...view, trouble: '', ...change } : view)),
  };
}

/** Stores the details that were read, or the reason why they could not be read. */
export const takeDetails = (
  model: Model,
  message: Extract<Message, { kind: 'details' | 'noDetails' }>,
): Model =>
  message.kind === 'details'
    ? withDetails(model, message.name, { details: message.details })
    : withDetails(model, message.name, { trouble: message.reason });

/** Shows the policies, if there are workloads: a request must not make a daemon load its cloud part. */
export function openPolicies(model: Model): Step {
  if (model.workloads.length === 0)
    return [
      { ...model, notice: { tone: 'bad', text: 'There are no workloads that policies could be for.' } },
    ];
  const view = { kind: 'policies', policies: null, trouble: '', top: 0 } as const;
  return [{ ...model, views: [...model.views, view] }, { kind: 'readPolicies' }];
}

/** Stores the policies that were read, or the reason why they could not be read. */
export const takePolicies = (
  model: Model,
  message: Extract<Message, { kind: 'policies' | 'noPolicies' }>,
): Model => ({
  ...model,
  views: model.views.map((view) => {
    if (view.kind !== 'policies') return view;
    return message.kind === 'policies'
      ? { ...view, trouble: '', policies: message.policies }
      : { ...view, trouble: message.reason };
  }),
});

/** Reads the open details again if their service is one of `names`, the services with new events. */
export function refreshDetails(model: Model, names: ReadonlySet<string>): Step {
  const open = model.views.find(({ kind }) => kind === 'details');
  if (open?.kind !== 'details' || !names.has(open.name)) return [model];
  return [model, { kind: 'readDetails', name: open.name }];
}
