// What Berth knows about one cluster: listings on request followed by endless watches, and whether the
// cluster answers and accepts the account.

import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { isUnauthenticated, kubeFailure } from '../../adapters/kube/kube_errors.ts';
import type { NamespaceRow } from '../../adapters/kube/namespaces.ts';
import type { WatchPosition, WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { ClusterFacts, ClusterScope } from '../../protocol/clusters.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';
import { CLOUD, POLICY } from '../../settings/cloud_limits.ts';
import {
  clusterScopeOf,
  listNamespaces,
  listScopes,
  namespacesOf,
  type ScopeListing,
  scopesOf,
  scopesWithin,
} from './cluster_scopes.ts';
import { type ScopeStart, ScopeWatches, type ScopeWatchesOwner } from './scope_watches.ts';

/** Keeps the rows of all clusters. */
export interface ClusterInformerOwner extends ScopeWatchesOwner {
  /** From now on only these scopes are listed. */
  onScopes(clusterId: string, scopes: readonly WorkloadScope[]): void;
  /** The last `onPosition` of a scope, if it is from the API server `origin`. */
  position(clusterId: string, scope: WorkloadScope, origin: string): WatchPosition | null;
  onFacts(clusterId: string, facts: ClusterFacts): void;
  /** Resolves when everything that was reported so far is committed. Fails storage_full. */
  flush(): Promise<void>;
  /** The namespaces of the cluster; null: the account may not list them. */
  onNamespaces(clusterId: string, rows: readonly NamespaceRow[] | null): void;
}

/** The record of its cluster, as far as an informer needs it. */
export interface InformerOptions {
  id: string;
  cluster: KubeCluster;
  /** Identifies its API server. */
  origin: string;
  owner: ClusterInformerOwner;
  /** The only namespaces that are listed; empty: all that the account may list. */
  given: readonly string[];
  /** Namespaces in which an account without rights on all of them may have some. */
  likely: readonly string[];
  /** What the last sync was able to list; null: everything. */
  scope: readonly ClusterScope[] | null;
  /** When the workloads were last seen. */
  lastSyncAt: number | null;
}

type InformerState = 'idle' | 'watching' | 'closed';

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
  private readonly watches: ScopeWatches;
  private state: InformerState = 'idle';
  private syncing: Promise<number | null> | null = null;
  /** Ends the sync under way. */
  private syncEnd: Deferred<null> = deferred();
  /** The result of the last call; null: there was none. */
  private reachable: boolean | null = null;
  private authenticated: boolean | null = null;
  private reason: string | null = null;
  private stopChecks = (): void => undefined;
  /** When the namespaces were last listed (monotonic milliseconds). */
  private namespacesAt = Number.NEGATIVE_INFINITY;

  constructor(options: InformerOptions) {
    this.options = options;
    this.id = options.id;
    this.cluster = options.cluster;
    this.owner = options.owner;
    this.watches = new ScopeWatches(options, (error) => this.reportHealth(error));
  }

  /**
   * Lists everything again and watches from there. Joins a sync under way. Resolves with the number of
   * workloads, or with null when `stop` has ended it; fails as `kubeFailure` says.
   */
  sync(): Promise<number | null> {
    if (this.syncing) return this.syncing;
    this.syncEnd = deferred();
    this.syncing = Promise.race([this.syncNow(), this.syncEnd.promise]).finally(() => {
      this.syncing = null;
    });
    return this.syncing;
  }

  /** Syncs because other namespaces are given; begins without that if the cluster does not answer. */
  async beginAnew(): Promise<void> {
    this.dropOthers();
    await valueIfAnswered(this.sync());
    await this.begin();
  }

  /**
   * Watches what the last sync was able to list, as far as it is still given, unless it is already watched:
   * from an earlier watch's position, or after a new listing. Resolves when every watch is open or waiting
   * for the cluster. Nothing shown waits for the namespaces, so they are read after it, by `readNamespaces`.
   */
  async begin(): Promise<void> {
    if (this.syncing) await valueIfAnswered(this.syncing);
    if (this.state !== 'idle') return;
    const { lastSyncAt, origin } = this.options;
    await this.watch(
      this.dropOthers().map((one) => {
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
    if (!isNews || this.state === 'closed') return;
    if (!reachable && this.reachable) this.watches.reopen();
    this.reachable = reachable;
    this.authenticated = authenticated;
    this.reason = reason;
    this.owner.onFacts(this.id, { reachable, reason, ...(authenticated === null ? {} : { authenticated }) });
  }

  /** Ends the watches and a sync, and reports nothing more. Calls go on until `close`. */
  stop(): void {
    this.become('closed');
    this.syncEnd.resolve(null);
  }

  async close(): Promise<void> {
    this.become('closed');
    await this.cluster.close();
  }

  /** Drops what is listed outside of what is given now. Returns the scopes to watch until the next sync. */
  private dropOthers(): WorkloadScope[] {
    const { scope, given } = this.options;
    const listed = scopesOf(scope);
    const scopes = scopesWithin(listed, given);
    if (scopes !== listed) {
      this.owner.onScopes(this.id, scopes);
      this.reportFacts({ reachable: this.reachable, scope: clusterScopeOf(scopes) });
    }
    return scopes;
  }

  private become(next: InformerState): void {
    this.watches.end();
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
      listings = await listScopes(this.cluster, this.options.given, this.options.likely);
    } catch (error) {
      this.reportHealth(error);
      this.reportFacts({ reachable: this.reachable, ...(await facts) });
      throw kubeFailure(error);
    }
    const count = listings.reduce((sum, { rows }) => sum + rows.length, 0);
    if (this.state === 'closed') return count;
    this.reportHealth(null);
    const seenAt = this.owner.clock.now();
    const scopes = listings.map(({ scope }) => scope);
    this.owner.onScopes(this.id, scopes);
    for (const { scope, rows, version } of listings) {
      this.owner.onListing(this.id, scope, rows, startedAt);
      this.watches.onVersion(scope, version);
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
    if (this.state !== 'closed') this.owner.onFacts(this.id, facts);
  }

  /** Resolves when the watch of each scope is open or has to wait. */
  private watch(starts: readonly ScopeStart[]): Promise<void> {
    this.become('watching');
    const { clock } = this.owner;
    // An open watch outlives the account, and a silent one outlives the cluster. So both are checked.
    this.stopChecks = clock.every(CLOUD.accountCheckMs, () => {
      this.inBackground(this.checkAccount());
      if (clock.monotonic() - this.namespacesAt >= POLICY.namespacesMs)
        this.inBackground(this.rereadNamespaces());
    });
    return this.watches.begin(starts);
  }

  private inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.owner.onDefect(error));
  }

  private async rereadNamespaces(): Promise<void> {
    if (this.state !== 'watching') return;
    const startedAt = this.owner.clock.monotonic();
    const rows = await listNamespaces(this.cluster).catch((error: unknown) => {
      kubeFailure(error);
      return undefined;
    });
    if (rows === undefined || this.state !== 'watching') return;
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
}
