// The messages of `cloudviews`, by which the owners of the cloud's rows keep the front's copies up to date.
import type { PackedRows } from '../runtime/msgpack.ts';
import type { WorkloadRow } from './cloud.ts';
import type { CloudEventRecord } from './cloud_events.ts';
import type { ClusterRow } from './clusters.ts';
import type { StoredGrant } from './grants.ts';
import type { StoredToken } from './principals.ts';
import type { TetherRow } from './tethers.ts';

/**
 * The header of a request that another Berth has forwarded; it is not forwarded again. Its value is the
 * signed address of the client: see `clientSignatureText`.
 */
export const PASSED_ON = 'berth-passed-on';
/** The header with a standby's signature of the Host of a request for a proof: see `hostSignatureText`. */
export const HOST_SIGNATURE = 'berth-host-signature';

/** Where the Berth that holds the clusters of a shared database listens. */
export interface HolderAddress {
  host: string;
  port: number;
  /** null: it has no relay. */
  relayPort: number | null;
}

/** Why the cloud part is unavailable, as an error code of its API. */
export type CloudUnavailability = 'key_unusable' | 'standing_by' | 'database_unusable';

/** The front's copies of the cloud's rows, from which it answers all reads. */
export interface CloudViewsProtocol {
  /** The cloud part is unavailable: every request under /k8s gets this error. */
  unavailable(message: {
    code: CloudUnavailability;
    reason: string;
    hint: string;
    /** The Berth that answers instead; null if none. */
    holder: HolderAddress | null;
  }): null;
  /** The cloud part is available, and all rows have been sent. */
  available(message: Record<string, never>): null;
  /** `all`: the rows are complete, so every other cluster is dropped. */
  clusters(message: { rows: ClusterRow[]; all: boolean }): null;
  /** Drops the cluster and all its workloads. */
  clusterRemoved(message: { id: string }): null;
  workloads(message: { rows: PackedRows<WorkloadRow> }): null;
  workloadsRemoved(message: { ids: string[] }): null;
  /** Of these workloads, only `staleSince` has changed. */
  workloadsStale(message: { ids: string[]; staleSince: number | null }): null;
  /** Drops every workload of the cluster that is not listed. Sent at start-up. */
  workloadsRetained(message: { clusterId: string; ids: string[] }): null;
  /** `all`: the rows are complete, so every other tether is dropped. */
  tethers(message: { rows: TetherRow[]; all: boolean }): null;
  tethersRemoved(message: { ids: string[] }): null;
  /** All tokens and grants. */
  principals(message: { tokens: StoredToken[]; grants: StoredGrant[] }): null;
  /** New events, once the front has subscribed to `cloudevents`. */
  events(message: { events: CloudEventRecord[] }): null;
}
