// The records of all workloads: in memory, in the store, and as the front's views show them.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isOlderVersion } from '../../adapters/kube/parse_objects.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { ObservedWorkload, StoredWorkload, WorkloadRow } from '../../protocol/cloud.ts';
import type { CloudViewsProtocol } from '../../protocol/cloud_views.ts';
import type { WorkloadPolicy } from '../../protocol/policies.ts';
import { WORKLOAD_KINDS, type WorkloadKind } from '../../protocol/workload_kinds.ts';
import { type Clock, type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import {
  loadedWorkload,
  type Observer,
  observe,
  tombstoneOf,
  workloadId,
  workloadRow,
} from './workload_record.ts';

/** What is listed and watched on its own: the workloads of a kind in a namespace, or (null) in all. */
export interface WorkloadScope {
  kind: WorkloadKind;
  namespace: string | null;
}

const isWithin = ({ kind, namespace }: WorkloadScope, seen: ObservedWorkload): boolean =>
  seen.kind === kind && (namespace === null || seen.namespace === namespace);

export interface WorkloadTableOwner {
  readonly clock: Clock;
  /** The time for idleness. */
  readonly steady: Clock;
  /** The name of this Berth. */
  readonly self: string;
  /** What governs the sleep of a workload. */
  policyOf(row: StoredWorkload): WorkloadPolicy | null;
  /**
   * A record was written; `before` is undefined for a new one, `after` for one that is no longer in its
   * cluster.
   */
  onRowChange(id: string, before: StoredWorkload | undefined, after: StoredWorkload | undefined): void;
  /** Work that nobody waits for has thrown. */
  onDefect(error: unknown): void;
}

type Views = Pick<Ref<CloudViewsProtocol>, 'tell'>;

interface WorkloadEntry {
  row: StoredWorkload;
  /** As the views have it; null: they do not. */
  published: WorkloadRow | null;
  /** When it was last observed (monotonic milliseconds). */
  observedAt: number;
}

const kindKey = (clusterId: string, kind: WorkloadKind): string => `${clusterId}/${kind}`;

const scopeKey = ({ kind, namespace }: WorkloadScope): string => `${kind}/${namespace ?? ''}`;

export class WorkloadTable {
  private readonly store: CloudStore;
  private readonly views: Views;
  private readonly owner: WorkloadTableOwner;
  private readonly maxPerKind: number;
  private readonly entries = new Map<string, WorkloadEntry>();
  /** The same entries by cluster and kind, then by id: a listing costs its own rows, not those of all. */
  private readonly entriesByKind = new Map<string, Map<string, WorkloadEntry>>();
  /** Ids with an entry are to be saved, others to be removed from the store. */
  private readonly unsaved = new Set<string>();
  private readonly unpublished = new Set<string>();
  /** By cluster and scope: from when on changes may be missing; null: it is current. */
  private readonly staleSince = new Map<string, Map<string, number | null>>();
  private saving: Promise<void> | null = null;
  private publishing: Promise<void> | null = null;
  private cancelDelayedSave: (() => void) | null = null;

  /** `maxPerKind`: the rows of a kind that a watch may add to in a cluster; for tests. */
  constructor(
    store: CloudStore,
    views: Views,
    owner: WorkloadTableOwner,
    maxPerKind: number = CLOUD.maxWorkloadsPerKind,
  ) {
    this.maxPerKind = maxPerKind;
    this.store = store;
    this.views = views;
    this.owner = owner;
  }

  /** Reads the store and publishes what is there; the views forget everything else. */
  async load(): Promise<void> {
    const now = this.owner.steady.now();
    for (const row of await this.store.workloads()) {
      this.add(loadedWorkload(row, now));
      this.unpublished.add(row.id);
    }
    await this.publish();
    this.views.tell('workloadsRetained', { ids: this.ids() });
  }

  /** The ids of what is in its cluster. */
  ids(): string[] {
    return this.rows().map((row) => row.id);
  }

  /** The records of what is in its cluster. */
  rows(): StoredWorkload[] {
    return [...this.entries.values()].map(({ row }) => row).filter((row) => !row.gone);
  }

  /** undefined: not known, or no longer in its cluster. */
  get(id: string): StoredWorkload | undefined {
    const row = this.entries.get(id)?.row;
    return row?.gone ? undefined : row;
  }

  /** Records `seen`, unless it is older than what is known, or one too many of its kind in the cluster. */
  observe(clusterId: string, seen: ObservedWorkload): void {
    const entry = this.entries.get(workloadId(clusterId, seen));
    if (!entry && this.countOf(clusterId, seen.kind) >= this.maxPerKind) return;
    const known = entry?.row.seen;
    if (known && !entry.row.gone && known.uid === seen.uid && isOlderVersion(seen.version, known.version))
      return;
    this.put(observe(entry?.row, clusterId, seen, this.observer()));
  }

  /**
   * Records a whole listing of `scope`. What it lacks is no longer there, unless it was observed after the
   * listing had begun.
   */
  replace(clusterId: string, scope: WorkloadScope, rows: ObservedWorkload[], startedAt: number): void {
    const listed = new Set<string>();
    for (const seen of rows) {
      const id = workloadId(clusterId, seen);
      listed.add(id);
      // A server restored from a backup has older versions: what was observed before the listing must not
      // win.
      if ((this.entries.get(id)?.observedAt ?? startedAt) > startedAt) this.observe(clusterId, seen);
      else this.put(observe(this.entries.get(id)?.row, clusterId, seen, this.observer()));
    }
    for (const { row, observedAt } of this.ofKind(clusterId, scope.kind)) {
      const isMissing = isWithin(scope, row.seen) && !row.gone && !listed.has(row.id);
      if (isMissing && observedAt <= startedAt) this.remove(row);
    }
  }

  /** Removes the records of a cluster that are in none of `scopes`: nothing is known of them any more. */
  retainScopes(clusterId: string, scopes: readonly WorkloadScope[]): void {
    this.staleSince.delete(clusterId);
    for (const { row } of this.ofCluster(clusterId)) {
      const isKept = scopes.some((scope) => isWithin(scope, row.seen));
      if (!isKept && !row.gone) this.remove(row);
    }
  }

  /**
   * Records from when on changes in `scope` may be missing (epoch milliseconds); null: it is watched, and
   * current.
   */
  setStaleSince(clusterId: string, scope: WorkloadScope, since: number | null): void {
    const known = this.staleSince.get(clusterId) ?? new Map<string, number | null>();
    this.staleSince.set(clusterId, known);
    // What was never said to be stale is shown as current already.
    if ((known.get(scopeKey(scope)) ?? null) === since) return;
    known.set(scopeKey(scope), since);
    for (const { row } of this.ofKind(clusterId, scope.kind))
      if (isWithin(scope, row.seen)) this.unpublished.add(row.id);
    this.publishSoon();
  }

  /** Records that `seen` was deleted in the cluster. */
  markDeleted(clusterId: string, seen: ObservedWorkload): void {
    const row = this.get(workloadId(clusterId, seen));
    if (row && row.seen.uid === seen.uid) this.remove(row);
  }

  /** Changes a record that is there. `lazily`: it may be saved up to CLOUD.activityFlushMs later. */
  update(id: string, change: (row: StoredWorkload) => StoredWorkload, lazily = false): void {
    const row = this.get(id);
    if (row) this.write(change(row), lazily);
  }

  /** Shows again what is in its cluster of these ids: something else decides on it. */
  showAgain(ids: readonly string[]): void {
    for (const id of ids) if (this.entries.has(id)) this.unpublished.add(id);
    this.publishSoon();
  }

  /** Removes the records of a cluster, here and in the store. The views hear of the cluster itself. */
  forgetCluster(clusterId: string): void {
    this.staleSince.delete(clusterId);
    for (const { row } of this.ofCluster(clusterId)) {
      this.delete(row);
      this.unpublished.delete(row.id);
      this.unsaved.add(row.id);
      this.owner.onRowChange(row.id, row, undefined);
    }
    this.saveSoon();
  }

  /** Resolves when every change so far is on disk and published. Fails storage_full. */
  async flush(): Promise<void> {
    await Promise.all([this.save(), this.publish()]);
  }

  private observer(): Observer {
    return { self: this.owner.self, now: this.owner.steady.now() };
  }

  private staleSinceOf({ clusterId, seen: { kind, namespace } }: StoredWorkload): number | null {
    const known = this.staleSince.get(clusterId);
    return (
      known?.get(scopeKey({ kind, namespace: null })) ?? known?.get(scopeKey({ kind, namespace })) ?? null
    );
  }

  private countOf(clusterId: string, kind: WorkloadKind): number {
    return this.entriesByKind.get(kindKey(clusterId, kind))?.size ?? 0;
  }

  /** The entries of a kind in a cluster as they are now; the caller may add and remove entries. */
  private ofKind(clusterId: string, kind: WorkloadKind): WorkloadEntry[] {
    return [...(this.entriesByKind.get(kindKey(clusterId, kind))?.values() ?? [])];
  }

  private ofCluster(clusterId: string): WorkloadEntry[] {
    return WORKLOAD_KINDS.flatMap((kind) => this.ofKind(clusterId, kind));
  }

  private put(row: StoredWorkload): void {
    this.write(row);
    const entry = this.entries.get(row.id);
    if (entry) entry.observedAt = this.owner.clock.monotonic();
  }

  private write(row: StoredWorkload, lazily = false): void {
    const entry = this.entries.get(row.id);
    const before = entry?.row;
    if (entry) entry.row = row;
    else this.add(row);
    this.markDirty(row.id, lazily);
    this.owner.onRowChange(row.id, before?.gone ? undefined : before, row);
  }

  private remove(row: StoredWorkload): void {
    const kept = tombstoneOf(row);
    if (kept) this.set({ row: kept, published: null, observedAt: this.owner.clock.monotonic() });
    else this.delete(row);
    this.markDirty(row.id);
    this.owner.onRowChange(row.id, row, undefined);
  }

  private add(row: StoredWorkload): void {
    this.set({ row, published: null, observedAt: Number.NEGATIVE_INFINITY });
  }

  private set(entry: WorkloadEntry): void {
    const { id, clusterId, seen } = entry.row;
    const key = kindKey(clusterId, seen.kind);
    const ofKind = this.entriesByKind.get(key) ?? new Map<string, WorkloadEntry>();
    this.entriesByKind.set(key, ofKind);
    ofKind.set(id, entry);
    this.entries.set(id, entry);
  }

  private delete({ id, clusterId, seen }: StoredWorkload): void {
    const key = kindKey(clusterId, seen.kind);
    const ofKind = this.entriesByKind.get(key);
    ofKind?.delete(id);
    if (ofKind?.size === 0) this.entriesByKind.delete(key);
    this.entries.delete(id);
  }

  private markDirty(id: string, lazily = false): void {
    this.unsaved.add(id);
    this.unpublished.add(id);
    this.publishSoon();
    if (lazily)
      this.cancelDelayedSave ??= this.owner.clock.after(CLOUD.activityFlushMs, () => this.saveSoon());
    else this.saveSoon();
  }

  /** Who must know the outcome awaits `flush`. What could not be saved is saved with the next change. */
  private saveSoon(): void {
    tolerateFailure(this.save(), () => undefined).catch((error: unknown) => this.owner.onDefect(error));
  }

  private save(): Promise<void> {
    this.cancelDelayedSave?.();
    this.cancelDelayedSave = null;
    this.saving ??= this.saveAll();
    return this.saving;
  }

  private async saveAll(): Promise<void> {
    // All changes of this turn are one commit.
    await null;
    try {
      while (this.unsaved.size > 0) await this.saveSome([...this.unsaved]);
    } finally {
      // In the same turn as the last check of `unsaved`: nobody joins a run that has ended.
      this.saving = null;
    }
  }

  private async saveSome(ids: readonly string[]): Promise<void> {
    this.unsaved.clear();
    const saved = ids.flatMap((id) => this.entries.get(id)?.row ?? []);
    const removed = ids.filter((id) => !this.entries.has(id));
    try {
      await this.store.saveWorkloads(saved, removed);
    } catch (error) {
      for (const id of ids) this.unsaved.add(id);
      throw error;
    }
  }

  private publishSoon(): void {
    this.publish().catch((error: unknown) => this.owner.onDefect(error));
  }

  private publish(): Promise<void> {
    this.publishing ??= this.publishAll();
    return this.publishing;
  }

  /** Few rows at a time, with a turn of the event loop between: the front has other work. */
  private async publishAll(): Promise<void> {
    await null;
    while (this.unpublished.size > 0) {
      const ids = [...this.unpublished].slice(0, CLOUD.rowsPerTell);
      for (const id of ids) this.unpublished.delete(id);
      this.publishSome(ids);
      if (this.unpublished.size > 0) await nextTurn();
    }
    this.publishing = null;
  }

  private publishSome(ids: readonly string[]): void {
    const rows: WorkloadRow[] = [];
    const removedIds: string[] = [];
    for (const id of ids) {
      const entry = this.entries.get(id);
      if (!entry || entry.row.gone) removedIds.push(id);
      else {
        const { self } = this.owner;
        const row = workloadRow(
          entry.row,
          self,
          this.staleSinceOf(entry.row),
          this.owner.policyOf(entry.row),
        );
        if (isDeepStrictEqual(row, entry.published)) continue;
        rows.push(row);
        entry.published = row;
      }
    }
    if (rows.length > 0) this.views.tell('workloads', { rows });
    if (removedIds.length > 0) this.views.tell('workloadsRemoved', { ids: removedIds });
  }
}
