// The source of the front's answers to reads of the cloud part. The JSON of a row is composed when the row
// arrives. Owners send few rows at a time, so no read has to compose a long list, and the text takes less
// memory than the row.

import { type AutoSleepReply, autoSleepSettings, type WorkloadRow } from '../../protocol/cloud.ts';
import { type CloudEventRecord, type CloudSubject, NO_SUBJECT } from '../../protocol/cloud_events.ts';
import type { CloudUnavailability, HolderAddress } from '../../protocol/cloud_views.ts';
import type { ClusterRow } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import type { PlacedWorkload, Principal } from '../../protocol/grants.ts';
import { type LabelText, labelsIn } from '../../protocol/labels.ts';
import type { TetherRow } from '../../protocol/tethers.ts';
import { WORKLOAD_KINDS, type WorkloadState } from '../../protocol/workload_kinds.ts';
import type { Failure } from '../../runtime/actor.ts';
import { WorkloadTimes } from '../metrics/workload_times.ts';
import {
  clusterDetail,
  clusterItem,
  tetherItem,
  withoutOrderFaults,
  withStaleSince,
  workloadItem,
} from './cloud_json.ts';
import { JsonCollection, type JsonEntry } from './json_collection.ts';
import { Principals } from './principals.ts';

interface ClusterEntry extends JsonEntry {
  name: string;
  /** The JSON of the resource read on its own. */
  detail: string;
}

interface TetherEntry extends JsonEntry {
  workloadId: string;
}

export interface WorkloadEntry extends JsonEntry {
  clusterId: string;
  namespace: string;
  state: WorkloadState;
  labels: LabelText;
  autoSleep: boolean;
  idleMinutes: number;
  /** Whether its wake order has faults. */
  hasOrderFaults: boolean;
}

/** The JSON of a workload for `viewer`; null: a viewer of everything. */
export function workloadJson(entry: WorkloadEntry, viewer: Principal | null): string {
  const { json, clusterId, namespace, hasOrderFaults } = entry;
  const seesAll = !hasOrderFaults || !viewer || viewer.mayInNamespace('viewer', clusterId, namespace);
  return seesAll ? json : withoutOrderFaults(json);
}

const jsonArray = (itemsJson: string): Buffer => Buffer.from(`[${itemsJson}]`);

/** The list of those entries that are shown. */
function listWhere<E extends JsonEntry>(all: JsonCollection<E>, isShown: (entry: E) => boolean): Buffer {
  const shown = all.inOrder().filter(isShown);
  return jsonArray(shown.map(({ json }) => json).join(','));
}

function workloadEntry(row: WorkloadRow): WorkloadEntry {
  const { id, clusterId, namespace, name, kind, state, labels, autoSleep, idleMinutes } = row;
  const json = JSON.stringify(workloadItem(row));
  const key = `${namespace}/${name}/${kind}`;
  const hasOrderFaults = (row.after?.faults.length ?? 0) > 0;
  return { id, key, json, clusterId, namespace, state, labels, autoSleep, idleMinutes, hasOrderFaults };
}

/** The latest clusters, workloads and tethers from their owners, as JSON. */
export class CloudViews {
  readonly times = new WorkloadTimes();
  readonly principals = new Principals();
  /** Receives every event as it happens; set by the front. */
  onEvents: (events: readonly CloudEventRecord[]) => void = () => undefined;
  /** Called when another Berth takes over or gives up the clusters; set by the front. */
  onHolder: () => void = () => undefined;
  /** Called when this Berth no longer has the clusters; set by the front. */
  onUnavailable: () => void = () => undefined;
  /** ULIDs sort by age. */
  private readonly clusterEntries = new JsonCollection<ClusterEntry>();
  private readonly tetherEntries = new JsonCollection<TetherEntry>();
  private readonly workloadsByCluster = new Map<string, JsonCollection<WorkloadEntry>>();
  /** The collection that holds a workload, by the workload's id. */
  private readonly collectionOf = new Map<string, JsonCollection<WorkloadEntry>>();
  /** Lists of all clusters, tethers and workloads; null: outdated. */
  private clusterList: Buffer | null = null;
  private tetherList: Buffer | null = null;
  private workloadList: Buffer | null = null;
  /** Why the cloud part is unavailable. */
  private unavailable: Failure | null = null;
  /** The Berth that holds the clusters meanwhile. */
  private otherHolder: HolderAddress | null = null;

