// The records of all workloads in memory. Changes are committed by workload_commits.ts.

import { isDeepStrictEqual } from 'node:util';
import { isOlderVersion } from '../../adapters/kube/parse_objects.ts';
import type { CloudStore, WorkloadView } from '../../adapters/storage/cloud_store.ts';
import type { ObservedWorkload, StoredWorkload, WorkloadRow } from '../../protocol/cloud.ts';
import type { CommittedCloudEvent, NewCloudEvent } from '../../protocol/cloud_events.ts';
import type { CloudViewsProtocol } from '../../protocol/cloud_views.ts';
import type { WatchPosition, WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { StoredCluster } from '../../protocol/clusters.ts';
import type { PlacedWorkload } from '../../protocol/grants.ts';
import type { SavingsSelection, StoredSavings } from '../../protocol/savings.ts';
import { newUlid } from '../../protocol/ulid.ts';
import type { Clock, Ref } from '../../runtime/actor.ts';
import { CLOUD, SAVINGS } from '../../settings/cloud_limits.ts';
import type { BulkAudit } from './bulk_audit.ts';
import { ChangeAllowances } from './change_allowances.ts';
import { scopesOf } from './cluster_scopes.ts';
import { countSleep, type EndedSpan, SavingsTotals, type Sight, savingsOf, savingsUntil } from './savings.ts';
import { loadedWorkload } from './stored_workload.ts';
import { WatchStates } from './watch_states.ts';
import { type CommitSource, WorkloadCommits } from './workload_commits.ts';
import { type TableEntry, WorkloadEntries } from './workload_entries.ts';
import { changeEvents } from './workload_events.ts';
import { type Observer, observe, tombstoneOf, workloadId, workloadRow } from './workload_record.ts';

const isWithin = ({ kind, namespace }: WorkloadScope, seen: ObservedWorkload): boolean =>
  seen.kind === kind && (namespace === null || seen.namespace === namespace);

const committedAt = (at: number, events: readonly NewCloudEvent[]): CommittedCloudEvent[] =>
  events.map((event) => ({ key: newUlid(at), at, event }));

export interface WorkloadTableOwner {
  readonly clock: Clock;
  /** The clock for idle times. */
  readonly steady: Clock;
  /** The name of this Berth. */
  readonly self: string;
  /** What decides on the sleep of a workload, and what its wakes wait for. */
  rulesOf(row: StoredWorkload): Pick<WorkloadRow, 'policy' | 'after'>;
  /** A record was written. `before` is undefined for a new one, `after` for one no longer in its cluster. */
  onRowChange(id: string, before: StoredWorkload | undefined, after: StoredWorkload | undefined): void;
  /** The ends of requests that a change of a record reports. */
  readonly audit: Pick<BulkAudit, 'changeEvents'>;
  /** Receives errors of work that is not awaited. */
  onDefect(error: unknown): void;
}

type Views = Pick<Ref<CloudViewsProtocol>, 'tell'>;

export class WorkloadTable implements CommitSource {
  readonly clock: Clock;
  private readonly store: CloudStore;
  private readonly views: Views;
  private readonly owner: WorkloadTableOwner;
  private readonly maxPerKind: number;
  private readonly entries = new WorkloadEntries();
  private readonly watches = new WatchStates();
  private readonly commits: WorkloadCommits;
  /** The savings of finished sleeps, or finished parts of them; `savedOnDisk` has those committed. */
  private readonly savings = new SavingsTotals();
  private readonly savedOnDisk = new SavingsTotals();
  private readonly allowances: ChangeAllowances;

  /** `maxPerKind`: the most rows of a kind that watches may add per cluster; for tests. */
  constructor(
    store: CloudStore,
    views: Views,
    owner: WorkloadTableOwner,
    maxPerKind: number = CLOUD.maxWorkloadsPerKind,
  ) {
    this.clock = owner.clock;
    this.maxPerKind = maxPerKind;
    this.store = store;
    this.views = views;
    this.owner = owner;
    this.commits = new WorkloadCommits(store, this, this.savedOnDisk);
    this.allowances = new ChangeAllowances(owner.clock);
  }

  /** Loads a cluster's stored records, and publishes them; the views drop all its others. */
  async load({ id: clusterId, scope, lastSyncAt }: StoredCluster): Promise<void> {
    const now = this.owner.steady.now();
    for await (const part of this.store.workloads(clusterId))
      for (const row of part) this.add(loadedWorkload(row, now));
    // Until it is watched again.
    for (const one of scopesOf(scope ?? null))
      this.watches.setStaleSince(clusterId, one, lastSyncAt, this.clock.monotonic());
    for (const position of await this.store.positions(clusterId)) {
      this.watches.setPosition(position);
      this.watches.setStaleSince(clusterId, position, position.at, this.clock.monotonic());
    }
    for (const row of await this.store.savings(clusterId)) {
      this.savings.add(row);
      this.savedOnDisk.add(row);
    }
    const entries = this.entries.ofCluster(clusterId);
    for (const entry of entries) this.resumeCount(entry);
    this.views.tell('workloadsRetained', { clusterId, ids: entries.map(({ row }) => row.id) });
    // With each row's entry, because to find 100,000 again by their ids takes a tenth of a second.
    await this.commits.showLoaded(entries, (entry) => this.newViewOfRow(entry, false));
  }

  /** The ids of the workloads that are in their clusters. */
  ids(): string[] {
    return this.rows().map((row) => row.id);
  }

  /** The records of the workloads that are in this cluster, at the cost of its own rows only. */
  rowsOf(clusterId: string): StoredWorkload[] {
    return this.entries.ofCluster(clusterId).flatMap(({ row }) => (row.gone ? [] : [row]));
  }

  /** The records of the workloads that are in their clusters. */
  rows(): StoredWorkload[] {
    return this.entries.rows();
  }

  /** undefined: unknown, or no longer in its cluster. */
  get(id: string): StoredWorkload | undefined {
    const row = this.entries.get(id)?.row;
    return row?.gone ? undefined : row;
  }

  /** What clients see of a workload; null: nothing yet. */
  shown(id: string): WorkloadRow | null {
    return this.entries.get(id)?.shown ?? null;
  }

  /**
   * Records `seen`, unless it is older than the known record, or exceeds the limit for its kind in the
   * cluster.
   */
  observe(clusterId: string, seen: ObservedWorkload): void {
    const entry = this.entries.get(workloadId(clusterId, seen));
    if (!entry && this.entries.countOf(clusterId, seen.kind) >= this.maxPerKind) return;
    const known = entry?.row.seen;
    if (known && !entry.row.gone && known.uid === seen.uid && isOlderVersion(seen.version, known.version))
      return;
    this.put(observe(entry?.row, clusterId, seen, this.observer()));
  }

  /**
   * Records a whole listing of `scope`. Workloads missing from it are gone, unless they were observed after
   * the listing had begun.
   */
  replace(clusterId: string, scope: WorkloadScope, rows: ObservedWorkload[], startedAt: number): void {
    const listed = new Set<string>();
    for (const seen of rows) {
      const id = workloadId(clusterId, seen);
      listed.add(id);
      // A server restored from a backup has older versions, so observations from before the listing must not
      // win.
      if ((this.entries.get(id)?.observedAt ?? startedAt) > startedAt) this.observe(clusterId, seen);
      else this.put(observe(this.entries.get(id)?.row, clusterId, seen, this.observer()));
    }
    for (const { row, observedAt } of this.entries.ofKind(clusterId, scope.kind)) {
      const isMissing = isWithin(scope, row.seen) && !row.gone && !listed.has(row.id);
      if (isMissing && observedAt <= startedAt) this.remove(row);
    }
  }

  /** Removes the records of a cluster outside `scopes`, about which nothing is known any more. */
  retainScopes(clusterId: string, scopes: readonly WorkloadScope[]): void {
    const isKept = ({ seen }: StoredWorkload) => scopes.some((scope) => isWithin(scope, seen));
    const lost = this.rowsOf(clusterId).filter((row) => !isKept(row));
    // Without its watch, it would not be known until when a row was seen.
    const sights = lost.map((row) => [row, this.sightOf(row)] as const);
    for (const scope of this.watches.retain(clusterId, scopes))
      this.commits.positionChanged(clusterId, scope, null);
    for (const [row, sight] of sights) this.remove(row, sight);
  }

  /**
   * Records since when changes in `scope` may have been missed (epoch milliseconds); null: it is watched and
   * up to date.
   */
  setStaleSince(clusterId: string, scope: WorkloadScope, since: number | null): void {
    if (!this.watches.setStaleSince(clusterId, scope, since, this.clock.monotonic())) return;
    const within = this.entries.ofKind(clusterId, scope.kind).filter(({ row }) => isWithin(scope, row.seen));
    this.commits.viewsChanged(
      clusterId,
      within.map(({ row }) => row.id),
      'staleness',
    );
  }

  /** Whether `row` is as it is in its cluster: changes there are reported as they happen. */
  isCurrent(row: StoredWorkload): boolean {
    return this.watches.missedFrom(row, this.clock.monotonic()) === null;
  }

  /** Where to resume the watch of a scope, if that is a version of the API server `origin`. */
  position(clusterId: string, scope: WorkloadScope, origin: string): WatchPosition | null {
    return this.watches.position(clusterId, scope, origin);
  }

  /** The records include everything in a scope up to this version. */
  setPosition(position: WatchPosition): void {
    this.watches.setPosition(position);
    this.commits.positionChanged(position.clusterId, position, position);
  }

  /** Records that `seen` was deleted in the cluster. */
  markDeleted(clusterId: string, seen: ObservedWorkload): void {
    const row = this.get(workloadId(clusterId, seen));
    if (row && row.seen.uid === seen.uid) this.remove(row);
  }

  /** Missing workloads forget their last switch where it is over, as another one has become due. */
  forgetSwitches(clusterId: string, isOver: (row: StoredWorkload) => boolean): void {
    for (const { row } of this.entries.ofCluster(clusterId)) {
      if (!row.gone || row.switched === null || !isOver(row)) continue;
      this.bury({ ...row, switched: null });
      this.commits.rowChanged(clusterId, row.id, {}, CLOUD.activityFlushMs);
    }
  }

  /** Changes an existing record. `lazily`: it may be saved up to CLOUD.activityFlushMs later. */
  update(id: string, change: (row: StoredWorkload) => StoredWorkload, lazily = false): void {
    const row = this.get(id);
    if (row) this.write(change(row), lazily);
  }

  /**
   * Publishes those of these workloads that are in their clusters again, because something else decides on
   * them.
   */
  showAgain(ids: readonly string[]): void {
    for (const id of ids) {
      const row = this.get(id);
      if (row) this.commits.viewsChanged(row.clusterId, [id]);
    }
  }

  /** Removes the records of a cluster from memory and store. The views are told about the cluster itself. */
  forgetCluster(clusterId: string): void {
    // Without the cluster's records, its positions are meaningless.
    for (const scope of this.watches.retain(clusterId, []))
      this.commits.positionChanged(clusterId, scope, null);
    for (const { row } of this.entries.ofCluster(clusterId)) {
      this.entries.delete(row);
      this.commits.rowChanged(clusterId, row.id, {}, null);
      this.owner.onRowChange(row.id, row, undefined);
    }
    for (const totals of [this.savings, this.savedOnDisk]) totals.forgetCluster(clusterId);
  }

  /** The savings up to now, ordered by month, cluster and namespace. */
  savingsOf(selection: SavingsSelection): StoredSavings[] {
    return savingsUntil(this.savings, this.rows(), this.owner.steady.now(), selection);
  }

  /** Commits events about a workload whose record they do not change. */
  report(clusterId: string, id: string, events: readonly NewCloudEvent[]): void {
    this.commits.rowChanged(clusterId, id, { events: committedAt(this.clock.now(), events) }, null);
  }

  /** Resolves when every change so far is on disk and shown. Fails storage_full. */
  flush(): Promise<void> {
    return this.commits.flush();
  }

  /** The last `flush`, at the end of this Berth, after which clients are shown nothing more. */
  close(): Promise<void> {
    return this.commits.close();
  }

  recordOf(id: string): StoredWorkload | null {
    return this.entries.get(id)?.row ?? null;
  }

  newViewOf(id: string, onlyStaleness: boolean): WorkloadView | undefined {
    const entry = this.entries.get(id);
    return entry ? this.newViewOfRow(entry, onlyStaleness) : { id, view: null };
  }

  private newViewOfRow(entry: TableEntry, onlyStaleness: boolean): WorkloadView | undefined {
    const { id } = entry.row;
    if (entry.row.gone) return { id, view: null };
    const staleSince = this.watches.staleSinceOf(entry.row);
    if (onlyStaleness && entry.shown)
      return staleSince === entry.shown.staleSince ? undefined : { id, staleSince };
    const { policy, after } = this.owner.rulesOf(entry.row);
    const view = workloadRow(entry.row, this.owner.self, staleSince, policy, after);
    return isDeepStrictEqual(view, entry.shown) ? undefined : { id, view };
  }

  onShown(views: readonly WorkloadView[]): void {
    for (const shown of views) {
      const entry = this.entries.get(shown.id);
      if (entry && 'view' in shown) entry.shown = shown.view;
      else if (entry?.shown && 'staleSince' in shown) entry.shown.staleSince = shown.staleSince;
    }
  }

  onDefect(error: unknown): void {
    this.owner.onDefect(error);
  }

  private observer(): Observer {
    return { self: this.owner.self, now: this.owner.steady.now() };
  }

  /** What is known about the time of a change of `row`. */
  private sightOf(row: StoredWorkload): Sight {
    const now = this.owner.steady.now();
    const missedFrom = this.watches.missedFrom(row, this.clock.monotonic());
    const countedTo = this.savings.countedTo(row.clusterId, row.seen.namespace);
    return { now, seenAt: Math.min(missedFrom ?? now, now), countedTo };
  }

  /**
   * Continues counting the sleep in a record of an earlier daemon. Of the time since then, at most
   * SAVINGS.maxUnseenMs counts.
   */
  private resumeCount(entry: TableEntry): void {
    const { row } = entry;
    const sight = this.sightOf(row);
    const { now, seenAt } = sight;
    // A version that did not count has stored no span.
    const { span } = row.span
      ? row
      : countSleep(undefined, row, { ...sight, seenAt: Number.NEGATIVE_INFINITY });
    if (row.gone || span === null) return;
    const lostMs = Math.max(0, now - Math.max(seenAt, span.since) - SAVINGS.maxUnseenMs);
    entry.row = { ...row, span: { ...span, since: Math.min(span.since + lostMs, now) } };
    if (row.span === null) this.commits.rowChanged(row.clusterId, row.id, {}, CLOUD.activityFlushMs);
  }

  /** Adds up what has finished, in the same commit. */
  private count(ended: EndedSpan | null): StoredSavings[] {
    const saved = ended ? savingsOf(ended) : [];
    for (const row of saved) this.savings.add(row);
    return saved;
  }

  private put(row: StoredWorkload): void {
    this.write(row);
    const entry = this.entries.get(row.id);
    if (entry) entry.observedAt = this.clock.monotonic();
  }

  private write(changed: StoredWorkload, lazily = false): void {
    const entry = this.entries.get(changed.id);
    const before = entry?.row.gone ? undefined : entry?.row;
    const { span, ended } = countSleep(before, changed, this.sightOf(changed));
    const row = span === changed.span ? changed : { ...changed, span };
    if (entry) entry.row = row;
    else this.add(row);
    const at = this.clock.now();
    const changes = before ? changeEvents(before, row, this.owner.self) : [];
    const admitted = this.allowances.admit(row.clusterId, changes);
    // Requests are few, and none may be missing from the audit log.
    const events = [...admitted, ...(before ? this.owner.audit.changeEvents(before, row) : [])];
    const change = { events: committedAt(at, events), saved: this.count(ended) };
    this.commits.rowChanged(row.clusterId, row.id, change, lazily ? CLOUD.activityFlushMs : null);
    this.owner.onRowChange(row.id, before, row);
  }

  /** Keeps of a missing workload what is worth it. */
  private bury(row: StoredWorkload): void {
    const kept = tombstoneOf(row);
    if (kept) this.entries.set({ row: kept, shown: null, observedAt: this.clock.monotonic() });
    else this.entries.delete(row);
  }

  private remove(row: StoredWorkload, sight = this.sightOf(row)): void {
    this.bury(row);
    const { ended } = countSleep(row, undefined, sight);
    this.commits.rowChanged(row.clusterId, row.id, { saved: this.count(ended) }, null);
    this.owner.onRowChange(row.id, row, undefined);
  }

  private add(row: StoredWorkload): void {
    this.entries.set({ row, shown: null, observedAt: Number.NEGATIVE_INFINITY });
  }
}

/** The place of a workload in the clusters; null: there is no such workload. */
function placeOf(row: StoredWorkload | undefined): PlacedWorkload | null {
  if (!row) return null;
  const { namespace, labels } = row.seen;
  return { clusterId: row.clusterId, namespace, labels };
}

/** The handlers that need only the records. */
export const tableHandlers = (table: WorkloadTable) => ({
  savings: (selection: SavingsSelection) => table.savingsOf(selection),
  placeOf: ({ id }: { id: string }) => placeOf(table.get(id)),
});
