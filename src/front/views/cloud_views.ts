// What the front answers reads of the cloud from: the JSON of every cluster, workload and tether as its owner made it.
// Bodies of lists are joined when first asked for and kept until a part changes.
import type { CloudViewsProtocol, ClusterView, WorkloadView } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { TetherView } from '../../protocol/tethers.ts';
import { actor, type Failure } from '../../runtime/actor.ts';

/** The workloads of one cluster. */
class ClusterWorkloads {
  private readonly rows = new Map<string, WorkloadView>();
  /** In the order of their keys, unless one was added since. */
  private order: WorkloadView[] = [];
  private isOrdered = true;
  private joinedJson: string | null = null;

  get(id: string): WorkloadView | undefined {
    return this.rows.get(id);
  }

  ids(): Iterable<string> {
    return this.rows.keys();
  }

  put(view: WorkloadView): void {
    const known = this.rows.get(view.id);
    this.joinedJson = null;
    if (known) known.json = view.json;
    else {
      this.rows.set(view.id, view);
      this.order.push(view);
      this.isOrdered = false;
    }
  }

  /** Leaves only what `stays`. */
  retain(isKept: (id: string) => boolean): void {
    for (const id of [...this.rows.keys()]) if (!isKept(id)) this.rows.delete(id);
    this.order = this.order.filter(({ id }) => this.rows.has(id));
    this.joinedJson = null;
  }

  /** The items with commas between them. */
  itemsJson(): string {
    // What was ordered before is one run to the sort: it costs little more than a look at each.
    if (!this.isOrdered) this.order.sort((one, other) => (one.key < other.key ? -1 : 1));
    this.isOrdered = true;
    this.joinedJson ??= this.order.map(({ json }) => json).join(',');
    return this.joinedJson;
  }
}

const byId = (one: { id: string }, other: { id: string }): number => (one.id < other.id ? -1 : 1);

/** `[<items>]`; ULIDs order by age. */
const jsonArray = (rows: Iterable<{ id: string; json: string }>): Buffer =>
  Buffer.from(
    `[${[...rows]
      .sort(byId)
      .map(({ json }) => json)
      .join(',')}]`,
  );

export class CloudViews {
  private readonly clusterRows = new Map<string, ClusterView>();
  private readonly tetherRows = new Map<string, TetherView>();
  private readonly workloadsByCluster = new Map<string, ClusterWorkloads>();
  private readonly clusterIdOf = new Map<string, string>();
  private clusterList: Buffer | null = null;
  private tetherList: Buffer | null = null;
  private workloadList: Buffer | null = null;
  /** Why the cloud part cannot be used at all. */
  private unavailable: Failure | null = null;

  markUnavailable(reason: string, hint: string): void {
    this.unavailable = fail('internal', `the cloud part is closed: ${reason}`, { hint });
  }

  /** Throws when the cloud part cannot be used. */
  assertAvailable(): void {
    if (this.unavailable) throw this.unavailable;
  }

  setClusters(rows: readonly ClusterView[], all: boolean): void {
    this.unavailable = null;
    const named = new Set(rows.map(({ id }) => id));
    if (all) for (const id of [...this.clusterRows.keys()]) if (!named.has(id)) this.removeCluster(id);
    for (const row of rows) this.clusterRows.set(row.id, row);
    this.clusterList = null;
  }

  removeCluster(id: string): void {
    for (const workload of this.workloadsByCluster.get(id)?.ids() ?? []) this.clusterIdOf.delete(workload);
    this.workloadsByCluster.delete(id);
    this.clusterRows.delete(id);
    this.clusterList = null;
    this.workloadList = null;
  }

  setWorkloads(rows: readonly WorkloadView[]): void {
    for (const row of rows) {
      const shelf = this.workloadsByCluster.get(row.clusterId) ?? new ClusterWorkloads();
      this.workloadsByCluster.set(row.clusterId, shelf);
      this.clusterIdOf.set(row.id, row.clusterId);
      shelf.put(row);
    }
    this.workloadList = null;
  }

  removeWorkloads(ids: readonly string[]): void {
    const gone = new Set(ids);
    const touched = new Set(ids.map((id) => this.clusterIdOf.get(id) ?? ''));
    for (const cluster of touched) this.workloadsByCluster.get(cluster)?.retain((id) => !gone.has(id));
    for (const id of ids) this.clusterIdOf.delete(id);
    this.workloadList = null;
  }

  retainWorkloads(ids: readonly string[]): void {
    const kept = new Set(ids);
    this.removeWorkloads([...this.clusterIdOf.keys()].filter((id) => !kept.has(id)));
  }

  setTethers(rows: readonly TetherView[], all: boolean): void {
    if (all) this.tetherRows.clear();
    for (const row of rows) this.tetherRows.set(row.id, row);
    this.tetherList = null;
  }

  removeTethers(ids: readonly string[]): void {
    for (const id of ids) this.tetherRows.delete(id);
    this.tetherList = null;
  }

  clusters(): Buffer {
    this.clusterList ??= jsonArray(this.clusterRows.values());
    return this.clusterList;
  }

  /** null: there is none of that id. */
  cluster(id: string): string | null {
    return this.clusterRows.get(id)?.detail ?? null;
  }

  /** Those of all clusters, oldest cluster first, or of one. */
  workloads(clusterId: string | null): Buffer {
    if (clusterId !== null)
      return Buffer.from(`[${this.workloadsByCluster.get(clusterId)?.itemsJson() ?? ''}]`);
    if (this.workloadList === null) {
      const bodies = [...this.workloadsByCluster.keys()]
        .sort()
        .map((id) => this.workloadsByCluster.get(id)?.itemsJson() ?? '');
      this.workloadList = Buffer.from(`[${bodies.filter((body) => body !== '').join(',')}]`);
    }
    return this.workloadList;
  }

  /** The JSON of one workload; null: there is none of that id. */
  workload(id: string): string | null {
    return this.workloadsByCluster.get(this.clusterIdOf.get(id) ?? '')?.get(id)?.json ?? null;
  }

  tethers(): Buffer {
    this.tetherList ??= jsonArray(this.tetherRows.values());
    return this.tetherList;
  }
}

/** A letter dropped here would be a change that nobody ever sees, and handling one takes no time. */
const LIMITS = { mailbox: 1_000_000 };

// State: none of its own; it hands on what owners tell. Rebuilt from: what the cloud's actors tell at their start.
/** At `cloudviews`, on the thread of the front. */
export const cloudViewsActor = actor<CloudViewsProtocol, CloudViews>(
  'cloudviews',
  (_context, views) => {
    const done = (_told: unknown): null => null;
    return {
      unavailable: ({ reason, hint }) => done(views.markUnavailable(reason, hint)),
      clusters: ({ rows, all }) => done(views.setClusters(rows, all)),
      clusterRemoved: ({ id }) => done(views.removeCluster(id)),
      workloads: ({ rows }) => done(views.setWorkloads(rows)),
      workloadsRemoved: ({ ids }) => done(views.removeWorkloads(ids)),
      workloadsRetained: ({ ids }) => done(views.retainWorkloads(ids)),
      tethers: ({ rows, all }) => done(views.setTethers(rows, all)),
      tethersRemoved: ({ ids }) => done(views.removeTethers(ids)),
    };
  },
  LIMITS,
);
