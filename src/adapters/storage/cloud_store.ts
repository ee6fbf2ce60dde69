// The store of the cloud part. Everything it needs of a database is in `CloudStore`, and no more than a few SQL statements
// can do, so that Postgres can stand behind it when several processes share the work.
import type { StoredCluster, StoredWorkload } from '../../protocol/cloud.ts';
import type { StoredTether } from '../../protocol/tethers.ts';
import type { Store } from './store.ts';
import type { VaultCanary } from './vault.ts';

/** Every change is on disk when its promise resolves, whole or not at all; it fails storage_full. */
export interface CloudStore {
  readonly canary: VaultCanary;
  clusters(): Promise<StoredCluster[]>;
  /** False, and nothing is written: another cluster has the name, or is the pod's own as well. */
  addCluster(row: StoredCluster): Promise<boolean>;
  /** Replaces the record of a cluster that is there; one that was removed meanwhile stays removed. */
  saveCluster(row: StoredCluster): Promise<void>;
  /** The cluster with its workloads' records. */
  removeCluster(id: string): Promise<void>;
  workloads(): Promise<StoredWorkload[]>;
  /** Writes rows and removes others. */
  saveWorkloads(saved: readonly StoredWorkload[], removed: readonly string[]): Promise<void>;
  tethers(): Promise<StoredTether[]>;
  saveTether(row: StoredTether): Promise<void>;
  removeTether(id: string): Promise<void>;
}

/** In the embedded store of this daemon. */
export function embeddedCloudStore(store: Store): CloudStore {
  const clusters = store.table('clusters');
  const workloads = store.table('workloads');
  const tethers = store.table('tethers');
  const vault = store.table('vault');
  const clusterRows = (): StoredCluster[] => clusters.all().map(([, row]) => row);
  // An addition is visible to the next one only when it is on disk: one at a time.
  let adding: Promise<unknown> = Promise.resolve();

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
      const added = adding.then(() => add(row));
      adding = added.catch(() => undefined);
      return added;
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
      // Asked for in one turn, so they are one commit.
      await Promise.all([
        ...saved.map((row) => workloads.put(row.id, row)),
        ...removed.map((id) => workloads.remove(id)),
      ]);
    },
    tethers: async () => tethers.all().map(([, row]) => row),
    saveTether: (row) => tethers.put(row.id, row),
    removeTether: (id) => tethers.remove(id),
  };
}
