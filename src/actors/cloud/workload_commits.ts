// Workload changes that are not committed yet. They are committed in batches, one at a time; changes during a
// batch go into the next.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CloudBatch, CloudStore, WorkloadView } from '../../adapters/storage/cloud_store.ts';
import type { StoredWorkload } from '../../protocol/cloud.ts';
import type { CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import { scopeKey, type WatchPosition, type WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { StoredSavings } from '../../protocol/savings.ts';
import { type Clock, tolerateFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import type { SavingsTotals } from './savings.ts';

/** Provides the current workloads. */
export interface CommitSource {
  readonly clock: Clock;
  /** null: it no longer exists. */
  recordOf(id: string): StoredWorkload | null;
  /**
   * What to show to clients; undefined: they have it already. `onlyStaleness`: nothing else has changed since
   * they were last shown it.
   */
  newViewOf(id: string, onlyStaleness: boolean): WorkloadView | undefined;
  /** These have been committed and shown. */
  onShown(views: readonly WorkloadView[]): void;
  /** Receives errors of work that is not awaited. */
  onDefect(error: unknown): void;
}

/** How much of a workload has changed. Each includes those before it. */
const EXTENTS = ['staleness', 'view', 'record'] as const;
type Extent = (typeof EXTENTS)[number];

interface RowChange {
  readonly extent: Extent;
  /** The events that report the changes. */
  readonly events: readonly CommittedCloudEvent[];
  /** The finished parts of its sleep, to be added to the totals. */
  readonly saved: readonly StoredSavings[];
}

interface PositionChange {
  readonly scope: WorkloadScope;
  /** null: to be removed. */
  readonly position: WatchPosition | null;
}

/** The uncommitted changes of a cluster. */
interface ClusterChanges {
  readonly rows: Map<string, RowChange>;
  /** By `scopeKey`. */
  readonly positions: Map<string, PositionChange>;
}

const NOTHING_CHANGED: Omit<CloudBatch, 'views'> = {
  records: [],
  positions: [],
  lostPositions: [],
  events: [],
  savings: [],
};

const changesOf = (all: Map<string, ClusterChanges>, clusterId: string): ClusterChanges => {
  const known = all.get(clusterId) ?? { rows: new Map(), positions: new Map() };
  all.set(clusterId, known);
  return known;
};

/** What has no events: a constant, as a cluster that is watched again shows every workload. */
const PLAIN_CHANGES = {
  staleness: { extent: 'staleness', events: [], saved: [] },
  view: { extent: 'view', events: [], saved: [] },
} as const satisfies Record<string, RowChange>;

/** Combines two successive changes of the same workload. */
const joined = (first: RowChange | undefined, second: RowChange): RowChange =>
  first
    ? {
        extent: EXTENTS[Math.max(EXTENTS.indexOf(first.extent), EXTENTS.indexOf(second.extent))] ?? 'record',
        events: [...first.events, ...second.events],
        saved: [...first.saved, ...second.saved],
      }
    : second;

export class WorkloadCommits {
  private readonly store: CloudStore;
  private readonly source: CommitSource;
  /** By cluster. */
  private changes = new Map<string, ClusterChanges>();
  /** The run that will take what is waiting now; null: it has already begun. */
  private next: Promise<void> | null = null;
  private last: Promise<void> = Promise.resolve();
  /** The committed totals. */
  private readonly saved: SavingsTotals;
  private delayed: { dueAt: number; cancel: () => void } | null = null;
  private isClosed = false;

  /** `saved`: the committed totals. */
  constructor(store: CloudStore, source: CommitSource, saved: SavingsTotals) {
    this.saved = saved;
    this.store = store;
    this.source = source;
  }

  /**
   * The record of a workload has changed. `events` report the change, and `saved` is added to the totals.
   * Committed within `withinMs`, or (null) at once.
   */
  rowChanged(
    clusterId: string,
    id: string,
    { events = [], saved = [] }: Partial<Omit<RowChange, 'extent'>>,
    withinMs: number | null,
  ): void {
    const { rows } = changesOf(this.changes, clusterId);
    rows.set(id, joined(rows.get(id), { extent: 'record', events, saved }));
    if (withinMs === null) this.commitSoon();
    else this.commitWithin(withinMs);
  }

  /** The views of workloads have changed, or only their staleness, but not their records. */
  viewsChanged(clusterId: string, ids: Iterable<string>, extent: 'view' | 'staleness' = 'view'): void {
    const { rows } = changesOf(this.changes, clusterId);
    for (const id of ids) rows.set(id, joined(rows.get(id), PLAIN_CHANGES[extent]));
    this.commitSoon();
  }

  /** Shows workloads that were just loaded, whose records are on disk as they are. */
  async showLoaded<Loaded>(
    loaded: readonly Loaded[],
    viewOf: (one: Loaded) => WorkloadView | undefined,
  ): Promise<void> {
    for (let at = 0; at < loaded.length; at += CLOUD.rowsPerCommit) {
      const views = loaded.slice(at, at + CLOUD.rowsPerCommit).flatMap((one) => viewOf(one) ?? []);
      await this.store.save({ ...NOTHING_CHANGED, views });
      this.source.onShown(views);
      await nextTurn();
    }
  }

  /**
   * The records include everything up to `position`; null: nothing is known about that scope. Committed with
   * the next change, at the latest after CLOUD.positionFlushMs.
   */
  positionChanged(clusterId: string, scope: WorkloadScope, position: WatchPosition | null): void {
    changesOf(this.changes, clusterId).positions.set(scopeKey(scope), { scope, position });
    this.commitWithin(CLOUD.positionFlushMs);
  }

  /**
   * Resolves when every change so far is on disk and shown. Does not wait for later ones, since a cluster may
   * change endlessly. Fails storage_full.
   */
  flush(): Promise<void> {
    this.delayed?.cancel();
    this.delayed = null;
    if (this.next) return this.next;
    const run = (): Promise<void> => {
      this.next = null;
      return this.commitWaiting();
    };
    // Also after a failed run, whose changes are waiting again.
    this.next = this.last.then(run, run);
    this.last = this.next;
    return this.next;
  }

  /** Callers that need the outcome await `flush`. */
  private commitSoon(): void {
    tolerateFailure(this.flush(), () => undefined).catch((error: unknown) => this.source.onDefect(error));
  }

  /** Like `flush`, but shows nothing more: another Berth that waits for the clusters would wait longer. */
  close(): Promise<void> {
    this.isClosed = true;
    return this.flush();
  }

  private commitWithin(ms: number): void {
    const { clock } = this.source;
    const dueAt = clock.monotonic() + ms;
    if (this.delayed && this.delayed.dueAt <= dueAt) return;
    this.delayed?.cancel();
    this.delayed = { dueAt, cancel: clock.after(ms, () => this.commitSoon()) };
  }

  private async commitWaiting(): Promise<void> {
    const waiting = this.changes;
    this.changes = new Map();
    try {
      while (waiting.size > 0) {
        await this.commit(this.take(waiting));
        // Views without records wait for no disk, and the thread has other work.
        if (waiting.size > 0) await nextTurn();
      }
    } catch (error) {
      this.putBack(waiting);
      // Changes are not shown before they are on disk, so the retry must not wait for another change.
      this.commitWithin(CLOUD.commitRetryMs);
      throw error;
    }
  }

  /** Takes as many changes as one commit may have, cluster by cluster. */
  private take(waiting: Map<string, ClusterChanges>): Map<string, ClusterChanges> {
    const taken = new Map<string, ClusterChanges>();
    let room: number = CLOUD.rowsPerCommit;
    for (const [clusterId, changes] of waiting) {
      if (room <= 0) break;
      const isWhole = changes.rows.size <= room;
      const part = isWhole ? changes : takePart(changes, room);
      if (isWhole) waiting.delete(clusterId);
      room -= part.rows.size;
      this.takeLater(clusterId, part);
      taken.set(clusterId, part);
    }
    return taken;
  }

  /** A record is written in its current state, so later changes of it are committed along with it. */
  private takeLater(clusterId: string, { rows }: ClusterChanges): void {
    const later = this.changes.get(clusterId)?.rows;
    if (!later) return;
    for (const [id, change] of rows) {
      const more = later.get(id);
      if (more) rows.set(id, joined(change, more));
      later.delete(id);
    }
  }

  private async commit(taken: Map<string, ClusterChanges>): Promise<void> {
    const batch = this.batchOf(taken);
    try {
      await this.store.save(batch);
    } catch (error) {
      this.putBack(taken);
      throw error;
    }
    this.saved.replace(batch.savings);
    this.source.onShown(batch.views);
  }

  private batchOf(taken: Map<string, ClusterChanges>): CloudBatch {
    const rows = [...taken.values()].flatMap((changes) => [...changes.rows]);
    const positions = [...taken].flatMap(([clusterId, changes]) =>
      [...changes.positions.values()].map((change) => ({ clusterId, ...change })),
    );
    return {
      records: rows.flatMap(([id, { extent }]) =>
        extent === 'record' ? [{ id, record: this.source.recordOf(id) }] : [],
      ),
      views: this.isClosed
        ? []
        : rows.flatMap(([id, { extent }]) => this.source.newViewOf(id, extent === 'staleness') ?? []),
      events: rows.flatMap(([, { events }]) => events),
      savings: this.saved.with(rows.flatMap(([, { saved }]) => saved)),
      positions: positions.flatMap(({ position }) => position ?? []),
      lostPositions: positions.flatMap(({ clusterId, scope, position }) =>
        position ? [] : [{ clusterId, ...scope }],
      ),
    };
  }

  /** Merges what could not be committed with later changes. */
  private putBack(taken: Map<string, ClusterChanges>): void {
    for (const [clusterId, { rows, positions }] of taken) {
      const now = changesOf(this.changes, clusterId);
      for (const [id, change] of rows) {
        const later = now.rows.get(id);
        now.rows.set(id, later ? joined(change, later) : change);
      }
      for (const [key, change] of positions) if (!now.positions.has(key)) now.positions.set(key, change);
    }
  }
}

/**
 * Takes some rows out of `changes`. Until the rest is committed, their positions do not describe what is on
 * disk, so they stay behind.
 */
function takePart(changes: ClusterChanges, count: number): ClusterChanges {
  const rows = new Map<string, RowChange>();
  for (const [id, change] of changes.rows) {
    if (rows.size === count) break;
    rows.set(id, change);
    changes.rows.delete(id);
  }
  const positions = [...changes.positions].map(
    ([key, { scope }]) => [key, { scope, position: null }] as const,
  );
  return { rows, positions: new Map(positions) };
}
