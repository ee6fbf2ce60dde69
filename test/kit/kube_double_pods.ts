// Pods and ReplicaSets of the double, made from the counts in a workload's status unless a test says otherwise.
import type { WorkloadKind } from '../../src/protocol/workload_kinds.ts';
import type { Json } from './kube_double.ts';

const HASH = '6b474f99dc';

const controllerOf = (kind: string, name: string, uid: string): Json => ({
  apiVersion: 'apps/v1',
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
});

/** The ReplicaSet of a Deployment; its controller has seen its latest count. */
export function replicaSetOf(deployment: Json): Json {
  const { name, namespace, uid, resourceVersion } = deployment.metadata;
  return {
    metadata: {
      name: `${name}-${HASH}`,
      namespace,
      uid: `rs-${uid}`,
      resourceVersion,
      generation: 1,
      labels: { ...deployment.spec.selector.matchLabels, 'pod-template-hash': HASH },
      ownerReferences: [controllerOf('Deployment', name, uid)],
    },
    spec: { replicas: deployment.spec.replicas },
    status: { observedGeneration: 1, replicas: deployment.status.replicas ?? 0 },
  };
}

/** One pod of a workload; `change` edits it. */
export function podOf(
  kind: WorkloadKind,
  workload: Json,
  index: number,
  isReady: boolean,
  change: (pod: Json) => void = () => undefined,
): Json {
  const { name, namespace, uid, resourceVersion } = workload.metadata;
  const isSet = kind === 'StatefulSet';
  const owner = isSet
    ? controllerOf(kind, name, uid)
    : controllerOf('ReplicaSet', `${name}-${HASH}`, `rs-${uid}`);
  const pod = {
    metadata: {
      name: isSet ? `${name}-${index}` : `${name}-${HASH}-${index}`,
      namespace,
      uid: `pod-${index}-${uid}`,
      resourceVersion,
      labels: { ...workload.spec.selector.matchLabels, ...(isSet ? {} : { 'pod-template-hash': HASH }) },
      ownerReferences: [owner],
    },
    spec: {},
    status: {
      phase: isReady ? 'Running' : 'Pending',
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
    },
  };
  change(pod);
  return pod;
}

/** The pods that the status of a workload counts. */
export function podsOf(kind: WorkloadKind, workload: Json): Json[] {
  const { replicas = 0, readyReplicas = 0 } = workload.status;
  return Array.from({ length: replicas }, (_, index) => podOf(kind, workload, index, index < readyReplicas));
}
