// The sleeps and wakes of workloads: one at a time per workload, with simultaneous wakes combined.
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { kubeFailure } from '../../adapters/kube/kube_errors.ts';
import type {
  BulkChange,
  ObservedWorkload,
  StoredWorkload,
  WorkloadsProtocol,
} from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { SleepCause } from '../../protocol/receipts.ts';
import type { Clock, MessageOf } from '../../runtime/actor.ts';
import { KeyedMutex } from '../../runtime/keyed_mutex.ts';
import { HTTP } from '../../settings/limits.ts';
import { isSleptBy, isWokenBy } from './receipt_checks.ts';
import type { RequestOrder } from './request_order.ts';
import { AlteredRequest, type DaemonPod, endCutOff, putToSleep, wakeUp } from './sleep.ts';
import { type InTurn, type WakeOrderOwner, WakeOrders, type WakeRequestOf } from './wake_order.ts';
import type { WakeQuota } from './wake_quota.ts';
import type { WorkloadEvents } from './workload_events.ts';
import { dryRunOf, type ScalableCluster, targetName } from './workload_patch.ts';
import type { WorkloadPolicies } from './workload_policies.ts';
import { currentReceiptOf, isSpent } from './workload_receipts.ts';
import { lastCountOf, withFailedSleep } from './workload_record.ts';
import type { WorkloadUse } from './workload_use.ts';

export interface ScaleChangesOwner extends WakeOrderOwner {
  readonly requests: RequestOrder;
  readonly clock: Clock;
  /** The name of this Berth. */
  readonly self: string;
  readonly ownPod: DaemonPod | null;
  readonly events: WorkloadEvents;
  readonly quota: WakeQuota;
  /** Throws unknown_workload. */
  get(id: string): StoredWorkload;
  /** Whether auto-sleep should put it to sleep; `fresh`: given the state just read. */
  isIdle(id: string, fresh?: ObservedWorkload): boolean;
  readonly use: Pick<WorkloadUse, 'wished'>;
  readonly policies: Pick<WorkloadPolicies, 'isDue' | 'onWish' | 'idleOf'>;
  call<R>(clusterId: string, call: (cluster: KubeCluster) => Promise<R>): Promise<R>;
  /** Records the cluster's answer, on disk and in the views. */
  applyChange(before: StoredWorkload, seen: ObservedWorkload): Promise<void>;
  /** Changes the record of a workload, also on disk. */
  changeRow(id: string, change: (row: StoredWorkload) => StoredWorkload): Promise<void>;
  /** The pods of a workload are about to be ended; false: they are not, after all. */
  tellSleep(id: string, isSleeping: boolean): void;
}

export class ScaleChanges {
  private readonly owner: ScaleChangesOwner;
  private readonly mutex = new KeyedMutex();
  /**
   * Wakes under way that later ones of the same subject may join, because no sleep has been requested since.
   * Another subject's quota must not refuse them. A request does not join the wake of a connection, which
   * leaves asleep what is under a hold.
   */
  private readonly waking = new Map<
    string,
    Pick<WakeRequestOf, 'by' | 'subject'> & { woken: Promise<ObservedWorkload> }
  >();
  readonly orders: WakeOrders;

  constructor(owner: ScaleChangesOwner) {
    this.owner = owner;
    this.orders = new WakeOrders(owner, (id, request) => this.wakeAlone(id, request));
  }

  /** Earlier bulk changes and windows leave these workloads to the request at the place `order`. */
  note(ids: readonly string[], to: BulkChange['to'], order: number): void {
    // An earlier sleep must not end what a wake needs.
    const concerned = to === 'awake' ? this.withNeeded(ids) : ids;
    for (const id of concerned) this.owner.requests.note(id, to, order);
    if (to === 'awake') this.wishAwake(concerned);
    else this.owner.policies.onWish(concerned, to);
  }

  /** A wake that needs these workloads is requested, or has been made. */
  private wishAwake(ids: Iterable<string>): void {
    this.owner.policies.onWish(ids, 'awake');
    this.owner.use.wished(ids);
  }

  private withNeeded(ids: readonly string[]): string[] {
    return [...ids, ...this.orders.neededBy(ids.flatMap((id) => this.owner.table.get(id) ?? []))];
  }

