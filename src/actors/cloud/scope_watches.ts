// The watches of one cluster, one for each scope. They go on until all of them are ended.

import { type KubeCluster, workloadsResource } from '../../adapters/kube/kube_cluster.ts';
import { type ListWatchHandler, listAndWatch, type WatchStart } from '../../adapters/kube/list_watch.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { WatchPosition, WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { Clock } from '../../runtime/actor.ts';
import { deferred } from '../../runtime/deferred.ts';

/** A scope, with where its watch begins (null: with a listing) and when it was last current (epoch ms). */
export interface ScopeStart {
  scope: WorkloadScope;
  from: WatchStart | null;
  seenAt: number;
}

/** Receives what the watches of all clusters see. */
export interface ScopeWatchesOwner {
  readonly clock: Clock;
  /** All workloads of `scope`, from a listing begun at `startedAt` (monotonic milliseconds). */
  onListing(clusterId: string, scope: WorkloadScope, rows: ObservedWorkload[], startedAt: number): void;
  onWatchEvent(clusterId: string, row: ObservedWorkload, isDeleted: boolean): void;
  /** Everything in the scope up to this version has been reported. */
  onPosition(position: WatchPosition): void;
  /** Since when changes of `scope` may have been missed (epoch milliseconds); null: it is up to date. */
  onStale(clusterId: string, scope: WorkloadScope, since: number | null): void;
  /** A watch has ended with a defect. */
  onDefect(error: unknown): void;
}

interface ScopeWatchesOptions {
  /** The cluster's. */
  id: string;
  cluster: KubeCluster;
  /** Identifies its API server. */
  origin: string;
  owner: ScopeWatchesOwner;
}

export class ScopeWatches {
  private readonly options: ScopeWatchesOptions;
  private readonly onHealth: (error: unknown) => void;
  private abort = new AbortController();
  /** Ends each watch that is open; it is then made again. */
  private readonly open = new Set<() => void>();

  /** `onHealth` gets the result of each attempt (null: success). */
  constructor(options: ScopeWatchesOptions, onHealth: (error: unknown) => void) {
    this.options = options;
    this.onHealth = onHealth;
  }

  /** Watches these scopes alone. Resolves when the watch of each is open or has to wait. */
  async begin(starts: readonly ScopeStart[]): Promise<void> {
    this.end();
    this.abort = new AbortController();
    const { signal } = this.abort;
    const [first, ...others] = starts;
    // The TLS session of the first connection shortens the handshakes of the others.
    if (first) await this.follow(first, signal);
    await Promise.all(others.map((start) => this.follow(start, signal)));
  }

  end(): void {
    this.abort.abort();
  }

  /** Opens the watches anew: one may stay open, and silent, long after its server has gone. */
  reopen(): void {
    for (const end of [...this.open]) end();
  }

  /** Everything in `scope` up to `version` has been reported. */
  onVersion(scope: WorkloadScope, version: string): void {
    const { id: clusterId, owner, origin } = this.options;
    owner.onPosition({ ...scope, clusterId, origin, version, at: owner.clock.now() });
  }

  /** Watches a scope until `signal` aborts. Resolves when the watch is open or has to wait. */
  private follow({ scope, from, seenAt }: ScopeStart, signal: AbortSignal): Promise<void> {
    const { cluster, owner } = this.options;
    const begun = deferred<void>();
    const handler = this.follower(scope, seenAt, () => begun.resolve());
    const resource = workloadsResource(scope.kind, scope.namespace);
    const options = { clock: owner.clock, openWatches: this.open };
    const ended = listAndWatch(cluster, resource, from, handler, signal, options);
    ended.catch((error: unknown) => owner.onDefect(error));
    return Promise.race([begun.promise, ended]);
  }

  /**
   * Receives the events of `scope`, and records since when changes may have been missed. `onBegun` is called,
   * perhaps repeatedly, when the watch is open or an attempt has failed.
   */
  private follower(
    scope: WorkloadScope,
    listedAt: number,
    onBegun: () => void,
  ): ListWatchHandler<ObservedWorkload> {
    const { owner, id } = this.options;
    let isLive = false;
    /** The last confirmation that the records are current. */
    let seenAt = listedAt;
    const onSign = (): void => {
      seenAt = owner.clock.now();
    };
    return {
      onSign,
      onListed: (rows, startedAt) => {
        onSign();
        owner.onListing(id, scope, rows, startedAt);
        if (!isLive) owner.onStale(id, scope, seenAt);
      },
      onChanged: (row, isDeleted) => owner.onWatchEvent(id, row, isDeleted),
      onVersion: (version) => this.onVersion(scope, version),
      onLive: () => {
        onBegun();
        onSign();
        isLive = true;
        owner.onStale(id, scope, null);
      },
      onHealth: (error) => {
        this.onHealth(error);
        if (error === null) return;
        onBegun();
        isLive = false;
        owner.onStale(id, scope, seenAt);
      },
    };
  }
}