  markUnavailable(
    code: CloudUnavailability,
    reason: string,
    hint: string,
    holder: HolderAddress | null,
  ): void {
    const wasAvailable = this.unavailable === null;
    this.unavailable = fail(code, reason, { hint });
    this.setHolder(holder);
    if (wasAvailable) this.onUnavailable();
  }

  markAvailable(): void {
    this.unavailable = null;
    this.setHolder(null);
  }

  private setHolder(holder: HolderAddress | null): void {
    const isSame = JSON.stringify(holder) === JSON.stringify(this.otherHolder);
    this.otherHolder = holder;
    if (!isSame) this.onHolder();
  }

  /** Where the Berth that holds the clusters listens; null: it is this one, or none does. */
  holder(): HolderAddress | null {
    return this.otherHolder;
  }

  /** Why the cloud part is unavailable; null: it is available. */
  unavailableReason(): string | null {
    return this.unavailable?.message ?? null;
  }

  /** Throws key_unusable, standing_by or database_unusable while the cloud part is unavailable. */
  assertAvailable(): void {
    if (this.unavailable) throw this.unavailable;
  }

  /** Takes new or changed clusters. `all`: the rows are complete. */
  setClusters(rows: readonly ClusterRow[], all: boolean): void {
    const told = new Set(rows.map(({ id }) => id));
    if (all) for (const id of this.clusterEntries.ids()) if (!told.has(id)) this.removeCluster(id);
    for (const row of rows) {
      const json = JSON.stringify(clusterItem(row));
      const { id, name } = row;
      this.clusterEntries.put({ id, key: id, name, json, detail: JSON.stringify(clusterDetail(row)) });
    }
    this.clusterList = null;
  }

  /** Drops a cluster with its workloads. */
  removeCluster(id: string): void {
    for (const workload of this.workloadsByCluster.get(id)?.ids() ?? []) {
      this.collectionOf.delete(workload);
      this.times.forget(workload);
    }
    this.times.forgetCluster(id);
    this.workloadsByCluster.delete(id);
    this.clusterEntries.remove(id);
    this.clusterList = null;
    this.workloadList = null;
  }

  /** Takes new or changed workloads. */
  setWorkloads(rows: readonly WorkloadRow[]): void {
    for (const row of rows) {
      let collection = this.workloadsByCluster.get(row.clusterId);
      if (!collection) {
        collection = new JsonCollection();
        this.workloadsByCluster.set(row.clusterId, collection);
      }
      collection.put(workloadEntry(row));
      this.times.observe(row, performance.now());
      this.collectionOf.set(row.id, collection);
    }
    this.workloadList = null;
  }

  removeWorkloads(ids: readonly string[]): void {
    for (const id of ids) {
      this.times.forget(id);
      this.collectionOf.get(id)?.remove(id);
      this.collectionOf.delete(id);
    }
    this.workloadList = null;
  }

  /** Takes the new `staleSince` of workloads that have not changed otherwise. */
  setStaleSince(ids: readonly string[], staleSince: number | null): void {
    for (const id of ids) {
      const collection = this.collectionOf.get(id);
      const entry = collection?.get(id);
      if (entry) collection?.putJson(entry, withStaleSince(entry.json, staleSince));
    }
    this.workloadList = null;
  }

  /** Drops every workload of a cluster that is not among `ids`. */
  retainWorkloads(clusterId: string, ids: readonly string[]): void {
    const kept = new Set(ids);
    const known = this.workloadsByCluster.get(clusterId)?.ids() ?? [];
    this.removeWorkloads([...known].filter((id) => !kept.has(id)));
  }

  /** Takes new or changed tethers. `all`: the rows are complete. */
  setTethers(rows: readonly TetherRow[], all: boolean): void {
    if (all) this.tetherEntries.retain(() => false);
    for (const row of rows) {
      const { id, workloadId } = row;
      this.tetherEntries.put({ id, key: id, workloadId, json: JSON.stringify(tetherItem(row)) });
    }
    this.tetherList = null;
  }

  removeTethers(ids: readonly string[]): void {
    for (const id of ids) this.tetherEntries.remove(id);
    this.tetherList = null;
  }

