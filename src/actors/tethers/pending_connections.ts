// Connections that wait for a pod: the workload is woken for them once, and they are reset when waiting is in
// vain.
import type { TetherTarget, WorkloadsProtocol } from '../../protocol/cloud.ts';
import { type Clock, isFailure, type Ref } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { PodWatch, Trouble } from './pod_watch.ts';
import type { Session } from './session.ts';

export interface PendingConnectionsOptions {
  clock: Clock;
  workloads: Ref<WorkloadsProtocol>;
  workloadId: string;
  /** Whether the workload may be woken. */
  wake: boolean;
  pods: PodWatch;
  /** Waiting connections of all tethers of the thread. */
  pendingInThread: { count: number };
  /** Takes an error that is no Failure. */
  onDefect(error: unknown): void;
}

/** Codes that say nothing about the cluster: the cloud thread is busy or restarts. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  'overloaded',
  'deadline',
  'crashed',
  'gone',
  'daemon_busy',
]);

const isAsleep = ({ state, replicas }: TetherTarget): boolean =>
  state === 'asleep' || state === 'sleeping' || replicas === 0;

/**
 * The sessions of one tether that wait for a pod. Owned by the tether's SessionRouter, which has it reviewed
 * once a second.
 */
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

  /** Has the session wait, and wakes the workload if necessary. Resets the session when too many wait. */
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

  /** The session waits no longer. Harmless if it does not wait. */
  remove(session: Session): void {
    if (this.pending.delete(session)) this.options.pendingInThread.count -= 1;
  }

  /**
   * Resets the sessions that wait in vain or have waited too long, and sees to the workload for the others.
   */
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

  /** The access to the cluster has changed: what was wrong with the old one does not count. */
  renew(): void {
    this.trouble = null;
    if (this.pending.size > 0) void this.ensureAwake();
  }

  /** Finds the workload, watches its pods, and wakes it if it sleeps. Never rejects. */
  private async ensureAwake(): Promise<void> {
    if (this.isWaking) return;
    const { clock, workloads, workloadId, wake, pods } = this.options;
    this.isWaking = true;
    this.wakeAttemptedAt = clock.monotonic();
    try {
      const target = await workloads.ask('tetherTarget', { id: workloadId });
      this.trouble = null;
      if (this.pending.size === 0) return;
      if (target.workload.selector === '') {
        this.setTrouble('the selector of the workload is not understood', 0);
        return;
      }
      pods.start(target);
      // Without a pod the state may be older than a sleep by somebody else. A wake leaves alone what is
      // awake.
      const isDoubtful = wake && target.state === 'awake' && pods.isEmpty;
      if (isAsleep(target) || isDoubtful) await this.wakeWorkload();
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
    // A port scan has closed again by then; the sockets get one more turn of the loop to report it.
    await new Promise((resolve) => clock.after(TETHER.probeDelayMs, () => setImmediate(resolve)));
    const isWanted = [...this.pending].some(({ isClientGone }) => !isClientGone);
    if (isWanted) await workloads.ask('wake', { id: workloadId, by: 'connection', waitMs: null });
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