  /** See WorkloadsProtocol. `isBulk`: as a part of a bulk change. */
  sleep(message: MessageOf<WorkloadsProtocol, 'sleep'>, isBulk = false): Promise<ObservedWorkload> {
    const { id, by } = message;
    // A sleep that is no longer wanted must not precede a wake under way.
    if (by === 'idle' && !this.owner.isIdle(id)) return Promise.resolve(this.owner.get(id).seen);
    if (by === 'request' && !isBulk) this.note([id], 'asleep', this.owner.requests.next());
    // A wake requested from now on belongs after this sleep, also that of what needs this workload.
    for (const woken of [...this.waking.keys()])
      if (this.withNeeded([woken]).includes(id)) this.waking.delete(woken);
    const done = this.mutex.runExclusive(id, async () => {
      const { owner } = this;
      const before = owner.get(id);
      // No connection must begin on a pod that is about to end.
      owner.tellSleep(id, true);
      const seen = await this.patchToSleep(before, message).catch(async (error: unknown) => {
        owner.tellSleep(id, false);
        await this.noteFailedSleep(before, by, error);
        throw error;
      });
      if (seen.replicas > 0) owner.tellSleep(id, false);
      await owner.applyChange(before, seen);
      const slept = seen.replicas === 0;
      if (by === 'idle' && slept)
        owner.events.onAutoSlept(before, owner.policies.idleOf(before)?.minutes ?? 0, message.policy);
      return seen;
    });
    this.orders.overtake(id, done);
    return done;
  }

  /** See WorkloadsProtocol; replies when the cluster has accepted the change. */
  async wake(
    { id, by, operation, policy, subject }: Omit<MessageOf<WorkloadsProtocol, 'wake'>, 'waitMs'>,
    inTurn?: InTurn,
  ): Promise<ObservedWorkload> {
    const request = { by, operation, policy, subject, inTurn };
    if (by === 'request' && !inTurn) this.note([id], 'awake', this.owner.requests.next());
    if (by === 'connection') {
      this.refuseWhileHeld(id);
      // Something awake is not woken by it.
      if (this.owner.get(id).seen.replicas === 0) this.wishAwake(this.withNeeded([id]));
    }
    if (by === 'schedule') {
      const row = this.owner.get(id);
      // Not shared: it may leave the workload asleep.
      return this.owner.policies.isDue(row, 'awake') ? this.wakeInOrder(id, request) : row.seen;
    }
    const underWay = this.waking.get(id);
    const isJoined = underWay?.subject === subject && (by === 'connection' || underWay?.by === by);
    return underWay && isJoined ? underWay.woken : this.startWake(id, request);
  }

  /** Whether a sleep or wake is under way, or waits. */
  isChanging(id: string): boolean {
    return this.mutex.isBusy(id) || this.isWaking(id);
  }

  /** Whether it is awake, and something that it depends on may sleep, so that its wake has an effect. */
  isAwakeInNeed(row: StoredWorkload): boolean {
    return row.seen.replicas > 0 && this.orders.isOrdered(row, 'request');
  }

  /** Whether a wake is under way or waits for its dependencies. */
  isWaking(id: string): boolean {
    return this.waking.has(id) || this.orders.isWaiting(id);
  }

  /**
   * Checks one after the other whether `change` could be made of workloads, and changes nothing: the result
   * takes an id, and resolves with the workload as it would be, with `operation` in its receipt. Fails as the
   * change would. The wakes checked count against the quota together.
   */
  rehearsal(
    { to, holdMs, subject }: BulkChange,
    operation: string,
  ): (id: string) => Promise<ObservedWorkload> {
    const quota = this.owner.quota.copy();
    const rehearse = (id: string): Promise<ObservedWorkload> => {
      const before = this.owner.get(id);
      const wake = { by: 'request', operation, policy: undefined, subject } as const;
      return to === 'asleep'
        ? this.patchToSleep(before, { id, by: 'request', holdMs, operation }, dryRunOf)
        : this.patchAwake(before, wake, quota, dryRunOf);
    };
    // The change would wait for those under way.
    return (id) => this.mutex.runExclusive(id, async () => rehearse(id));
  }

  /** See WorkloadsProtocol. */
  async outcome(id: string, operation: string): Promise<{ replicas: number | null }> {
    const { clusterId, seen: target } = this.owner.get(id);
    const seen = await this.owner.call(clusterId, (cluster) => endCutOff(cluster, target, operation));
    if (isSleptBy(seen, operation)) return { replicas: 0 };
    return { replicas: isWokenBy(seen, operation) ? seen.replicas : null };
  }

  private patchToSleep(
    { id, clusterId, seen: target }: StoredWorkload,
    { by, holdMs, operation, policy }: MessageOf<WorkloadsProtocol, 'sleep'>,
    through: (cluster: KubeCluster) => ScalableCluster = (cluster) => cluster,
  ): Promise<ObservedWorkload> {
    const { clock, ownPod, self } = this.owner;
    const at = clock.now();
    const isStillWanted = (fresh: ObservedWorkload): boolean =>
      by === 'request' || (by === 'idle' ? this.owner.isIdle(id, fresh) : this.isSleepDue(id, fresh));
    const holdUntil = holdMs === null ? null : at + holdMs;
    const request = { by, at, holdUntil, from: self, ownPod, operation, policy, isStillWanted };
    return this.owner.call(clusterId, (cluster) => putToSleep(through(cluster), target, request));
  }

