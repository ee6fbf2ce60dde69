// Workloads as lists show them: by cluster and namespace, filtered by a search.
import type { Workload } from '../client/records.ts';

/** The workloads of one namespace of a cluster. */
export interface WorkloadGroup {
  key: string;
  /** The name of the cluster. */
  cluster: string;
  namespace: string;
  workloads: Workload[];
}

/** The key of the group of a workload. */
export const workloadGroupKey = ({ cluster_id, namespace }: Workload): string => `${cluster_id}/${namespace}`;

/**
 * The workloads whose name, namespace, cluster, state or kind contain every word, in lower case. `clusters`:
 * the names of the clusters by id.
 */
export function foundWorkloads(
  workloads: readonly Workload[],
  words: readonly string[],
  clusters: ReadonlyMap<string, string>,
): readonly Workload[] {
  if (words.length === 0) return workloads;
  return workloads.filter(({ name, namespace, cluster_id: id, state, kind }) => {
    const text = `${name} ${namespace} ${clusters.get(id) ?? ''} ${state} ${kind}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** The groups in the order of the workloads, in which those of a namespace are adjacent. */
export function workloadGroupsOf(
  workloads: readonly Workload[],
  clusters: ReadonlyMap<string, string>,
): WorkloadGroup[] {
  const groups: WorkloadGroup[] = [];
  for (const workload of workloads) {
    const key = workloadGroupKey(workload);
    const { namespace, cluster_id: id } = workload;
    const last = groups.at(-1);
    if (last?.key === key) last.workloads.push(workload);
    else groups.push({ key, cluster: clusters.get(id) ?? '', namespace, workloads: [workload] });
  }
  return groups;
}

/** How many of the workloads are in `state`. */
export const countInState = (workloads: readonly Workload[], state: Workload['state']): number =>
  workloads.reduce((sum, workload) => sum + (workload.state === state ? 1 : 0), 0);
