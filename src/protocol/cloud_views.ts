// The messages of `cloudviews`, with which the owners keep the front's copies of the cloud's rows.
import type { ClusterRow, WorkloadRow } from './cloud.ts';
import type { CloudEventRecord } from './cloud_events.ts';
import type { TetherRow } from './tethers.ts';

/** The front's copies of the cloud's rows, from which it answers all reads. */
export interface CloudViewsProtocol {
  /** The cloud part is unavailable (a wrong key file): every request under /k8s gets this error. */
  unavailable(message: { reason: string; hint: string }): null;
  /** `all`: the rows are complete; any other cluster is dropped. */
  clusters(message: { rows: ClusterRow[]; all: boolean }): null;
  /** Drops the cluster and all its workloads. */
  clusterRemoved(message: { id: string }): null;
  workloads(message: { rows: WorkloadRow[] }): null;
  workloadsRemoved(message: { ids: string[] }): null;
  /** Drops every workload of a cluster that is not listed. Sent at boot. */
  workloadsRetained(message: { clusterId: string; ids: string[] }): null;
  /** `all`: the rows are complete; any other tether is dropped. */
  tethers(message: { rows: TetherRow[]; all: boolean }): null;
  tethersRemoved(message: { ids: string[] }): null;
  /** Events as they happen, once the front has subscribed to `cloudevents`. */
  events(message: { events: CloudEventRecord[] }): null;
}
