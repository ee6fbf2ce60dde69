// Finds the HorizontalPodAutoscaler that undid a sleep, because the workload itself does not name it.
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { tolerateFailure } from '../../runtime/actor.ts';
import { withAutoscalers } from './managers.ts';

interface AutoscalerLookup {
  call<R>(clusterId: string, call: (cluster: KubeCluster) => Promise<R>): Promise<R>;
  update(id: string, change: (row: StoredWorkload) => StoredWorkload): void;
}

/** Records the autoscalers of a workload whose sleep was undone, and names them in the reason. */
export async function nameAutoscaler(
  owner: AutoscalerLookup,
  { id, clusterId, seen, sleepReason }: StoredWorkload,
): Promise<void> {
  const scalers = await tolerateFailure(
    owner.call(clusterId, (cluster) => cluster.autoscalers(seen)),
    () => [],
  );
  if (scalers.length === 0) return;
  const names = scalers.map(({ name }) => name);
  const reason = `${sleepReason}; HorizontalPodAutoscaler ${names.join(', ')} scales it`;
  owner.update(id, (row) => {
    const known = withAutoscalers(row, scalers);
    return row.sleepReason === sleepReason ? { ...known, sleepReason: reason } : known;
  });
}
