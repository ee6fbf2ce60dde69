// The store of the cloud part: the actors' whole interface to a database. What each member promises is tested
// for every implementation in test/adapters/storage/cloud_store.test.ts.
import type { StoredCluster, StoredWorkload, WorkloadRow } from '../../protocol/cloud.ts';
import type { CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import type { StoredOperation } from '../../protocol/cloud_operations.ts';
import type { WatchPosition, WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { StoredGrant } from '../../protocol/grants.ts';
import type { StoredPolicy } from '../../protocol/policies.ts';
import type { StoredToken } from '../../protocol/principals.ts';
import type { StoredSavings } from '../../protocol/savings.ts';
import type { StoredTether } from '../../protocol/tethers.ts';
import type { VaultCanary } from './vault.ts';

/** What is known of workloads, to be committed as one. An id occurs once in each list. */
export interface CloudBatch {
  /** null removes a record. */
  readonly records: readonly { readonly id: string; readonly record: StoredWorkload | null }[];
  /** What clients are shown of workloads once this is committed; null: no longer anything. */
  readonly views: readonly WorkloadView[];
  /** A position belongs into the batch after which the records have everything up to it. */
  readonly positions: readonly WatchPosition[];
  /** Scopes whose records are of no single version any more. */
  readonly lostPositions: readonly (WorkloadScope & { readonly clusterId: string })[];
  readonly events: readonly CommittedCloudEvent[];
  /** Sums, each in place of the one of its cluster, namespace and month. */
  readonly savings: readonly StoredSavings[];
}

export interface WorkloadView {
  readonly id: string;
  readonly view: WorkloadRow | null;
}

/** What is found out of a cluster, of which nobody decides. */
export type StoredFacts = Partial<
  Pick<StoredCluster, 'lastSyncAt' | 'version' | 'capabilities' | 'scope' | 'credentialEndsAt'>
>;

/** What has been committed, in the order of the commits. */
export interface CloudCommit {
  readonly views: readonly WorkloadView[];
  readonly events: readonly CommittedCloudEvent[];
}

/** A change is on disk, as a whole, when its promise resolves. Changes fail storage_full. */
export interface CloudStore {
  readonly canary: VaultCanary;
  clusters(): Promise<StoredCluster[]>;
  /** null: it is not registered. */
  cluster(id: string): Promise<StoredCluster | null>;
  /**
   * Resolves with false, and writes nothing, when another cluster has the name, or when both are the pod's
   * own cluster.
   */
  addCluster(row: StoredCluster): Promise<boolean>;
  /**
   * Replaces the record of a registered cluster. A cluster that was removed meanwhile stays removed. Resolves
   * with false, and writes nothing, when another cluster has the name.
   */
  saveCluster(row: StoredCluster): Promise<boolean>;
  /** Replaces what `facts` has of a registered cluster, and nothing else of it. */
  saveFacts(id: string, facts: StoredFacts): Promise<void>;
  /** Removes the cluster with its workloads' records and savings and the positions of its watches. */
  removeCluster(id: string): Promise<void>;
  /** The records of a cluster's workloads, a part at a time; the thread does other work in between. */
  workloads(clusterId: string): AsyncIterable<readonly StoredWorkload[]>;
  /** Where the watches of a cluster go on; to be read after its `workloads`. */
  positions(clusterId: string): Promise<WatchPosition[]>;
  /** What the workloads of a cluster have saved. */
  savings(clusterId: string): Promise<StoredSavings[]>;
  /** Commits a batch. One without records, positions, events and savings costs no access to the disk. */
  save(batch: CloudBatch): Promise<void>;
  /**
   * Calls `onCommit` with everything that is committed from now on, before its `save` resolves. The views of
   * clients know of workloads by this alone. Returns a function that ends it.
   */
  follow(onCommit: (commit: CloudCommit) => void): () => void;
  /** The events that were committed, and of which `eventsTold` has not said that they are in the journal. */
  untoldEvents(): Promise<CommittedCloudEvent[]>;
  eventsTold(keys: readonly string[]): Promise<void>;
  tethers(): Promise<StoredTether[]>;
  saveTether(row: StoredTether): Promise<void>;
  removeTether(id: string): Promise<void>;
  /** Oldest first. */
  operations(): Promise<StoredOperation[]>;
  /** Writes one, and removes those of the ids `removed`. */
  saveOperation(row: StoredOperation, removed: readonly string[]): Promise<void>;
  policies(): Promise<StoredPolicy[]>;
  savePolicy(row: StoredPolicy): Promise<void>;
  removePolicy(name: string): Promise<void>;
  tokens(): Promise<StoredToken[]>;
  /** Its owner sees to it that no two have a name. */
  saveToken(row: StoredToken): Promise<void>;
  /** Removes a token, and with it the grants to `subject`. */
  removeToken(id: string, subject: string): Promise<void>;
  /** Oldest first. */
  grants(): Promise<StoredGrant[]>;
  saveGrant(row: StoredGrant): Promise<void>;
  removeGrant(id: string): Promise<void>;
}
