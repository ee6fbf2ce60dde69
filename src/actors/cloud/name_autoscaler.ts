// Which HorizontalPodAutoscaler has undone a sleep: the workload itself does not name it.
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { tolerateFailure } from '../../runtime/actor.ts';

interface AutoscalerLookup {
  call<R>(clusterId: string, call: (cluster: KubeCluster) => Promise<R>): Promise<R>;
  update(id: string, change: (row: StoredWorkload) => StoredWorkload): void;
}

/** Adds the HorizontalPodAutoscalers of a workload to the reason of its sleep that was undone. */
export async function nameAutoscaler(
  owner: AutoscalerLookup,
  { id, clusterId, seen, sleepReason }: StoredWorkload,
): Promise<void> {
  const scalers = await tolerateFailure(
    owner.call(clusterId, (cluster) => cluster.autoscalers(seen)),
    () => [],
  );
  if (scalers.length === 0) return;
  const names = scalers.map(({ name }) => name).join(', ');
  const reason = `${sleepReason}; HorizontalPodAutoscaler ${names} scales it`;
  owner.update(id, (row) => (row.sleepReason === sleepReason ? { ...row, sleepReason: reason } : row));
}
