// A workload as seen in its cluster, with one replica, for tests without a cluster.
import type { ObservedWorkload } from '../../src/protocol/cloud.ts';
import type { WorkloadKind } from '../../src/protocol/workload_kinds.ts';

export const observedWorkload = (kind: WorkloadKind, name: string): ObservedWorkload => ({
  ...{ kind, name, namespace: 'web', uid: `uid-${name}`, version: '1', replicas: 1, pods: 1, ready: 1 },
  ...{ observed: true, labels: '', selector: `app=${name}`, scaledBy: null, keeper: null, generation: 1 },
  ...{
    createdAt: null,
    replicaSet: null,
    requests: { cpu: 0, memory: 0 },
    receipt: null,
    wakeReceipt: null,
    activity: null,
    sleep: null,
  },
});
