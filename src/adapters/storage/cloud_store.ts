// The store of the cloud part. `CloudStore` is the actors' whole interface to a database, no more than a few
// SQL statements can do. One process writes: each actor reads every table once, at its start, and never sees
// the changes of another.
import type { StoredCluster, StoredWorkload } from '../../protocol/cloud.ts';
import type { StoredOperation } from '../../protocol/cloud_operations.ts';
import type { StoredPolicy } from '../../protocol/policies.ts';
import type { StoredTether } from '../../protocol/tethers.ts';
import type { Store } from './store_tables.ts';
import type { VaultCanary } from './vault.ts';

/** A change is on disk, as a whole, when its promise resolves. Changes fail storage_full. */
export interface CloudStore {
  readonly canary: VaultCanary;
  clusters(): Promise<StoredCluster[]>;
  /**
   * Resolves with false, and writes nothing, when another cluster has the name, or when both are the pod's
   * own cluster.
   */
  addCluster(row: StoredCluster): Promise<boolean>;
  /** Replaces the record of a registered cluster. A cluster that was removed meanwhile stays removed. */
  saveCluster(row: StoredCluster): Promise<void>;
  /** Removes the cluster and the records of its workloads. */
  removeCluster(id: string): Promise<void>;
  workloads(): Promise<StoredWorkload[]>;
  /** Writes the records `saved` and removes those of the ids `removed`. */
  saveWorkloads(saved: readonly StoredWorkload[], removed: readonly string[]): Promise<void>;
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
}

/** The caller handles the error; the next addition proceeds all the same. */
const ignore = (): void => {};

/** The cloud's tables in the embedded store of this daemon. */
export function embeddedCloudStore(store: Store): CloudStore {
  const clusters = store.table('clusters');
  const workloads = store.table('workloads');
  const tethers = store.table('tethers');
  const operations = store.table('operations');
  const policies = store.table('policies');
  const vault = store.table('vault');
  const clusterRows = (): StoredCluster[] => clusters.all().map(([, row]) => row);
  // An addition sees an earlier one only once that is on disk, so additions run one at a time.
  let lastAddition: Promise<unknown> = Promise.resolve();

  async function add(row: StoredCluster): Promise<boolean> {
    const isTaken = clusterRows().some(
      (other) => other.name === row.name || (other.inCluster && row.inCluster),
    );
    if (!isTaken) await clusters.put(row.id, row);
    return !isTaken;
  }

  return {
    canary: {
      read: async () => vault.get('canary') ?? null,
      write: (sealed) => vault.put('canary', sealed),
    },
    clusters: async () => clusterRows(),
    addCluster(row) {
      const addition = lastAddition.then(() => add(row));
      lastAddition = addition.catch(ignore);
      return addition;
    },
    async saveCluster(row) {
      if (clusters.get(row.id)) await clusters.put(row.id, row);
    },
    async removeCluster(id) {
      const rows = workloads.all().filter(([, row]) => row.clusterId === id);
      await Promise.all([clusters.remove(id), ...rows.map(([key]) => workloads.remove(key))]);
    },
    workloads: async () => workloads.all().map(([, row]) => row),
    async saveWorkloads(saved, removed) {
      // Requested in one turn, so they form one commit.
      await Promise.all([
        ...saved.map((row) => workloads.put(row.id, row)),
        ...removed.map((id) => workloads.remove(id)),
      ]);
    },
    tethers: async () => tethers.all().map(([, row]) => row),
    saveTether: (row) => tethers.put(row.id, row),
    removeTether: (id) => tethers.remove(id),
    operations: async () => operations.all().map(([, row]) => row),
    async saveOperation(row, removed) {
      // Requested in one turn, so they form one commit.
      await Promise.all([operations.put(row.id, row), ...removed.map((id) => operations.remove(id))]);
    },
    policies: async () => policies.all().map(([, row]) => row),
    savePolicy: (row) => policies.put(row.name, row),
    removePolicy: (name) => policies.remove(name),
  };
}
