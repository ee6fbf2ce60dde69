// The records of the registered clusters: in memory, in the store, and as clients are shown them. Nothing of
// a record is shown before it is on disk; whether a cluster answers is not stored, and is shown at once.

import { isDeepStrictEqual } from 'node:util';
import type { CloudStore, StoredFacts } from '../../adapters/storage/cloud_store.ts';
import type { ClusterFacts, ClusterInput, ClusterRow, StoredCluster } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import { type Context, tolerateFailure } from '../../runtime/actor.ts';
import type { ClusterHealth } from './cluster_health.ts';

/** What is kept of the facts. */
const storedFacts = ({
  version,
  capabilities,
  lastSyncAt,
  scope,
  credentialEndsAt,
}: ClusterFacts): StoredFacts => ({
  ...(version !== undefined && { version }),
  ...(capabilities && { capabilities }),
  ...(lastSyncAt !== undefined && { lastSyncAt }),
  ...(scope && { scope }),
  ...(credentialEndsAt !== undefined && { credentialEndsAt }),
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
  /** Names of registrations and renamings under way. */
  private readonly reserved = new Set<string>();
  /** Settles when the latest facts of a cluster are on disk. */
  private factsSaved: Promise<void> = Promise.resolve();

  /** Shows `rows`, which are those of the store; the views forget all others. */
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

  /** Runs `work`, during which no other cluster gets the name. Fails name_in_use. */
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

  /** Stores a changed record. Fails name_in_use, storage_full; nothing is changed then. */
  async save(row: StoredCluster): Promise<void> {
    if (!(await this.store.saveCluster(row))) throw nameInUse({ ...row, inCluster: false });
    this.rows.set(row.id, row);
    this.onCommitted(row);
  }

  /** Takes what was found out of a cluster. Nobody waits for the disk: the next sync finds it again. */
  noteFacts(id: string, facts: ClusterFacts): void {
    const row = this.rows.get(id);
    if (!row) return;
    this.health.note(row, facts);
    this.publish(id);
    const found = storedFacts(facts);
    const next = { ...row, ...found };
    if (isDeepStrictEqual(next, row)) return;
    // Facts that follow are added to these.
    this.rows.set(id, next);
    // What else has changed meanwhile was committed before.
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

  /** Fails storage_full; the cluster is then still registered. */
  async remove(id: string): Promise<void> {
    await this.store.removeCluster(id);
    this.rows.delete(id);
    this.committed.delete(id);
    this.context.ref('cloudviews').tell('clusterRemoved', { id });
  }

  /** Shows what is on disk, with the present health. */
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

  /** What the front may know of a cluster: everything but its secret. */
  private shownRow({ access: _secret, ...row }: StoredCluster): ClusterRow {
    return { ...row, ...this.health.get(row.id) };
  }
}
