// What Berth knows of one cluster: listings on request, then an endless watch of each kind of workload.

import { type KubeCluster, workloadsResource } from '../../adapters/kube/kube_cluster.ts';
import { kubeFailure } from '../../adapters/kube/kube_errors.ts';
import { listAndWatch } from '../../adapters/kube/list_watch.ts';
import {
  type ClusterFacts,
  type ObservedWorkload,
  WORKLOAD_KINDS,
  type WorkloadKind,
} from '../../protocol/cloud.ts';
import type { Clock } from '../../runtime/actor.ts';

/** Keeps the rows of all clusters. */
export interface ClusterInformerOwner {
  readonly clock: Clock;
  /** Everything there is of these kinds, from a listing begun at `startedAt` (monotonic milliseconds). */
  onListing(
    clusterId: string,
    kinds: readonly WorkloadKind[],
    rows: ObservedWorkload[],
    startedAt: number,
  ): void;
  onWatchEvent(clusterId: string, row: ObservedWorkload, isDeleted: boolean): void;
  onFacts(clusterId: string, facts: ClusterFacts): void;
  /** A watch has ended with a defect. */
  onDefect(error: unknown): void;
}

type InformerState = { kind: 'idle' } | { kind: 'watching'; abort: AbortController } | { kind: 'closed' };

/** `value`, or undefined when the call fails; a defect is rethrown. */
async function valueIfAnswered<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    kubeFailure(error);
    return undefined;
  }
}

export class ClusterInformer {
  readonly id: string;
  readonly cluster: KubeCluster;
  private readonly owner: ClusterInformerOwner;
  private state: InformerState = { kind: 'idle' };
  private syncing: Promise<number> | null = null;
  /** Whether the last call has reached the cluster; null: there was none. */
  private reachable: boolean | null = null;

  constructor(id: string, cluster: KubeCluster, owner: ClusterInformerOwner) {
    this.id = id;
    this.cluster = cluster;
    this.owner = owner;
  }

  /**
   * Lists both kinds anew and watches from there. Joins a sync that is under way. Resolves with the number of
   * workloads; fails as `kubeFailure` says.
   */
  sync(): Promise<number> {
    this.syncing ??= this.syncNow().finally(() => {
      this.syncing = null;
    });
    return this.syncing;
  }

  /** Watches it, with a listing first. */
  start(): void {
    this.watch(() => null);
  }

  /**
   * Notes how a call has ended, null: well. The owner is told when that changes whether the cluster is
   * reachable.
   */
  reportHealth(error: unknown): void {
    const reachable = error === null || kubeFailure(error).code !== 'cluster_unreachable';
    if (reachable === this.reachable || this.state.kind === 'closed') return;
    this.reachable = reachable;
    this.owner.onFacts(this.id, { reachable });
  }

  async close(): Promise<void> {
    this.become({ kind: 'closed' });
    await this.cluster.close();
  }

  private become(next: InformerState): void {
    if (this.state.kind === 'watching') this.state.abort.abort();
    this.state = next;
  }

  private async syncNow(): Promise<number> {
    const startedAt = this.owner.clock.monotonic();
    // What the account may do explains a listing that is denied, and never fails one.
    const facts = this.readFacts();
    const [count] = await Promise.all([this.listAndFollow(startedAt, facts), facts]);
    return count;
  }

  private async listAndFollow(
    startedAt: number,
    facts: Promise<Pick<ClusterFacts, 'version' | 'capabilities'>>,
  ): Promise<number> {
    const listings = await Promise.all(
      WORKLOAD_KINDS.map((kind) => this.cluster.list(workloadsResource(kind))),
    ).catch(async (error: unknown) => {
      this.reportHealth(error);
      this.reportFacts({ reachable: this.reachable, ...(await facts) });
      throw kubeFailure(error);
    });
    const rows = listings.flatMap((listing) => listing.rows);
    if (this.state.kind === 'closed') return rows.length;
    this.reachable = true;
    this.owner.onListing(this.id, WORKLOAD_KINDS, rows, startedAt);
    this.watch((kind) => listings[WORKLOAD_KINDS.indexOf(kind)]?.version ?? null);
    this.reportFacts({ reachable: true, lastSyncAt: this.owner.clock.now(), ...(await facts) });
    return rows.length;
  }

  private async readFacts(): Promise<Pick<ClusterFacts, 'version' | 'capabilities'>> {
    const [version, capabilities] = await Promise.all([
      valueIfAnswered(this.cluster.version()),
      valueIfAnswered(this.cluster.capabilities()),
    ]);
    return { ...(version && { version }), ...(capabilities && { capabilities }) };
  }

  private reportFacts(facts: ClusterFacts): void {
    if (this.state.kind !== 'closed') this.owner.onFacts(this.id, facts);
  }

  private watch(versionOf: (kind: WorkloadKind) => string | null): void {
    const abort = new AbortController();
    this.become({ kind: 'watching', abort });
    const { owner } = this;
    for (const kind of WORKLOAD_KINDS) {
      const handler = {
        onListed: (rows: ObservedWorkload[], startedAt: number) =>
          owner.onListing(this.id, [kind], rows, startedAt),
        onChanged: (row: ObservedWorkload, isDeleted: boolean) => owner.onWatchEvent(this.id, row, isDeleted),
        onHealth: (error: unknown) => this.reportHealth(error),
      };
      listAndWatch(this.cluster, workloadsResource(kind), versionOf(kind), handler, abort.signal, {
        clock: owner.clock,
      }).catch((error: unknown) => owner.onDefect(error));
    }
  }
}
