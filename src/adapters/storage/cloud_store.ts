// The store of the cloud part: the actors' only interface to a database. The promises of each member are
// tested for every implementation in test/adapters/storage/cloud_store.test.ts.
import type { StoredWorkload, WorkloadRow } from '../../protocol/cloud.ts';
import type { CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import type { StoredOperation } from '../../protocol/cloud_operations.ts';
import type { WatchPosition, WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { StoredCluster } from '../../protocol/clusters.ts';
import type { StoredGrant } from '../../protocol/grants.ts';
import type { StoredPolicy } from '../../protocol/policies.ts';
import type { StoredToken } from '../../protocol/principals.ts';
import type { StoredSavings } from '../../protocol/savings.ts';
import type { StoredTether } from '../../protocol/tethers.ts';
import type { VaultCanary } from './vault.ts';

/** Changes of workloads to be committed together. An id occurs once in each list. */
export interface CloudBatch {
  /** null removes a record. */
  readonly records: readonly { readonly id: string; readonly record: StoredWorkload | null }[];
  /** What clients are shown of workloads once this is committed; null: nothing any more. */
  readonly views: readonly WorkloadView[];
  /** A position belongs in the batch after which the records include everything up to it. */
  readonly positions: readonly WatchPosition[];
  /** Scopes whose records no longer correspond to any single version. */
  readonly lostPositions: readonly (WorkloadScope & { readonly clusterId: string })[];
  readonly events: readonly CommittedCloudEvent[];
  /** Totals, each replacing the one for its cluster, namespace and month. */
  readonly savings: readonly StoredSavings[];
}

/** A new view of a workload; or only its new `staleSince`, which many get at once. */
export type WorkloadView =
  | { readonly id: string; readonly view: WorkloadRow | null }
  | { readonly id: string; readonly staleSince: number | null };

/** Facts found out about a cluster, as opposed to settings. */
export type StoredFacts = Partial<
  Pick<StoredCluster, 'lastSyncAt' | 'version' | 'capabilities' | 'scope' | 'credentialEndsAt' | 'server'>
>;

/** What was committed, in the order of the commits. */
export interface CloudCommit {
  readonly views: readonly WorkloadView[];
  readonly events: readonly CommittedCloudEvent[];
}

/** A change is on disk completely when its promise resolves. Changes fail storage_full. */
export interface CloudStore {
  readonly canary: VaultCanary;
  clusters(): Promise<StoredCluster[]>;
  /** null: not registered. */
  cluster(id: string): Promise<StoredCluster | null>;
  /**
   * Resolves with false, and writes nothing, when another cluster has the name, or both are the pod's own
   * cluster.
   */
  addCluster(row: StoredCluster): Promise<boolean>;
  /**
   * Replaces the record of a registered cluster. A cluster removed meanwhile stays removed. Resolves with
   * false, and writes nothing, when another cluster has the name.
   */
  saveCluster(row: StoredCluster): Promise<boolean>;
  /** Replaces only the fields in `facts` of a registered cluster. */
  saveFacts(id: string, facts: StoredFacts): Promise<void>;
  /** Removes the cluster with the records and savings of its workloads and the positions of its watches. */
  removeCluster(id: string): Promise<void>;
  /** The records of a cluster's workloads, in parts, between which the thread does other work. */
  workloads(clusterId: string): AsyncIterable<readonly StoredWorkload[]>;
  /** Where to resume the watches of a cluster. Must be read after its `workloads`. */
  positions(clusterId: string): Promise<WatchPosition[]>;
  /** The savings of a cluster's workloads. */
  savings(clusterId: string): Promise<StoredSavings[]>;
  /** Commits a batch. One without records, positions, events and savings does not access the disk. */
  save(batch: CloudBatch): Promise<void>;
  /**
   * Calls `onCommit` with the views and events committed from now on, before their change resolves. This is
   * the only way clients' views learn of workloads. Returns a function that unsubscribes.
   */
  follow(onCommit: (commit: CloudCommit) => void): () => void;
  /** The committed events that `eventsTold` has not reported as journaled. */
  untoldEvents(): Promise<CommittedCloudEvent[]>;
  eventsTold(keys: readonly string[]): Promise<void>;
  tethers(): Promise<StoredTether[]>;
  saveTether(row: StoredTether): Promise<void>;
  removeTether(id: string): Promise<void>;
  /** Oldest first. */
  operations(): Promise<StoredOperation[]>;
  /** Writes one operation, and removes those with the ids `removed`. */
  saveOperation(row: StoredOperation, removed: readonly string[]): Promise<void>;
  policies(): Promise<StoredPolicy[]>;
  savePolicy(row: StoredPolicy): Promise<void>;
  removePolicy(name: string): Promise<void>;
  tokens(): Promise<StoredToken[]>;
  /**
   * Its owner must make sure that no two tokens share a name. `events` report the change, and are committed
   * with it.
   */
  saveToken(row: StoredToken, events: readonly CommittedCloudEvent[]): Promise<void>;
  /** Removes a token, and with it the grants to `subject`. */
  removeToken(id: string, subject: string, events: readonly CommittedCloudEvent[]): Promise<void>;
  /** Oldest first. */
  grants(): Promise<StoredGrant[]>;
  saveGrant(row: StoredGrant, events: readonly CommittedCloudEvent[]): Promise<void>;
  removeGrant(id: string, events: readonly CommittedCloudEvent[]): Promise<void>;
}
