// State: the records of all workloads, an informer for each watched cluster, and the sleeps and wakes under
// way. Rebuilt from: the store, then the clusters themselves.
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import {
  type AutoSleepReply,
  autoSleepSettings,
  type BulkChange,
  type BulkResult,
  type ObservedWorkload,
  type StoredWorkload,
  type TetherTarget,
  type WorkloadRow,
  type WorkloadsProtocol,
} from '../../protocol/cloud.ts';
import type { ReviewedRight } from '../../protocol/cluster_account.ts';
import { fail } from '../../protocol/errors.ts';
import type { Quotas } from '../../protocol/quotas.ts';
import {
  actor,
  type Clock,
  type Context,
  type Handlers,
  type MessageOf,
  type ReplyOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { THREADS } from '../../settings/limits.ts';
import { ActivityReports } from './activity_reports.ts';
import { BulkAudit } from './bulk_audit.ts';
import { BulkChanges } from './bulk_changes.ts';
import { ClusterConnections, type ClusterConnectionsConfig } from './cluster_connections.ts';
import { CommitTeller } from './commit_teller.ts';
import { InformerReports } from './informer_reports.ts';
import { LabelChanges } from './label_changes.ts';
import { nameAutoscaler } from './name_autoscaler.ts';
import { ReadyWait } from './ready_wait.ts';
import { isSleptBy } from './receipt_checks.ts';
import { RequestOrder } from './request_order.ts';
import { ScaleChanges, type ScaleChangesOwner } from './scale_changes.ts';
import type { DaemonPod } from './sleep.ts';
import { steadyClock } from './steady_clock.ts';
import { WakeQuota } from './wake_quota.ts';
import { WorkloadEvents } from './workload_events.ts';
import { governedHandlers, WorkloadPolicies } from './workload_policies.ts';
import { isUndone } from './workload_receipts.ts';
import { isIdle, observe, withAutoSleep } from './workload_record.ts';
import { tableHandlers, WorkloadTable, type WorkloadTableOwner } from './workload_table.ts';
import { WorkloadUse } from './workload_use.ts';

export interface WorkloadsConfig extends ClusterConnectionsConfig {
  /** The pod this runs in, which is never put to sleep. */
  ownPod: DaemonPod | null;
  /** The name of this Berth, as other Berths see it on the workloads. */
  self: string;
  quotas: Pick<Quotas, 'wakesPerHour'>;
}

class Workloads implements WorkloadTableOwner, ScaleChangesOwner {
  readonly clock: Clock;
  readonly steady: Clock;
  readonly self: string;
  readonly quota: WakeQuota;
  private readonly context: Context;
  readonly ownPod: DaemonPod | null;
  readonly events: WorkloadEvents;
  readonly requests = new RequestOrder();
  private readonly store: CloudStore;
  private readonly teller: CommitTeller;
  readonly table: WorkloadTable;
  private readonly connections: ClusterConnections;
  readonly readyWait: ReadyWait;
  private readonly activityReports: ActivityReports;
  private readonly scale: ScaleChanges;
  private readonly bulk: BulkChanges;
  readonly audit = new BulkAudit();
  readonly policies: WorkloadPolicies;
  readonly use: WorkloadUse;
  private readonly labels: LabelChanges;
  private readonly startedAt: number;

  constructor(context: Context, config: WorkloadsConfig) {
    this.context = context;
    this.ownPod = config.ownPod;
    this.self = config.self;
    this.quota = new WakeQuota(context.clock, config.quotas.wakesPerHour);
    this.clock = context.clock;
    this.steady = steadyClock(context.clock);
    this.startedAt = context.clock.monotonic();
    this.events = new WorkloadEvents(context.ref('cloudevents'));
    this.scale = new ScaleChanges(this);
    this.activityReports = new ActivityReports({
      clock: this.clock,
      self: this.self,
      change: (row, change) => this.changeQuietly(row, change),
      onDefect: (error) => this.onDefect(error),
    });
    this.table = new WorkloadTable(config.store, context.ref('cloudviews'), this);
    const { self, clock, steady, table, activityReports: reports } = this;
    const onScheduleChange = (): void => context.ref('policies').tell('changed', {});
    this.policies = new WorkloadPolicies({ self, clock, table, orders: this.scale.orders, onScheduleChange });
    const onDefect = (error: unknown): void => this.onDefect(error);
    const isConnected = (clusterId: string): boolean => this.connections.has(clusterId);
    const clusters = context.ref('clusters');
    this.connections = new ClusterConnections(
      config,
      new InformerReports({ clock, table, policies: this.policies, clusters, isConnected, onDefect }),
    );
    this.readyWait = new ReadyWait({
      clock: this.clock,
      get: (id) => this.get(id),
      call: (clusterId, work) => this.connections.call(clusterId, work),
      refresh: (row) => this.refresh(row),
    });
    this.bulk = new BulkChanges({
      rows: () => this.table.rows(),
      get: (id) => this.table.get(id),
      requests: this.requests,
      note: (ids, to, order) => this.scale.note(ids, to, order),
      sleep: (id, change) => this.scale.sleep({ id, by: 'request', ...change }, true),
      wake: (id, change, inTurn) => this.scale.wake({ id, by: 'request', ...change }, inTurn),
      isWaking: (id) => this.scale.isWaking(id),
      isSettled: (row) =>
        this.table.isCurrent(row) && !this.scale.isChanging(row.id) && !this.scale.isAwakeInNeed(row),
      rehearsal: (change, operation) => this.scale.rehearsal(change, operation),
      onFailed: (change, results) => this.reportFailed(change, results),
    });
    this.labels = new LabelChanges((ids) => context.ref('principals').tell('relabelled', { ids }));
    this.store = config.store;
    this.teller = new CommitTeller({
      store: config.store,
      views: context.ref('cloudviews'),
      events: context.ref('cloudevents'),
      clock: context.clock,
      onDefect: (error) => this.onDefect(error),
    });
    this.use = new WorkloadUse({ clock, steady, table, reports });
    context.scope.defer(() => this.teller.close());
    context.scope.defer(() => this.table.close());
    context.scope.defer(() => this.connections.close());
  }

  async start(): Promise<void> {
    await this.teller.start();
    this.audit.load(await this.store.operations());
    const clusters = await this.store.clusters();
    for (const cluster of clusters) await this.table.load(cluster);
    await this.table.flush();
    this.connections.start(clusters.map(({ id }) => id)).catch((error: unknown) => this.onDefect(error));
  }

  async sync(clusterId: string): Promise<{ synced: number }> {
    const synced = await this.connections.sync(clusterId);
    await this.table.flush();
    return { synced };
  }

  rights(clusterId: string, namespaces: readonly string[] | null): Promise<ReviewedRight[]> {
    return this.connections.rights(clusterId, namespaces);
  }

  async requestToken({ clusterId, account, lifetimeS }: MessageOf<WorkloadsProtocol, 'requestToken'>) {
    const token = await this.connections.call(clusterId, (cluster) =>
      cluster.requestToken(account, lifetimeS),
    );
    return { token };
  }

  async detach(clusterId: string): Promise<null> {
    const closed = this.connections.remove(clusterId);
    this.policies.forgetCluster(clusterId);
    this.table.forgetCluster(clusterId);
    await Promise.all([closed, this.table.flush()]);
    return null;
  }

  async renew(clusterId: string): Promise<null> {
    await this.connections.reconnect(clusterId);
    return null;
  }

  attach(clusterId: string): null {
    this.connections.restore(clusterId);
    return null;
  }

  async sleep(message: MessageOf<WorkloadsProtocol, 'sleep'>): Promise<{ replicas: number; slept: boolean }> {
    const seen = await this.scale.sleep(message);
    // Already done and undone since, so the answer is the same as then.
    const replicas = isSleptBy(seen, message.operation) ? 0 : seen.replicas;
    return { replicas, slept: seen.replicas === 0 };
  }

  async wake(message: MessageOf<WorkloadsProtocol, 'wake'>): Promise<{ replicas: number }> {
    const { id, waitMs } = message;
    const { replicas } = await this.scale.wake(message);
    if (waitMs === null) return { replicas };
    await this.readyWait.untilReady(id, waitMs);
    // A read after the answer must show the result.
    await this.commitWithRoom();
    return { replicas };
  }

  async untilReady({ id, waitMs }: MessageOf<WorkloadsProtocol, 'untilReady'>): Promise<null> {
    await this.readyWait.untilReady(id, waitMs);
    return null;
  }

  endLongRequests(): null {
    this.readyWait.end();
    this.bulk.end();
    return null;
  }

  outcome({ id, operation }: MessageOf<WorkloadsProtocol, 'outcome'>): Promise<{ replicas: number | null }> {
    return this.scale.outcome(id, operation);
  }

  tetherChanged(message: MessageOf<WorkloadsProtocol, 'tetherChanged'>): null {
    this.events.onTether(this.table.get(message.id), message);
    return null;
  }

  changeMany(change: BulkChange): Promise<BulkResult[]> {
    return this.audit.during(change, () => this.bulk.run(change));
  }

  private async reportFailed(change: BulkChange, results: readonly BulkResult[]): Promise<void> {
    for (const result of results) {
      const events = this.audit.failureEvents(change, result);
      if (events.length > 0) this.table.report(result.clusterId, result.id, events);
    }
    // On a full disk they are committed later.
    await tolerateFailure(this.table.flush(), () => undefined);
  }

  async autoSleep({
    id,
    enabled,
    minutes,
  }: MessageOf<WorkloadsProtocol, 'autoSleep'>): Promise<AutoSleepReply> {
    this.get(id);
    this.table.update(id, (row) => withAutoSleep(row, enabled, minutes, this.steady.now()));
    await this.table.flush();
    const row = this.get(id);
    if (row.autoSleep) this.activityReports.announce(row);
    else this.activityReports.withdraw(row);
    return autoSleepSettings(row);
  }

  idle(): ReplyOf<WorkloadsProtocol, 'idle'> {
    // Tethers have not reported their traffic yet.
    if (this.clock.monotonic() - this.startedAt < CLOUD.sweeperStartDelayMs) return { ids: [] };
    for (const row of this.table.rows()) this.activityReports.announce(row);
    const ids = this.table.ids().filter((id) => this.isIdle(id));
    return { ids, ...this.policies.deciders(ids) };
  }

  referenceOf(id: string): ReplyOf<WorkloadsProtocol, 'referenceOf'> {
    const { clusterId, seen } = this.get(id);
    return { clusterId, kind: seen.kind, namespace: seen.namespace, name: seen.name };
  }

  async tetherTarget(id: string): Promise<TetherTarget> {
    const { clusterId } = this.get(id);
    const access = await this.connections.access(clusterId);
    const { seen, state } = this.get(id);
    const { kind, namespace, name, selector, replicaSet, replicas } = seen;
    const workload = { id, kind, namespace, name, selector, replicaSet };
    return { clusterId, access, workload, state, replicas };
  }

  onDefect(error: unknown): void {
    this.context.crash(error);
  }

  get(id: string): StoredWorkload {
    const row = this.table.get(id);
    if (!row) throw fail('unknown_workload', `there is no workload ${id}`);
    return row;
  }

  /** `fresh`: the workload as just read; the watch may be behind. */
  isIdle(id: string, fresh?: ObservedWorkload): boolean {
    const row = this.table.get(id);
    if (!row) return false;
    const now = this.steady.now();
    const current = fresh ? observe(row, row.clusterId, fresh, { self: this.self, now }) : row;
    const minutes = this.policies.idleOf(current)?.minutes ?? null;
    return isIdle(current, minutes, now) && !this.scale.orders.keepsAwake(id);
  }

  rulesOf(row: StoredWorkload): Pick<WorkloadRow, 'policy' | 'after'> {
    return { policy: this.policies.shown(row), after: this.scale.orders.shown(row) };
  }

  call<R>(clusterId: string, call: (cluster: KubeCluster) => Promise<R>): Promise<R> {
    return this.connections.call(clusterId, call);
  }

  tellSleep(workloadId: string, isSleeping: boolean): void {
    this.context.ref('tethers').tell('workloadSleeping', { workloadId, isSleeping });
  }

  /** Records the cluster's answer to our own change or read, as `commitWithRoom` does, and in the views. */
  async applyChange(before: StoredWorkload, seen: ObservedWorkload): Promise<void> {
    const { clusterId, id } = before;
    const uid = this.table.get(id)?.seen.uid;
    // The watch may be ahead of the answer: the workload may have been deleted or recreated meanwhile.
    const isCurrent = uid === seen.uid || uid === before.seen.uid;
    if (this.connections.has(clusterId) && isCurrent) this.table.observe(clusterId, seen);
    // A workload that is no longer listed, or is listed anew, has its change in the audit log all the same.
    const untold = this.audit.changeEvents(before, { ...before, seen });
    if (untold.length > 0) this.table.report(clusterId, id, untold);
    await this.commitWithRoom();
  }

  /** Commits what has changed, on a full disk later: what a cluster has carried out has not failed. */
  private async commitWithRoom(): Promise<void> {
    await tolerateFailure(this.table.flush(), (failure) => {
      if (failure.code !== 'storage_full') throw failure;
    });
  }

  /** Reads the workload from its cluster: the watch may lag, or the account may lack the right to watch. */
  async refresh(before: StoredWorkload): Promise<void> {
    const { clusterId, seen } = before;
    const fresh = await this.connections.call(clusterId, (cluster) => cluster.getWorkload(seen));
    if (fresh) await this.applyChange(before, fresh.seen);
    else this.table.markDeleted(clusterId, seen);
  }

  update(id: string, change: (row: StoredWorkload) => StoredWorkload): void {
    this.table.update(id, change);
  }

  async changeRow(id: string, change: (row: StoredWorkload) => StoredWorkload): Promise<void> {
    this.table.update(id, change);
    await this.table.flush();
  }

  /** Makes a change in the background, and records the result. */
  private async changeQuietly(
    before: StoredWorkload,
    change: (cluster: KubeCluster) => Promise<ObservedWorkload | null>,
  ): Promise<void> {
    await tolerateFailure(
      this.connections.call(before.clusterId, change).then((seen) => seen && this.applyChange(before, seen)),
      () => undefined,
    );
  }

  onRowChange(id: string, before?: StoredWorkload, after?: StoredWorkload): void {
    this.readyWait.onChange(id);
    this.policies.onRowChange(before, after);
    this.scale.orders.onRowChange(before, after);
    this.labels.onRowChange(id, before, after);
    if (before && after && isUndone(before, after))
      nameAutoscaler(this, after).catch((error: unknown) => this.onDefect(error));
  }
}

async function init(context: Context, config: WorkloadsConfig): Promise<Handlers<WorkloadsProtocol>> {
  const workloads = new Workloads(context, config);
  await workloads.start();
  return {
    sync: ({ clusterId }) => context.replyLater(workloads.sync(clusterId)),
    rights: ({ clusterId, namespaces }) => context.replyLater(workloads.rights(clusterId, namespaces)),
    requestToken: (message) => context.replyLater(workloads.requestToken(message)),
    detach: ({ clusterId }) => context.replyLater(workloads.detach(clusterId)),
    attach: ({ clusterId }) => workloads.attach(clusterId),
    renew: ({ clusterId }) => context.replyLater(workloads.renew(clusterId)),
    sleep: (message) => context.replyLater(workloads.sleep(message)),
    wake: (message) => context.replyLater(workloads.wake(message)),
    untilReady: (message) => context.replyLater(workloads.untilReady(message)),
    endLongRequests: () => workloads.endLongRequests(),
    outcome: (message) => context.replyLater(workloads.outcome(message)),
    tetherChanged: (message) => workloads.tetherChanged(message),
    changeMany: (message) => context.replyLater(workloads.changeMany(message)),
    autoSleep: (message) => context.replyLater(workloads.autoSleep(message)),
    idle: () => workloads.idle(),
    ...governedHandlers(context, workloads.policies),
    ...tableHandlers(workloads.table),
    referenceOf: ({ id }) => workloads.referenceOf(id),
    tetherTarget: ({ id }) => context.replyLater(workloads.tetherTarget(id)),
    activity: ({ id, at }) => workloads.use.activity(id, at),
    traffic: (message) => workloads.use.traffic(message),
  };
}

/** At `workloads`: see WorkloadsProtocol. */
export const workloadsActor = actor<WorkloadsProtocol, WorkloadsConfig>('workloads', init, {
  mailbox: THREADS.mailboxCapacity,
});
