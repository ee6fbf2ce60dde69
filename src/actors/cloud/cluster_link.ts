// One cluster as it is followed: a listing when it is asked for, then a watch of each kind that goes on for ever.

import { follow } from '../../adapters/kube/follow.ts';
import { explain } from '../../adapters/kube/http.ts';
import type { KubeCluster } from '../../adapters/kube/kube.ts';
import { workloadsOf } from '../../adapters/kube/kube.ts';
import {
  type ClusterFacts,
  type SeenWorkload,
  WORKLOAD_KINDS,
  type WorkloadKind,
} from '../../protocol/cloud.ts';
import type { Clock } from '../../runtime/actor.ts';

/** Who keeps the rows of the clusters. */
export interface LinkOwner {
  readonly clock: Clock;
  /** Everything there is of these kinds, from a listing begun at `startedAt` (monotonic milliseconds). */
  listed(clusterId: string, kinds: readonly WorkloadKind[], rows: SeenWorkload[], startedAt: number): void;
  changed(clusterId: string, row: SeenWorkload, gone: boolean): void;
  looked(clusterId: string, facts: ClusterFacts): void;
  /** What a follower has thrown: a defect. */
  crashed(error: unknown): void;
}

export class ClusterLink {
  readonly id: string;
  readonly cluster: KubeCluster;
  private readonly owner: LinkOwner;
  private following = new AbortController();
  private syncing: Promise<number> | null = null;
  private reachable: boolean | null = null;
  private isClosed = false;

  constructor(id: string, cluster: KubeCluster, owner: LinkOwner) {
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
  begin(): void {
    this.follow(() => null);
  }

  /** Whether a call has reached the cluster; told to the owner when it changes. */
  health(error: unknown): void {
    const reachable = error === null || explain(error).code !== 'cluster_unreachable';
    if (reachable === this.reachable || this.isClosed) return;
    this.reachable = reachable;
    this.owner.looked(this.id, { reachable });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.following.abort();
    await this.cluster.close();
  }

  private async syncNow(): Promise<number> {
    const startedAt = this.owner.clock.monotonic();
    // What the account may do explains a listing that is denied, and never fails one.
    const facts = this.facts();
    const listings = await Promise.all(
      WORKLOAD_KINDS.map((kind) => this.cluster.list(workloadsOf(kind))),
    ).catch(async (error: unknown) => {
      this.health(error);
      this.tell({ reachable: this.reachable, ...(await facts) });
      throw explain(error);
    });
    const rows = listings.flatMap((listing) => listing.rows);
    if (this.isClosed) return rows.length;
    this.reachable = true;
    this.owner.listed(this.id, WORKLOAD_KINDS, rows, startedAt);
    this.follow((kind) => listings[WORKLOAD_KINDS.indexOf(kind)]?.version ?? null);
    this.tell({ reachable: true, lastSyncAt: this.owner.clock.now(), ...(await facts) });
    return rows.length;
  }

  private async facts(): Promise<Pick<ClusterFacts, 'version' | 'capabilities'>> {
    const [version, capabilities] = await Promise.allSettled([
      this.cluster.version(),
      this.cluster.capabilities(),
    ]);
    return {
      ...(version.status === 'fulfilled' ? { version: version.value } : {}),
      ...(capabilities.status === 'fulfilled' ? { capabilities: capabilities.value } : {}),
    };
  }

  private tell(facts: ClusterFacts): void {
    if (!this.isClosed) this.owner.looked(this.id, facts);
  }

  private follow(from: (kind: WorkloadKind) => string | null): void {
    this.following.abort();
    this.following = new AbortController();
    const { signal } = this.following;
    const owner = this.owner;
    for (const kind of WORKLOAD_KINDS) {
      const follower = {
        listed: (rows: SeenWorkload[], startedAt: number) => owner.listed(this.id, [kind], rows, startedAt),
        changed: (row: SeenWorkload, gone: boolean) => owner.changed(this.id, row, gone),
        health: (error: unknown) => this.health(error),
      };
      const { clock } = owner;
      follow(this.cluster, workloadsOf(kind), from(kind), follower, signal, { clock }).catch(
        (error: unknown) => owner.crashed(error),
      );
    }
  }
}
