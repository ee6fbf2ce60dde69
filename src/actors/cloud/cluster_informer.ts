// One cluster as it is followed: a listing when it is asked for, then a watch of each kind that goes on for ever.

import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { workloadsResource } from '../../adapters/kube/kube_cluster.ts';
import { kubeFailure } from '../../adapters/kube/kube_http.ts';
import { listAndWatch } from '../../adapters/kube/list_watch.ts';
import {
  type ClusterFacts,
  type ObservedWorkload,
  WORKLOAD_KINDS,
  type WorkloadKind,
} from '../../protocol/cloud.ts';
import type { Clock } from '../../runtime/actor.ts';

/** Who keeps the rows of the clusters. */
export interface ClusterInformerOwner {
  readonly clock: Clock;
  /** Everything there is of these kinds, from a listing begun at `startedAt` (monotonic milliseconds). */
  onListing(
    clusterId: string,
    kinds: readonly WorkloadKind[],
    rows: ObservedWorkload[],
    startedAt: number,
  ): void;
  onWatchEvent(clusterId: string, row: ObservedWorkload, gone: boolean): void;
  onFacts(clusterId: string, facts: ClusterFacts): void;
  /** What a follower has thrown: a defect. */
  onDefect(error: unknown): void;
}

export class ClusterInformer {
  readonly id: string;
  readonly cluster: KubeCluster;
  private readonly owner: ClusterInformerOwner;
  private watching = new AbortController();
  private syncing: Promise<number> | null = null;
  private reachable: boolean | null = null;
  private isClosed = false;

  constructor(id: string, cluster: KubeCluster, owner: ClusterInformerOwner) {
    this.id = id;
    this.cluster = cluster;
    this.owner = owner;
  }

  /** Lists both kinds anew and watches from there. Two at a time are one. Gives how many there are; fails as `explain` says. */
  sync(): Promise<number> {
    this.syncing ??= this.syncNow().finally(() => {
      this.syncing = null;
    });
    return this.syncing;
  }

  /** Follows it, with a listing first. */
  start(): void {
    this.watch(() => null);
  }

  /** Whether a call has reached the cluster; told to the owner when it changes. */
  reportHealth(error: unknown): void {
    const reachable = error === null || kubeFailure(error).code !== 'cluster_unreachable';
    if (reachable === this.reachable || this.isClosed) return;
    this.reachable = reachable;
    this.owner.onFacts(this.id, { reachable });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.watching.abort();
    await this.cluster.close();
  }

  private async syncNow(): Promise<number> {
    const startedAt = this.owner.clock.monotonic();
    // What the account may do explains a listing that is denied, and never fails one.
    const facts = this.readFacts();
    const listings = await Promise.all(
      WORKLOAD_KINDS.map((kind) => this.cluster.list(workloadsResource(kind))),
    ).catch(async (error: unknown) => {
      this.reportHealth(error);
      this.reportFacts({ reachable: this.reachable, ...(await facts) });
      throw kubeFailure(error);
    });
    const rows = listings.flatMap((listing) => listing.rows);
    if (this.isClosed) return rows.length;
    this.reachable = true;
    this.owner.onListing(this.id, WORKLOAD_KINDS, rows, startedAt);
    this.watch((kind) => listings[WORKLOAD_KINDS.indexOf(kind)]?.version ?? null);
    this.reportFacts({ reachable: true, lastSyncAt: this.owner.clock.now(), ...(await facts) });
    return rows.length;
  }

  private async readFacts(): Promise<Pick<ClusterFacts, 'version' | 'capabilities'>> {
    const [version, capabilities] = await Promise.allSettled([
      this.cluster.version(),
      this.cluster.capabilities(),
    ]);
    return {
      ...(version.status === 'fulfilled' ? { version: version.value } : {}),
      ...(capabilities.status === 'fulfilled' ? { capabilities: capabilities.value } : {}),
    };
  }

  private reportFacts(facts: ClusterFacts): void {
    if (!this.isClosed) this.owner.onFacts(this.id, facts);
  }

  private watch(from: (kind: WorkloadKind) => string | null): void {
    this.watching.abort();
    this.watching = new AbortController();
    const { signal } = this.watching;
    const owner = this.owner;
    for (const kind of WORKLOAD_KINDS) {
      const follower = {
        onListed: (rows: ObservedWorkload[], startedAt: number) =>
          owner.onListing(this.id, [kind], rows, startedAt),
        onChanged: (row: ObservedWorkload, gone: boolean) => owner.onWatchEvent(this.id, row, gone),
        onHealth: (error: unknown) => this.reportHealth(error),
      };
      const { clock } = owner;
      listAndWatch(this.cluster, workloadsResource(kind), from(kind), follower, signal, { clock }).catch(
        (error: unknown) => owner.onDefect(error),
      );
    }
  }
}
