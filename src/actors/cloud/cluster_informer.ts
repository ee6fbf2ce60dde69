// What Berth knows about one cluster: listings on request followed by an endless watch of each scope, and
// whether the cluster answers and accepts the account.

import { type KubeCluster, workloadsResource } from '../../adapters/kube/kube_cluster.ts';
import { isUnauthenticated, kubeFailure } from '../../adapters/kube/kube_errors.ts';
import { type ListWatchHandler, listAndWatch, type WatchStart } from '../../adapters/kube/list_watch.ts';
import type { NamespaceRow } from '../../adapters/kube/namespaces.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { WatchPosition, WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { ClusterFacts, ClusterScope } from '../../protocol/clusters.ts';
import type { Clock } from '../../runtime/actor.ts';
import { deferred } from '../../runtime/deferred.ts';
import { CLOUD, POLICY } from '../../settings/cloud_limits.ts';
import {
  clusterScopeOf,
  listNamespaces,
  listScopes,
  namespacesOf,
  type ScopeListing,
  scopesOf,
} from './cluster_scopes.ts';

/** Keeps the rows of all clusters. */
export interface ClusterInformerOwner {
  readonly clock: Clock;
  /** All workloads of `scope`, from a listing begun at `startedAt` (monotonic milliseconds). */
  onListing(clusterId: string, scope: WorkloadScope, rows: ObservedWorkload[], startedAt: number): void;
  /** From now on only these scopes are listed. */
  onScopes(clusterId: string, scopes: readonly WorkloadScope[]): void;
  onWatchEvent(clusterId: string, row: ObservedWorkload, isDeleted: boolean): void;
  /** Everything in the scope up to this version has been reported. */
  onPosition(position: WatchPosition): void;
  /** The last `onPosition` of a scope, if it is from the API server `origin`. */
  position(clusterId: string, scope: WorkloadScope, origin: string): WatchPosition | null;
  /** Since when changes of `scope` may have been missed (epoch milliseconds); null: it is up to date. */
  onStale(clusterId: string, scope: WorkloadScope, since: number | null): void;
  onFacts(clusterId: string, facts: ClusterFacts): void;
  /** The namespaces of the cluster; null: the account may not list them. */
  onNamespaces(clusterId: string, rows: readonly NamespaceRow[] | null): void;
  /** A watch has ended with a defect. */
  onDefect(error: unknown): void;
}

/** The record of its cluster, as far as an informer needs it. */
export interface InformerOptions {
  id: string;
  cluster: KubeCluster;
  /** Identifies its API server. */
  origin: string;
  owner: ClusterInformerOwner;
  /** Namespaces in which an account without rights on all of them may have some. */
  namespaces: readonly string[];
  /** What the last sync was able to list; null: everything. */
  scope: readonly ClusterScope[] | null;
  /** When the workloads were last seen. */
  lastSyncAt: number | null;
}

/** A scope, with where its watch begins (null: with a listing) and when it was last current (epoch ms). */
interface ScopeStart {
  scope: WorkloadScope;
  from: WatchStart | null;
  seenAt: number;
}

type InformerState = { kind: 'idle' } | { kind: 'watching'; abort: AbortController } | { kind: 'closed' };

/** `value`, or undefined when the call fails. Defects are rethrown. */
async function valueIfAnswered<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    kubeFailure(error);
    return undefined;
  }
}

export class ClusterInformer {
  readonly cluster: KubeCluster;
  private readonly options: InformerOptions;
  private readonly id: string;
  private readonly owner: ClusterInformerOwner;
  private state: InformerState = { kind: 'idle' };
  private syncing: Promise<number> | null = null;
  /** The result of the last call; null: there was none. */
  private reachable: boolean | null = null;
  private authenticated: boolean | null = null;
  private reason: string | null = null;
  private stopChecks = (): void => undefined;
  private readonly openWatches = new Set<() => void>();
  /** When the namespaces were last listed (monotonic milliseconds). */
  private namespacesAt = Number.NEGATIVE_INFINITY;

