// Which workloads a list has and a change of many concerns: docs/reference.md "Lists of workloads". Pure.
import type { ObservedWorkload, StoredWorkload, WorkloadSelection } from './cloud.ts';
import { scopeMatcher } from './grants.ts';
import { parseSelector } from './labels.ts';

export const ALL_WORKLOADS: WorkloadSelection = {
  clusterId: null,
  namespaces: null,
  states: null,
  selector: null,
};

/** What a selection looks at. */
type Selectable = Pick<StoredWorkload, 'clusterId' | 'state'> &
  Pick<ObservedWorkload, 'namespace' | 'labels'>;

/** Whether `selection` has a workload. Throws invalid_spec for a selector that is none. */
export function selectorOfWorkloads(selection: WorkloadSelection): (workload: Selectable) => boolean {
  const { clusterId, namespaces, states, selector, within } = selection;
  const isWithin = within ? scopeMatcher(within) : null;
  const hasLabels = selector === null ? null : parseSelector(selector);
  return (workload) =>
    (clusterId === null || clusterId === workload.clusterId) &&
    (namespaces === null || namespaces.includes(workload.namespace)) &&
    (states === null || states.includes(workload.state)) &&
    (hasLabels === null || hasLabels(workload.labels)) &&
    (isWithin === null || isWithin(workload));
}
