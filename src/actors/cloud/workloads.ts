// State: the records of all workloads, an informer of each cluster that is watched, sleeps and wakes under
// way. Rebuilt from: the store, then the clusters themselves.
import { kubeFailure } from '../../adapters/kube/kube_errors.ts';
import {
  type AutoSleepReply,
  autoSleepSettings,
  type ClusterFacts,
  type ClustersProtocol,
  type ObservedWorkload,
  type SleepCause,
  type StoredWorkload,
  type TetherTarget,
  type WorkloadKind,
  type WorkloadsProtocol,
} from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import {
  actor,
  type Clock,
  type Context,
  type Handlers,
  type MessageOf,
  type Ref,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { KeyedMutex } from '../../runtime/keyed_mutex.ts';
import { CLOUD, THREADS } from '../../settings/limits.ts';
import { ClusterConnections, type ClusterConnectionsConfig } from './cluster_connections.ts';
import type { ClusterInformerOwner } from './cluster_informer.ts';
import { type DaemonPod, putToSleep, wakeUp } from './sleep.ts';
import { podTroubles, ReadinessWaiters } from './workload_readiness.ts';
import { isIdle, isReady, isUndone, observe, withAutoSleep, workloadId } from './workload_record.ts';
import { WorkloadTable, type WorkloadTableOwner } from './workload_table.ts';

export interface WorkloadsConfig extends ClusterConnectionsConfig {
  /** The pod this runs in: it is never put to sleep. */
  ownPod: DaemonPod | null;
}

class Workloads implements ClusterInformerOwner, WorkloadTableOwner {
  readonly clock: Clock;
  private readonly context: Context;
  private readonly ownPod: DaemonPod | null;
  private readonly clusters: Ref<ClustersProtocol>;
  private readonly table: WorkloadTable;
  private readonly connections: ClusterConnections;
  private readonly readiness: ReadinessWaiters;
  /** Serialises the sleeps and wakes of each workload. */
  private readonly mutex = new KeyedMutex();
  /** Wakes under way that later requests may join: no sleep was asked for since. */
  private readonly waking = new Map<string, Promise<ObservedWorkload>>();
  private readonly startedAt: number;

  constructor(context: Context, config: WorkloadsConfig) {
    this.context = context;
    this.ownPod = config.ownPod;
    this.clock = context.clock;
    this.startedAt = context.clock.now();
    this.clusters = context.ref('clusters');
    this.readiness = new ReadinessWaiters(context.clock);
    this.connections = new ClusterConnections(config, this);
    this.table = new WorkloadTable(config.store, context.ref('cloudviews'), this);
    context.scope.defer(() => this.table.flush());
    context.scope.defer(() => this.connections.close());
  }

  async start(): Promise<void> {
    await this.table.load();
    await this.connections.start();
  }

  async sync(clusterId: string): Promise<{ synced: number }> {
    const informer = await this.connections.informer(clusterId);
    const synced = await informer.sync();
    await this.table.flush();
    return { synced };
  }

  async detach(clusterId: string): Promise<null> {
    const closed = this.connections.remove(clusterId);
    this.table.forgetCluster(clusterId);
    await Promise.all([closed, this.table.flush()]);
    return null;
  }

  attach(clusterId: string): null {
    this.connections.restore(clusterId);
    return null;
  }

  sleep(id: string, by: SleepCause): Promise<{ replicas: number; slept: boolean }> {
    // A wake that is asked for from now on belongs after this sleep.
    this.waking.delete(id);
    return this.mutex.runExclusive(id, async () => {
      const { seen: target, clusterId } = this.get(id);
      const isStillWanted = (fresh: ObservedWorkload): boolean => by === 'request' || this.isIdle(id, fresh);
      const request = { by, at: this.clock.now(), ownPod: this.ownPod, isStillWanted };
      const seen = await this.connections
        .call(clusterId, (cluster) => putToSleep(cluster, target, request))
        .catch(async (error: unknown) => {
          if (by === 'idle') await this.recordSleepReason(id, `auto-sleep: ${kubeFailure(error).message}`);
          throw error;
        });
      await this.applyChange(clusterId, target, seen);
      return { replicas: seen.replicas, slept: seen.replicas === 0 };
    });
  }

  async wake(id: string, waitMs: number | null): Promise<{ replicas: number }> {
    const { replicas } = await (this.waking.get(id) ?? this.startWake(id));
    if (waitMs !== null) await this.waitUntilReady(id, waitMs);
    return { replicas };
  }

  async autoSleep({
    id,
    enabled,
    minutes,
  }: MessageOf<WorkloadsProtocol, 'autoSleep'>): Promise<AutoSleepReply> {
    this.get(id);
    this.table.update(id, (row) => withAutoSleep(row, enabled, minutes, this.clock.now()));
    await this.table.flush();
    return autoSleepSettings(this.get(id));
  }

  idle(): { ids: string[] } {
    // The tethers have not reported their traffic yet.
    if (this.clock.now() - this.startedAt < CLOUD.sweeperStartDelayMs) return { ids: [] };
    return { ids: this.table.ids().filter((id) => this.isIdle(id)) };
  }

  clusterOf(id: string): { clusterId: string } {
    return { clusterId: this.get(id).clusterId };
  }

  async tetherTarget(id: string): Promise<TetherTarget> {
    const { clusterId } = this.get(id);
    const access = await this.connections.access(clusterId);
    const { seen, state } = this.get(id);
    const { kind, namespace, name, selector, replicas } = seen;
    return { clusterId, access, workload: { id, kind, namespace, name, selector }, state, replicas };
  }

  activity(id: string, at: number): null {
    this.table.update(id, (row) => ({ ...row, lastActivityAt: latest(at, row.lastActivityAt) }), true);
    return null;
  }

  traffic({ id, lastByteAt }: MessageOf<WorkloadsProtocol, 'traffic'>): null {
    const known = this.table.get(id)?.lastByteAt;
    // Several tethers may lead to one workload.
    if (latest(lastByteAt, known) !== known) this.table.update(id, (row) => ({ ...row, lastByteAt }), true);
    return null;
  }

  onListing(
    clusterId: string,
    kinds: readonly WorkloadKind[],
    rows: ObservedWorkload[],
    startedAt: number,
  ): void {
    this.table.replace(clusterId, kinds, rows, startedAt);
  }

  onWatchEvent(clusterId: string, row: ObservedWorkload, isDeleted: boolean): void {
    if (isDeleted) this.table.markDeleted(clusterId, row);
    else this.table.observe(clusterId, row);
  }

  onFacts(id: string, facts: ClusterFacts): void {
    this.clusters.tell('updateFacts', { id, ...facts });
  }

  onDefect(error: unknown): void {
    this.context.crash(error);
  }

  private get(id: string): StoredWorkload {
    const row = this.table.get(id);
    if (!row) throw fail('unknown_workload', `there is no workload ${id}`);
    return row;
  }

  /** `fresh`: the workload as it was just read; the watch may be behind it. */
  private isIdle(id: string, fresh?: ObservedWorkload): boolean {
    const row = this.table.get(id);
    if (!row) return false;
    const now = this.clock.now();
    const current = fresh ? observe(row, row.clusterId, fresh, now) : row;
    return isIdle(current, now);
  }

  private startWake(id: string): Promise<ObservedWorkload> {
    const woken = this.mutex
      .runExclusive(id, async () => {
        const { seen: target, clusterId, desiredReplicas } = this.get(id);
        const seen = await this.connections.call(clusterId, (cluster) =>
          wakeUp(cluster, target, desiredReplicas),
        );
        await this.applyChange(clusterId, target, seen);
        return seen;
      })
      .finally(() => {
        if (this.waking.get(id) === woken) this.waking.delete(id);
      });
    this.waking.set(id, woken);
    return woken;
  }

  /** Records what the cluster has answered to a change or a read of ours, on disk and in the views. */
  private async applyChange(
    clusterId: string,
    before: ObservedWorkload,
    seen: ObservedWorkload,
  ): Promise<void> {
    const uid = this.table.get(workloadId(clusterId, seen))?.seen.uid;
    // The watch may be ahead of the answer: the workload may have been deleted, or made anew, meanwhile.
    const isCurrent = uid === seen.uid || uid === before.uid;
    if (this.connections.has(clusterId) && isCurrent) this.table.observe(clusterId, seen);
    await this.table.flush();
  }

  /** Reads the workload itself: the watch may lag, and the account may lack the right to watch. */
  private async refresh({ clusterId, seen: before }: StoredWorkload): Promise<void> {
    const fresh = await this.connections.call(clusterId, (cluster) => cluster.getWorkload(before));
    if (fresh) await this.applyChange(clusterId, before, fresh.seen);
    else this.table.markDeleted(clusterId, before);
  }

  private async recordSleepReason(id: string, sleepReason: string): Promise<void> {
    this.table.update(id, (row) => ({ ...row, sleepReason }));
    await this.table.flush();
  }

  /** Resolves when a pod is Ready. Fails unknown_workload, or ready_timeout with what the pods wait for. */
  private async waitUntilReady(id: string, ms: number): Promise<void> {
    const woken = this.get(id).seen;
    if (isReady(woken) || (woken.replicas > 0 && (await this.readiness.wait(id, ms)))) return;
    const waited = this.get(id);
    if (waited.seen.replicas > 0) await tolerateFailure(this.refresh(waited), () => undefined);
    const { seen, clusterId, sleepReason } = this.get(id);
    const name = `${seen.kind} ${seen.namespace}/${seen.name}`;
    if (seen.replicas === 0)
      throw fail('ready_timeout', `${name} has no Ready pod: it was ${sleepReason}`, {
        hint: 'Wake it again.',
      });
    if (isReady(seen)) return;
    const troubles = await tolerateFailure(
      this.connections.call(clusterId, (cluster) => podTroubles(cluster, seen)),
      () => '',
    );
    throw fail(
      'ready_timeout',
      `${name} has no Ready pod after ${ms} ms${troubles === '' ? '' : `: ${troubles}`}`,
      {
        hint: 'The events of its pods say what they wait for: kubectl describe pod.',
      },
    );
  }

  onRowChange(id: string, before?: StoredWorkload, after?: StoredWorkload): void {
    // No pod will come: waiting ends at once.
    if (!after || after.seen.replicas === 0) this.readiness.resolve(id, false);
    else if (isReady(after.seen)) this.readiness.resolve(id, true);
    if (before && after && isUndone(before, after))
      this.nameAutoscaler(after).catch((error: unknown) => this.onDefect(error));
  }

  /**
   * Adds the HorizontalPodAutoscalers to the reason of an undone sleep: the workload itself does not name
   * them.
   */
  private async nameAutoscaler({ id, clusterId, seen, sleepReason }: StoredWorkload): Promise<void> {
    const names = await tolerateFailure(
      this.connections.call(clusterId, (cluster) => cluster.autoscalers(seen)),
      () => [],
    );
    if (names.length === 0) return;
    const reason = `${sleepReason}; HorizontalPodAutoscaler ${names.join(', ')} scales it`;
    this.table.update(id, (row) => (row.sleepReason === sleepReason ? { ...row, sleepReason: reason } : row));
  }
}

/** The later of two times; one that is not known counts as the earliest. */
const latest = (at: number, known: number | null | undefined): number => Math.max(at, known ?? 0);

async function init(context: Context, config: WorkloadsConfig): Promise<Handlers<WorkloadsProtocol>> {
  const workloads = new Workloads(context, config);
  await workloads.start();
  return {
    sync: ({ clusterId }) => context.replyLater(workloads.sync(clusterId)),
    detach: ({ clusterId }) => context.replyLater(workloads.detach(clusterId)),
    attach: ({ clusterId }) => workloads.attach(clusterId),
    sleep: ({ id, by }) => context.replyLater(workloads.sleep(id, by)),
    wake: ({ id, waitMs }) => context.replyLater(workloads.wake(id, waitMs)),
    autoSleep: (message) => context.replyLater(workloads.autoSleep(message)),
    idle: () => workloads.idle(),
    clusterOf: ({ id }) => workloads.clusterOf(id),
    tetherTarget: ({ id }) => context.replyLater(workloads.tetherTarget(id)),
    activity: ({ id, at }) => workloads.activity(id, at),
    traffic: (message) => workloads.traffic(message),
  };
}

/** At `workloads`: see WorkloadsProtocol. */
export const workloadsActor = actor<WorkloadsProtocol, WorkloadsConfig>('workloads', init, {
  mailbox: THREADS.mailboxCapacity,
});