  constructor(options: InformerOptions) {
    this.options = options;
    this.id = options.id;
    this.cluster = options.cluster;
    this.owner = options.owner;
  }

  /**
   * Lists everything again and watches from there. Joins a sync under way. Resolves with the number of
   * workloads; fails as `kubeFailure` says.
   */
  sync(): Promise<number> {
    this.syncing ??= this.syncNow().finally(() => {
      this.syncing = null;
    });
    return this.syncing;
  }

  /**
   * Watches what the last sync was able to list, unless it is already watched: from an earlier watch's
   * position, or after a new listing. Resolves when every watch is open or waiting for the cluster. Nothing
   * shown waits for the namespaces, so they are read after it, by `readNamespaces`.
   */
  async begin(): Promise<void> {
    if (this.syncing) await valueIfAnswered(this.syncing);
    if (this.state.kind !== 'idle') return;
    const { scope, lastSyncAt, origin } = this.options;
    await this.watch(
      scopesOf(scope).map((one) => {
        const position = this.owner.position(this.id, one, origin);
        // The server may have been restored from a backup meanwhile.
        const from = position && { version: position.version, isDoubtful: true };
        const seenAt = position?.at ?? lastSyncAt ?? 0;
        this.owner.onStale(this.id, one, seenAt);
        return { scope: one, from, seenAt };
      }),
    );
  }

  /**
   * Reads the annotations of the namespaces, unless they are known already. After a failure a later check
   * tries again. Rejects only for defects.
   */
  async readNamespaces(): Promise<void> {
    if (this.namespacesAt === Number.NEGATIVE_INFINITY) await this.rereadNamespaces();
  }

  /**
   * Records the result of a call (null: success). The owner is told when that changes whether the cluster is
   * reachable or accepts the account, or why it does not.
   */
  reportHealth(error: unknown): void {
    const failure = error === null ? null : kubeFailure(error);
    const reachable = failure?.code !== 'cluster_unreachable';
    // Without an answer, nothing is known about the account.
    const authenticated = reachable ? !isUnauthenticated(error) : this.authenticated;
    const reason = failure !== null && !(reachable && authenticated) ? failure.message : null;
    const isNews =
      reachable !== this.reachable || authenticated !== this.authenticated || reason !== this.reason;
    if (!isNews || this.state.kind === 'closed') return;
    // A watch may stay open, and silent, long after its server has gone.
    if (!reachable && this.reachable) for (const end of [...this.openWatches]) end();
    this.reachable = reachable;
    this.authenticated = authenticated;
    this.reason = reason;
    this.owner.onFacts(this.id, { reachable, reason, ...(authenticated === null ? {} : { authenticated }) });
  }

  async close(): Promise<void> {
    this.become({ kind: 'closed' });
    await this.cluster.close();
  }

  private become(next: InformerState): void {
    if (this.state.kind === 'watching') this.state.abort.abort();
    this.stopChecks();
    this.stopChecks = () => undefined;
    this.state = next;
  }

  private async syncNow(): Promise<number> {
    const startedAt = this.owner.clock.monotonic();
    // The account's rights explain a denied listing, but never make one fail.
    const facts = this.readFacts();
    const [count] = await Promise.all([this.listAndFollow(startedAt, facts), facts]);
    return count;
  }

