// Whether a workload has a lasting Ready pod, and if not, why.
import type { KubeCluster, Resource } from '../../adapters/kube/kube_cluster.ts';
import { KubeError } from '../../adapters/kube/kube_errors.ts';
import { type PodRow, podsResource } from '../../adapters/kube/pods.ts';
import { arrayOrEmpty, boundedCount } from '../../adapters/kube/untrusted_values.ts';
import { type V1OwnerReference, type V1ReplicaSet, wire } from '../../adapters/kube/wire_types.ts';
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

/** Whether each ReplicaSet of a Deployment has acted on its latest count. */
const replicaSetsResource = ({ namespace, name, selector }: ObservedWorkload): Resource<boolean> => ({
  description: `replicasets.apps in namespace ${namespace}`,
  path: `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/replicasets`,
  query: { labelSelector: selector },
  rowOf: (object) => {
    const { metadata, status } = wire<V1ReplicaSet>(object) ?? {};
    const isOwn = arrayOrEmpty(metadata?.ownerReferences).some((item) => {
      const owner = wire<V1OwnerReference>(item);
      return owner?.controller === true && owner.kind === 'Deployment' && owner.name === name;
    });
    if (!isOwn) return undefined;
    return boundedCount(status?.observedGeneration, 0) >= boundedCount(metadata?.generation, 0);
  },
});

/**
 * Whether no pod is about to be ended because of an earlier count. Pods are ended by the Deployment's
 * ReplicaSets, which may lag behind its status.
 */
async function isSettled(cluster: KubeCluster, seen: ObservedWorkload): Promise<boolean> {
  if (seen.kind !== 'Deployment') return true;
  try {
    return (await cluster.list(replicaSetsResource(seen))).rows.every((isCurrent) => isCurrent);
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
