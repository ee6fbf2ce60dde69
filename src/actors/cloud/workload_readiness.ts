// Whether a workload has a lasting Ready pod, and if not, why.
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { KubeError } from '../../adapters/kube/kube_errors.ts';
import { type PodRow, podsResource } from '../../adapters/kube/pods.ts';
import { replicaSetsResource } from '../../adapters/kube/replica_sets.ts';
import { eventTroubles } from '../../adapters/kube/workload_events.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import { isReady } from './workload_record.ts';

const isDenied = (error: unknown): boolean => error instanceof KubeError && error.status.status === 403;

/** The workload's own pods; null where the account may not list pods. */
async function ownPods(cluster: KubeCluster, seen: ObservedWorkload): Promise<PodRow[] | null> {
  try {
    return (await cluster.list(podsResource(seen))).rows.filter(({ isOwn }) => isOwn);
  } catch (error) {
    if (isDenied(error)) return null;
    throw error;
  }
}

/**
 * Whether no pod is about to be ended because of an earlier count. Pods are ended by the Deployment's
 * ReplicaSets, which may lag behind its status.
 */
async function isSettled(cluster: KubeCluster, seen: ObservedWorkload): Promise<boolean> {
  if (seen.kind !== 'Deployment') return true;
  try {
    return (await cluster.list(replicaSetsResource(seen))).rows.every(({ isCurrent }) => isCurrent);
  } catch (error) {
    if (isDenied(error)) return true;
    throw error;
  }
}

/**
 * Whether a pod is Ready and will stay. The counts in a workload's status include pods that are ending, so
 * they are used only if the account may not list pods. Fails as `KubeCluster.list`.
 */
export async function hasReadyPod(cluster: KubeCluster, seen: ObservedWorkload): Promise<boolean> {
  if (!isReady(seen)) return false;
  if (seen.selector === '') return true;
  if (!(await isSettled(cluster, seen))) return false;
  const pods = await ownPods(cluster, seen);
  return pods === null || pods.some((pod) => pod.isReady);
}

/** Why the pods of a workload are not ready, in one line for people; '' if no trouble is known. */
export async function podTroubles(cluster: KubeCluster, seen: ObservedWorkload): Promise<string> {
  if (seen.selector === '') return '';
  const pods = (await ownPods(cluster, seen)) ?? [];
  const troubles = pods.flatMap(({ trouble }) => (trouble === null ? [] : [trouble]));
  const known = troubles.length > 0 ? troubles : await eventTroubles(cluster, seen, pods);
  return known.slice(0, 3).join('; ');
}
