// The ReplicaSets of a Deployment.
import type { SelectedWorkload } from '../../protocol/cluster_calls.ts';
import type { Resource } from './kube_cluster.ts';
import { arrayOrEmpty, boundedCount } from './untrusted_values.ts';
import { type V1OwnerReference, type V1ReplicaSet, wire } from './wire_types.ts';

export interface ReplicaSetRow {
  /** Whether it has acted on its latest count. */
  isCurrent: boolean;
}

/** The ReplicaSets of a Deployment. */
export const replicaSetsResource = (workload: SelectedWorkload): Resource<ReplicaSetRow> => ({
  collection: { of: 'replicasets', workload },
  description: `replicasets.apps in namespace ${workload.namespace}`,
  path: `/apis/apps/v1/namespaces/${encodeURIComponent(workload.namespace)}/replicasets`,
  query: { labelSelector: workload.selector },
  rowOf: (object) => {
    const { metadata, status } = wire<V1ReplicaSet>(object) ?? {};
    const isOwn = arrayOrEmpty(metadata?.ownerReferences).some((item) => {
      const owner = wire<V1OwnerReference>(item);
      return owner?.controller === true && owner.kind === 'Deployment' && owner.name === workload.name;
    });
    if (!isOwn) return undefined;
    return {
      isCurrent: boundedCount(status?.observedGeneration, 0) >= boundedCount(metadata?.generation, 0),
    };
  },
});
