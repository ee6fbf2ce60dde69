// Connections that wait for a pod: the workload is woken for them once, and they are let go when there is nothing to wait for.

import type { ForwardTarget, WorkloadsProtocol } from '../../protocol/cloud.ts';
import { type Clock, isFailure, type Ref } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/limits.ts';
import type { TetherPods, Trouble } from './pods.ts';
import type { Session } from './session.ts';

export interface PendingConnectionsOptions {
  clock: Clock;
  workloads: Ref<WorkloadsProtocol>;
  workloadId: string;
  /** Whether the workload may be woken. */
  wake: boolean;
  pods: TetherPods;
  /** Connections that wait, of all tethers of the thread. */
  pendingInThread: { count: number };
  /** An error that is nobody's answer. */
  onDefect(error: unknown): void;
}

/** Codes that say nothing of the cluster: the cloud's own thread is busy or begins anew. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  'overloaded',
  'deadline',
  'crashed',
  'gone',
  'daemon_busy',
]);

const isAsleep = ({ state, replicas }: ForwardTarget): boolean =>
  state === 'asleep' || state === 'sleeping' || replicas === 0;

/** The sessions of one tether that have no pod yet; its carrier owns it and has it reviewed at every tick. */
export class PendingConnections {
  private readonly options: PendingConnectionsOptions;
  private readonly pending = new Set<Session>();
  private trouble: Trouble | null = null;
  private isWaking = false;
  private wakeAttemptedAt = Number.NEGATIVE_INFINITY;

  constructor(options: PendingConnectionsOptions) {
    this.options = options;
  }

  get sessions(): ReadonlySet<Session> {
    return this.pending;
  }

  /** Lets it wait, and sees to it that there is something to wait for. Resets it when too many wait. */
  add(session: Session): void {
    if (this.pending.has(session)) return;
    const { pendingInThread } = this.options;
    if (this.pending.size >= TETHER.maxPending || pendingInThread.count >= TETHER.maxPendingPerThread) {
      session.reset(`${this.pending.size} connections are waiting for a pod: no more are held`);
      return;
    }
    this.pending.add(session);
    pendingInThread.count += 1;
    void this.ensureAwake();
  }

  /** It waits no longer. */
  remove(session: Session): void {
    if (this.pending.delete(session)) this.options.pendingInThread.count -= 1;
  }

  /** Lets go of those for which there is no hope, or who have waited long enough; looks again after the others. */
  review(): void {
    const now = this.options.clock.monotonic();
    const trouble = this.options.pods.trouble ?? this.trouble;
    for (const session of this.pending) {
      const inTrouble = trouble ? now - Math.max(session.acceptedAt, trouble.since) : 0;
      if (trouble && inTrouble >= trouble.graceMs) session.reset(trouble.reason);
      else if (now - session.acceptedAt >= TETHER.podWaitTimeoutMs)
        session.reset(trouble?.reason ?? `no pod became ready within ${TETHER.podWaitTimeoutMs / 1000} s`);
    }
    if (this.pending.size > 0 && now - this.wakeAttemptedAt >= TETHER.wakeCheckIntervalMs)
      void this.ensureAwake();
  }

  /** Finds out where the workload is, follows its pods, and wakes it if it sleeps. Never rejects. */
  private async ensureAwake(): Promise<void> {
    if (this.isWaking) return;
    const { clock, workloads, workloadId, wake, pods } = this.options;
    this.isWaking = true;
    this.wakeAttemptedAt = clock.monotonic();
    try {
      const route = await workloads.ask('forwardTarget', { id: workloadId });
      this.trouble = null;
      if (this.pending.size === 0) return;
      if (route.workload.selector === '') {
        this.setTrouble('the selector of the workload is not understood', 0);
        return;
      }
      pods.start(route);
      // Without a pod the route may be older than a sleep by somebody else. A wake looks first, and leaves alone what is awake.
      const isDoubtful = wake && route.state === 'awake' && pods.isEmpty;
      if (isAsleep(route) || isDoubtful) await this.wakeWorkload();
    } catch (error) {
      this.onWakeFailed(error);
    } finally {
      this.isWaking = false;
    }
  }

  private async wakeWorkload(): Promise<void> {
    const { clock, workloads, workloadId, wake } = this.options;
    if (!wake) {
      this.setTrouble('the workload is asleep, and this tether does not wake it', 0);
      return;
    }
    // Who only looked whether the port is open has gone again by then; the sockets have their turn once more to say so.
    await new Promise((resolve) => clock.after(TETHER.probeDelayMs, () => setImmediate(resolve)));
    const isWanted = [...this.pending].some(({ isClientGone }) => !isClientGone);
    if (isWanted) await workloads.ask('wake', { id: workloadId, waitMs: null });
  }

  private onWakeFailed(error: unknown): void {
    if (!isFailure(error)) {
      this.options.onDefect(error);
      return;
    }
    if (TRANSIENT_CODES.has(error.code)) return;
    this.setTrouble(error.message, error.code === 'cluster_unreachable' ? TETHER.retryWindowMs : 0);
  }

  private setTrouble(reason: string, graceMs: number): void {
    const since = this.trouble?.graceMs === graceMs ? this.trouble.since : this.options.clock.monotonic();
    this.trouble = { reason, since, graceMs };
    this.review();
  }
}
