// The records of the registered clusters: in memory, in the store, and as shown to clients. Nothing in a
// record is shown before it is on disk; whether a cluster answers is not stored, and is shown at once.

import { isDeepStrictEqual } from 'node:util';
import type { CloudStore, StoredFacts } from '../../adapters/storage/cloud_store.ts';
import type { ClusterFacts, ClusterInput, ClusterRow, StoredCluster } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import { type Context, tolerateFailure } from '../../runtime/actor.ts';
import type { ClusterHealth } from './cluster_health.ts';

/** The stored part of the facts. */
const storedFacts = ({
  version,
  capabilities,
  lastSyncAt,
  scope,
  credentialEndsAt,
  server,
}: ClusterFacts): StoredFacts => ({
  ...(version !== undefined && { version }),
  ...(capabilities && { capabilities }),
  ...(lastSyncAt !== undefined && { lastSyncAt }),
  ...(scope && { scope }),
  ...(credentialEndsAt !== undefined && { credentialEndsAt }),
  ...(server !== undefined && { server }),
});

const nameInUse = ({ name, inCluster }: Pick<ClusterInput, 'name' | 'inCluster'>) =>
  fail(
    'name_in_use',
    `there is a cluster with the name ${name} already${inCluster ? ', or the own one of this pod' : ''}`,
  );

export class ClusterRecords {
  private readonly context: Context;
  private readonly store: CloudStore;
  private readonly health: ClusterHealth;
  private readonly rows: Map<string, StoredCluster>;
  /** As they are on disk. */
  private readonly committed: Map<string, StoredCluster>;
  /** Names reserved by registrations and renamings under way. */
  private readonly reserved = new Set<string>();
  /** Settles when the latest facts are on disk. */
  private factsSaved: Promise<void> = Promise.resolve();

  /** Publishes `rows`, those in the store; the views drop all others. */
  constructor(context: Context, store: CloudStore, health: ClusterHealth, rows: readonly StoredCluster[]) {
    this.context = context;
    this.store = store;
    this.health = health;
    this.rows = new Map(rows.map((row) => [row.id, row]));
    this.committed = new Map(this.rows);
    context.ref('cloudviews').tell('clusters', { rows: rows.map((row) => this.shownRow(row)), all: true });
    this.tellNames(rows);
  }

  all(): IterableIterator<StoredCluster> {
    return this.rows.values();
  }

  /** undefined: it is not registered. */
  find(id: string): StoredCluster | undefined {
    return this.rows.get(id);
  }

  /** Throws unknown_cluster. */
  get(id: string): StoredCluster {
    const row = this.rows.get(id);
    if (!row) throw fail('unknown_cluster', `there is no cluster ${id}`);
    return row;
  }

  /** Runs `work` while no other cluster can get the name. Fails name_in_use. */
  async withName<R>(input: Pick<ClusterInput, 'name' | 'inCluster'>, work: () => Promise<R>): Promise<R> {
    const isTaken = [...this.rows.values()].some(
      (row) => row.name === input.name || (row.inCluster && input.inCluster),
    );
    if (isTaken || this.reserved.has(input.name)) throw nameInUse(input);
    this.reserved.add(input.name);
    try {
      return await work();
    } finally {
      this.reserved.delete(input.name);
    }
  }

  /** Fails name_in_use, storage_full. */
  async add(row: StoredCluster): Promise<void> {
    if (!(await this.store.addCluster(row))) throw nameInUse(row);
    this.rows.set(row.id, row);
    this.onCommitted(row);
  }

  /** Stores a changed record. On failure nothing is changed. Fails name_in_use, storage_full. */
  async save(row: StoredCluster): Promise<void> {
    if (!(await this.store.saveCluster(row))) throw nameInUse({ ...row, inCluster: false });
    this.rows.set(row.id, row);
    this.onCommitted(row);
  }

  /** Records what was found out about a cluster. Not awaited, because the next sync finds it again. */
  noteFacts(id: string, facts: ClusterFacts): void {
    const row = this.rows.get(id);
    if (!row) return;
    this.health.note(row, facts);
    this.publish(id);
    const found = storedFacts(facts);
    const next = { ...row, ...found };
    if (isDeepStrictEqual(next, row)) return;
    // Later facts are merged into these.
    this.rows.set(id, next);
    // All other changes made meanwhile have already been committed.
    const saved = this.store
      .saveFacts(id, found)
      .then(() => this.onCommitted({ ...(this.committed.get(id) ?? next), ...found }));
    this.factsSaved = tolerateFailure(saved, () => undefined);
    this.factsSaved.catch((error: unknown) => this.context.crash(error));
  }

  /** Resolves when the facts so far are on disk, or could not be stored. */
  whenFactsSaved(): Promise<void> {
    return this.factsSaved;
  }

  /** Fails storage_full, and the cluster then stays registered. */
  async remove(id: string): Promise<void> {
    await this.store.removeCluster(id);
    this.rows.delete(id);
    this.committed.delete(id);
    this.context.ref('cloudviews').tell('clusterRemoved', { id });
  }

  /** Publishes the stored record with the current health. */
  publish(id: string): void {
    const row = this.committed.get(id);
    if (!row) return;
    this.tellNames([row]);
    this.context.ref('cloudviews').tell('clusters', { rows: [this.shownRow(row)], all: false });
  }

  private onCommitted(row: StoredCluster): void {
    // It may have been removed meanwhile.
    if (!this.rows.has(row.id)) return;
    this.committed.set(row.id, row);
    this.publish(row.id);
  }

  private tellNames(rows: readonly StoredCluster[]): void {
    const names = Object.fromEntries(rows.map(({ id, name }) => [id, name]));
    this.context.ref('cloudevents').tell('named', { names });
  }

  /** What the front may know about a cluster: everything but its secret. */
  private shownRow({ access: _secret, ...row }: StoredCluster): ClusterRow {
    return { ...row, ...this.health.get(row.id) };
  }
}
