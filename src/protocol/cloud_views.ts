// The messages of `cloudviews`, with which the owners keep the front's copies of the cloud's rows.
import type { ClusterRow, WorkloadRow } from './cloud.ts';
import type { CloudEventRecord } from './cloud_events.ts';
import type { StoredGrant } from './grants.ts';
import type { StoredToken } from './principals.ts';
import type { TetherRow } from './tethers.ts';

/** Where the Berth listens that has the clusters of a shared database. */
export interface HolderAddress {
  host: string;
  port: number;
  /** null: it has no relay. */
  relayPort: number | null;
}

/** Why the cloud part is unavailable, as an error of its API. */
export type CloudUnavailability = 'key_unusable' | 'standing_by' | 'database_unusable';

/** The front's copies of the cloud's rows, from which it answers all reads. */
export interface CloudViewsProtocol {
  /** The cloud part is unavailable: every request under /k8s gets this error. */
  unavailable(message: {
    code: CloudUnavailability;
    reason: string;
    hint: string;
    /** Who answers in its place; null: nobody. */
    holder: HolderAddress | null;
  }): null;
  /** It is there, and all rows were told. */
  available(message: Record<string, never>): null;
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
  /** All tokens and grants that there are. */
  principals(message: { tokens: StoredToken[]; grants: StoredGrant[] }): null;
  /** Events as they happen, once the front has subscribed to `cloudevents`. */
  events(message: { events: CloudEventRecord[] }): null;
}
