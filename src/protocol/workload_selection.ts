// Which workloads a list or a bulk change selects: docs/reference.md "Lists of workloads". Pure.
import type { ObservedWorkload, StoredWorkload, WorkloadSelection } from './cloud.ts';
import { scopeMatcher } from './grants.ts';
import { parseSelector } from './labels.ts';

export const ALL_WORKLOADS: WorkloadSelection = {
  clusterId: null,
  namespaces: null,
  states: null,
  selector: null,
};

/** The attributes of a workload that a selection depends on. */
type Selectable = Pick<StoredWorkload, 'clusterId' | 'state'> &
  Pick<ObservedWorkload, 'namespace' | 'labels'>;

/** Returns whether `selection` includes a workload. Throws invalid_spec for an invalid selector. */
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