  private async listAndFollow(
    startedAt: number,
    facts: Promise<Pick<ClusterFacts, 'version' | 'capabilities'>>,
  ): Promise<number> {
    let listings: ScopeListing[];
    try {
      listings = await listScopes(this.cluster, this.options.namespaces);
    } catch (error) {
      this.reportHealth(error);
      this.reportFacts({ reachable: this.reachable, ...(await facts) });
      throw kubeFailure(error);
    }
    const count = listings.reduce((sum, { rows }) => sum + rows.length, 0);
    if (this.state.kind === 'closed') return count;
    this.reportHealth(null);
    const seenAt = this.owner.clock.now();
    const scopes = listings.map(({ scope }) => scope);
    this.owner.onScopes(this.id, scopes);
    for (const { scope, rows, version } of listings) {
      this.owner.onListing(this.id, scope, rows, startedAt);
      this.onVersion(scope, version);
    }
    const watched = this.watch(
      listings.map(({ scope, version }) => ({ scope, from: { version, isDoubtful: false }, seenAt })),
    );
    this.inBackground(watched.then(() => this.rereadNamespaces()));
    const { version, capabilities } = await facts;
    const scope = clusterScopeOf(scopes);
    const isLimited = scope.some(({ namespaces }) => namespaces !== null);
    const limited = isLimited
      ? await valueIfAnswered(this.cluster.capabilities(namespacesOf(scope)))
      : capabilities;
    const known = { ...(version && { version }), ...(limited && { capabilities: limited }) };
    this.reportFacts({ reachable: true, lastSyncAt: seenAt, scope, ...known });
    return count;
  }

  private async readFacts(): Promise<Pick<ClusterFacts, 'version' | 'capabilities'>> {
    const [version, capabilities] = await Promise.all([
      valueIfAnswered(this.cluster.version()),
      valueIfAnswered(this.cluster.capabilities(null)),
    ]);
    return { ...(version && { version }), ...(capabilities && { capabilities }) };
  }

  private reportFacts(facts: ClusterFacts): void {
    if (this.state.kind !== 'closed') this.owner.onFacts(this.id, facts);
  }

  private onVersion(scope: WorkloadScope, version: string): void {
    const { id: clusterId, owner, options } = this;
    owner.onPosition({ ...scope, clusterId, origin: options.origin, version, at: owner.clock.now() });
  }

  /** Resolves when the watch of each scope is open or has to wait. */
  private async watch(starts: readonly ScopeStart[]): Promise<void> {
    const abort = new AbortController();
    this.become({ kind: 'watching', abort });
    const { clock } = this.owner;
    // An open watch outlives the account, and a silent one outlives the cluster. So both are checked.
    this.stopChecks = clock.every(CLOUD.accountCheckMs, () => {
      this.inBackground(this.checkAccount());
      if (clock.monotonic() - this.namespacesAt >= POLICY.namespacesMs)
        this.inBackground(this.rereadNamespaces());
    });
    const [first, ...others] = starts;
    // The TLS session of the first connection shortens the handshakes of the others.
    if (first) await this.follow(first, abort.signal);
    await Promise.all(others.map((start) => this.follow(start, abort.signal)));
  }

  /** Watches a scope until `signal` aborts. Resolves when the watch is open or has to wait. */
  private follow({ scope, from, seenAt }: ScopeStart, signal: AbortSignal): Promise<void> {
    const begun = deferred<void>();
    const handler = this.follower(scope, seenAt, () => begun.resolve());
    const resource = workloadsResource(scope.kind, scope.namespace);
    const { clock } = this.owner;
    const ended = listAndWatch(this.cluster, resource, from, handler, signal, {
      clock,
      openWatches: this.openWatches,
    });
    ended.catch((error: unknown) => this.owner.onDefect(error));
    return Promise.race([begun.promise, ended]);
  }

  private inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.owner.onDefect(error));
  }

  private async rereadNamespaces(): Promise<void> {
    if (this.state.kind !== 'watching') return;
    const startedAt = this.owner.clock.monotonic();
    const rows = await listNamespaces(this.cluster).catch((error: unknown) => {
      kubeFailure(error);
      return undefined;
    });
    if (rows === undefined || this.state.kind !== 'watching') return;
    this.namespacesAt = startedAt;
    this.owner.onNamespaces(this.id, rows);
  }

  private async checkAccount(): Promise<void> {
    await valueIfAnswered(
      this.cluster.version().then(
        () => this.reportHealth(null),
        (error: unknown) => this.reportHealth(error),
      ),
    );
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
    const { owner, id } = this;
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
        this.reportHealth(error);
        if (error === null) return;
        onBegun();
        isLive = false;
        owner.onStale(id, scope, seenAt);
      },
    };
  }
}