  /** The list of clusters, oldest first. */
  clusters(): Buffer {
    this.clusterList ??= jsonArray(this.clusterEntries.itemsJson());
    return this.clusterList;
  }

  /** Like `clusters`, but only those that `isShown` accepts. */
  clustersWhere(isShown: (id: string) => boolean): Buffer {
    return listWhere(this.clusterEntries, ({ id }) => isShown(id));
  }

  hasCluster(id: string): boolean {
    return this.clusterEntries.get(id) !== undefined;
  }

  /** One cluster; null for an unknown id. */
  cluster(id: string): string | null {
    return this.clusterEntries.get(id)?.detail ?? null;
  }

  /**
   * The list of workloads by namespace, name and kind: of one cluster, or (null) of all, oldest cluster
   * first.
   */
  workloads(clusterId: string | null): Buffer {
    if (clusterId !== null) return jsonArray(this.workloadsByCluster.get(clusterId)?.itemsJson() ?? '');
    this.workloadList ??= jsonArray(
      [...this.workloadsByCluster.keys()]
        .sort()
        .map((id) => this.workloadsByCluster.get(id)?.itemsJson() ?? '')
        .filter((items) => items !== '')
        .join(','),
    );
    return this.workloadList;
  }

  /** The number of workloads: of one cluster, or (null) of all. */
  workloadCount(clusterId: string | null): number {
    return clusterId === null ? this.collectionOf.size : (this.workloadsByCluster.get(clusterId)?.size ?? 0);
  }

  /** The workloads of each cluster, oldest cluster first, by namespace, name and kind. */
  workloadsInOrder(): readonly (readonly [clusterId: string, workloads: readonly WorkloadEntry[]])[] {
    return [...this.workloadsByCluster]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([id, collection]) => [id, collection.inOrder()]);
  }

  /** One workload with its labels, as `workloadJson`; null for an unknown id. */
  workload(id: string, viewer: Principal | null): string | null {
    const entry = this.collectionOf.get(id)?.get(id);
    if (!entry) return null;
    return `${workloadJson(entry, viewer).slice(0, -1)},"labels":${JSON.stringify(labelsIn(entry.labels))}}`;
  }

  /** The auto-sleep settings of a workload; null for an unknown id. */
  autoSleep(id: string): AutoSleepReply | null {
    const entry = this.collectionOf.get(id)?.get(id);
    return entry ? autoSleepSettings(entry) : null;
  }

  /** The subject of an event, as far as known: a cluster, a workload in it, or a tether to that. */
  subject(given: Partial<Pick<CloudSubject, 'clusterId' | 'workloadId' | 'tetherId'>>): CloudSubject {
    const tether = this.tetherEntries.get(given.tetherId ?? '');
    const workloadId = given.workloadId ?? tether?.workloadId ?? '';
    const entry = this.collectionOf.get(workloadId)?.get(workloadId);
    const [namespace = '', workload = '', ending] = entry?.key.split('/') ?? [];
    const kind = WORKLOAD_KINDS.find((one) => one === ending) ?? null;
    const clusterId = entry?.clusterId ?? given.clusterId ?? '';
    const cluster = this.clusterEntries.get(clusterId);
    return {
      ...NO_SUBJECT,
      ...(cluster && { clusterId, cluster: cluster.name }),
      ...(entry && { workloadId, namespace, workload, kind }),
      ...(tether && { tetherId: tether.id }),
    };
  }

  /** Where a workload is; null for an unknown id. */
  placeOf(id: string): PlacedWorkload | null {
    return this.collectionOf.get(id)?.get(id) ?? null;
  }

  /** The id of the workload of a tether; '' for an unknown id. */
  workloadOfTether(id: string): string {
    return this.tetherEntries.get(id)?.workloadId ?? '';
  }

  /** Like `tethers`, but only those whose workload `isShown` accepts. */
  tethersWhere(isShown: (place: PlacedWorkload) => boolean): Buffer {
    return listWhere(this.tetherEntries, ({ workloadId }) => {
      const place = this.placeOf(workloadId);
      return place !== null && isShown(place);
    });
  }

  /** The list of tethers, oldest first. */
  tethers(): Buffer {
    this.tetherList ??= jsonArray(this.tetherEntries.itemsJson());
    return this.tetherList;
  }
}