  /** Whether its schedule still has to put it to sleep, given the state just read. */
  private isSleepDue(id: string, seen: ObservedWorkload): boolean {
    return this.owner.policies.isDue({ ...this.owner.get(id), seen }, 'asleep');
  }

  private async noteFailedSleep(before: StoredWorkload, by: SleepCause, error: unknown): Promise<void> {
    const { owner } = this;
    const failure = kubeFailure(error);
    const isAltered = error instanceof AlteredRequest;
    // Reports of the watch from before it was put back come too late to count as changes by others.
    if (isAltered && error.after) await owner.applyChange(before, error.after);
    if (by === 'idle') owner.events.onFailed(before, 'auto-sleep', failure);
    if (by === 'idle' || (by === 'schedule' && isAltered))
      await owner.changeRow(before.id, (row) => withFailedSleep(row, before, failure.message, isAltered));
  }

  /** Throws wake_refused while a requested sleep refuses connections. */
  private refuseWhileHeld(id: string): void {
    const row = this.owner.get(id);
    const { seen } = row;
    const until = seen.replicas === 0 ? (currentReceiptOf(row)?.holdUntil ?? 0) : 0;
    const leftMs = until - this.owner.clock.now();
    // Another Berth's clock may be ahead. A receipt from far in the future was not written by a Berth.
    if (leftMs <= 0 || leftMs > 2 * HTTP.maxQueryDurationMs) return;
    const seconds = Math.ceil(leftMs / 1_000);
    throw fail(
      'wake_refused',
      `${targetName(seen)} was put to sleep on request, with a hold: connections do not wake it`,
      {
        hint: `Wake it by request, or connect again in ${seconds} s.`,
      },
    );
  }

  private startWake(id: string, request: WakeRequestOf): Promise<ObservedWorkload> {
    const woken = this.wakeInOrder(id, request).finally(() => {
      if (this.waking.get(id)?.woken === woken) this.waking.delete(id);
    });
    this.waking.set(id, { by: request.by, subject: request.subject, woken });
    return woken;
  }

  /** Wakes its dependencies, then the workload. Fails as `WakeOrders.wakeAfter`. */
  private wakeInOrder(id: string, request: WakeRequestOf): Promise<ObservedWorkload> {
    const row = this.owner.get(id);
    if (!this.orders.isOrdered(row, request.by)) return this.wakeAlone(id, request);
    return this.orders.wakeAfter(row, request, async (needed) => {
      const seen = await this.wakeAlone(id, request);
      // A window may have begun meanwhile, and its switches be still to come.
      this.wishAwake(needed);
      return seen;
    });
  }

  private wakeAlone(id: string, request: WakeRequestOf): Promise<ObservedWorkload> {
    const change = () =>
      this.mutex.runExclusive(id, async () => {
        // The sleep before it may have begun a hold.
        if (request.by === 'connection') this.refuseWhileHeld(id);
        return this.wakeNow(this.owner.get(id), request);
      });
    return request.inTurn ? request.inTurn(id, change) : change();
  }

  private patchAwake(
    before: StoredWorkload,
    { by, operation, policy, subject }: Omit<WakeRequestOf, 'inTurn'>,
    quota: WakeQuota,
    through: (cluster: KubeCluster) => ScalableCluster = (cluster) => cluster,
  ): Promise<ObservedWorkload> {
    const { owner } = this;
    const request = {
      by,
      at: owner.clock.now(),
      from: owner.self,
      desired: lastCountOf(before),
      maxReplicas: before.maxReplicas,
      isSpent: (fresh: ObservedWorkload) => isSpent(before, fresh),
      operation,
      policy,
    };
    const patch = () =>
      owner.call(before.clusterId, (cluster) => wakeUp(through(cluster), before.seen, request));
    return before.seen.replicas === 0 ? quota.count(subject, patch) : patch();
  }

  private async wakeNow(before: StoredWorkload, request: WakeRequestOf): Promise<ObservedWorkload> {
    const { owner } = this;
    try {
      const seen = await this.patchAwake(before, request, owner.quota);
      owner.events.onWoken(before.id);
      await owner.applyChange(before, seen);
      return seen;
    } catch (error) {
      if (request.by === 'connection')
        owner.events.onFailed(before, 'a connection through a tether does not wake it', kubeFailure(error));
      throw error;
    }
  }
}
