// The rows of all workloads: in memory, in the store, and as the front's views show them.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isOlderVersion } from '../../adapters/kube/parse_objects.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { ObservedWorkload, StoredWorkload, WorkloadKind, WorkloadRow } from '../../protocol/cloud.ts';
import { type Clock, tolerateFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/limits.ts';
import { observe, tombstoneOf, workloadId, workloadRow } from './workload_record.ts';

/** The front's copies. */
export interface WorkloadPublisher {
  workloads(rows: WorkloadRow[]): void;
  workloadsRemoved(ids: string[]): void;
  /** Whatever is shown besides these is forgotten. */
  workloadsRetained(ids: string[]): void;
}

/** Told of every row after a look or a change; undefined: there was none, or there is none any more. */
export type OnWorkloadChange = (
  id: string,
  before: StoredWorkload | undefined,
  after: StoredWorkload | undefined,
) => void;

interface WorkloadEntry {
  row: StoredWorkload;
  /** As last shown; null: not shown. */
  published: WorkloadRow | null;
  /** When the cluster was last looked at for it (monotonic milliseconds). */
  observedAt: number;
}

const countKey = (clusterId: string, { kind }: ObservedWorkload): string => `${clusterId}/${kind}`;

export class WorkloadTable {
  private readonly store: CloudStore;
  private readonly publisher: WorkloadPublisher;
  private readonly clock: Clock;
  private readonly onChange: OnWorkloadChange;
  /** Work that nobody waits for has thrown. */
  private readonly onDefect: (error: unknown) => void;
  private readonly entries = new Map<string, WorkloadEntry>();
  /** How many there are of each kind in each cluster. */
  private readonly counts = new Map<string, number>();
  /** What is to be written: ids with a row are saved, others removed. */
  private readonly unsaved = new Set<string>();
  private readonly unpublished = new Set<string>();
  private saving: Promise<void> | null = null;
  private publishing: Promise<void> | null = null;
  private cancelDelayedSave: (() => void) | null = null;

  constructor(
    store: CloudStore,
    publisher: WorkloadPublisher,
    clock: Clock,
    onChange: OnWorkloadChange,
    onDefect: (error: unknown) => void,
  ) {
    this.store = store;
    this.publisher = publisher;
    this.clock = clock;
    this.onChange = onChange;
    this.onDefect = onDefect;
  }

  /** Takes what the store has. */
  async load(): Promise<number> {
    for (const row of await this.store.workloads()) {
      this.add(row);
      this.unpublished.add(row.id);
    }
    await this.publish();
    this.publisher.workloadsRetained(this.ids());
    return this.entries.size;
  }

  /** Every id that is listed. */
  ids(): string[] {
    return this.rows().map((row) => row.id);
  }

  /** The rows of what is in its cluster. */
  rows(): StoredWorkload[] {
    return [...this.entries.values()].map(({ row }) => row).filter((row) => !row.gone);
  }

  /** undefined: not known, or no longer in its cluster. */
  get(id: string): StoredWorkload | undefined {
    const row = this.entries.get(id)?.row;
    return row?.gone ? undefined : row;
  }

  /** Takes a look at one workload, unless it is older than what is known or a new one beyond CLOUD.rows. */
  observe(clusterId: string, seen: ObservedWorkload): void {
    const entry = this.entries.get(workloadId(clusterId, seen));
    if (!entry && (this.counts.get(countKey(clusterId, seen)) ?? 0) >= CLOUD.maxWorkloadsPerKind) return;
    const known = entry?.row.seen;
    if (known && !entry.row.gone && known.uid === seen.uid && isOlderVersion(seen.version, known.version))
      return;
    this.put(observe(entry?.row, clusterId, seen, this.clock.now()));
  }

  /** Takes a whole listing: what it does not have is gone, unless it was seen after the listing had begun. */
  replace(
    clusterId: string,
    kinds: readonly WorkloadKind[],
    rows: ObservedWorkload[],
    startedAt: number,
  ): void {
    const listed = new Set<string>();
    for (const seen of rows) {
      const id = workloadId(clusterId, seen);
      listed.add(id);
      // A server restored from a backup has older versions: what was seen before the listing does not hold it up.
      if ((this.entries.get(id)?.observedAt ?? startedAt) > startedAt) this.observe(clusterId, seen);
      else this.put(observe(this.entries.get(id)?.row, clusterId, seen, this.clock.now()));
    }
    for (const { row, observedAt } of [...this.entries.values()]) {
      const isOfThese = row.clusterId === clusterId && kinds.includes(row.seen.kind);
      if (isOfThese && !row.gone && !listed.has(row.id) && observedAt <= startedAt) this.remove(row);
    }
  }

  /** It was deleted in the cluster, as a watch says. */
  markDeleted(clusterId: string, seen: ObservedWorkload): void {
    const row = this.get(workloadId(clusterId, seen));
    if (row && row.seen.uid === seen.uid) this.remove(row);
  }

  /** Changes the record of one that is known. `lazily`: it need not be on disk before CLOUD.activityMs have passed. */
  update(id: string, change: (row: StoredWorkload) => StoredWorkload, lazily = false): void {
    const row = this.get(id);
    if (row) this.write(change(row), lazily);
  }

  /** Forgets a cluster's rows here and in the store; the views are told of the cluster itself. */
  forgetCluster(clusterId: string): void {
    for (const { row } of [...this.entries.values()]) {
      if (row.clusterId !== clusterId) continue;
      this.delete(row);
      this.unpublished.delete(row.id);
      this.unsaved.add(row.id);
      this.onChange(row.id, row, undefined);
    }
    this.saveSoon();
  }

  /** Resolves when every change so far is on disk and shown. Fails storage_full. */
  async settled(): Promise<void> {
    await Promise.all([this.save(), this.publish()]);
  }

  private put(row: StoredWorkload): void {
    this.write(row);
    const entry = this.entries.get(row.id);
    if (entry) entry.observedAt = this.clock.monotonic();
  }

  private write(row: StoredWorkload, lazily = false): void {
    const entry = this.entries.get(row.id);
    const before = entry?.row;
    if (entry) entry.row = row;
    else this.add(row);
    this.markDirty(row.id, lazily);
    this.onChange(row.id, before?.gone ? undefined : before, row);
  }

  private remove(row: StoredWorkload): void {
    const kept = tombstoneOf(row);
    if (kept) this.entries.set(row.id, { row: kept, published: null, observedAt: this.clock.monotonic() });
    else this.delete(row);
    this.markDirty(row.id);
    this.onChange(row.id, row, undefined);
  }

  private add(row: StoredWorkload): void {
    this.entries.set(row.id, { row, published: null, observedAt: Number.NEGATIVE_INFINITY });
    this.addToCount(row, 1);
  }

  private delete(row: StoredWorkload): void {
    this.entries.delete(row.id);
    this.addToCount(row, -1);
  }

  private addToCount({ clusterId, seen }: StoredWorkload, by: number): void {
    const key = countKey(clusterId, seen);
    this.counts.set(key, (this.counts.get(key) ?? 0) + by);
  }

  private markDirty(id: string, lazily = false): void {
    this.unsaved.add(id);
    this.unpublished.add(id);
    this.publish().catch(this.onDefect);
    if (lazily) this.cancelDelayedSave ??= this.clock.after(CLOUD.activityFlushMs, () => this.saveSoon());
    else this.saveSoon();
  }

  /** Whoever needs to know awaits `settled`. What could not be written is tried again with the next change. */
  private saveSoon(): void {
    tolerateFailure(this.save(), () => undefined).catch(this.onDefect);
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
      // In the same step as the last look at what is unsaved: nobody joins a run that has ended.
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

  private publish(): Promise<void> {
    this.publishing ??= this.publishAll();
    return this.publishing;
  }

  /** Few rows at a time with a turn between: the front has other things to do. */
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
    const goneIds: string[] = [];
    for (const id of ids) {
      const entry = this.entries.get(id);
      if (!entry || entry.row.gone) goneIds.push(id);
      else {
        const row = workloadRow(entry.row);
        if (isDeepStrictEqual(row, entry.published)) continue;
        rows.push(row);
        entry.published = row;
      }
    }
    if (rows.length > 0) this.publisher.workloads(rows);
    if (goneIds.length > 0) this.publisher.workloadsRemoved(goneIds);
  }
}
