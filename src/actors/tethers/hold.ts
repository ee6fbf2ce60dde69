// Connections that wait for a pod: the workload is woken for them once, and they are let go when there is nothing to wait for.
import { TETHER } from '../../limits.ts';
import type { Route, WorkloadsProtocol } from '../../protocol/cloud.ts';
import { type Clock, isFailure, type Ref } from '../../runtime/actor.ts';
import type { TetherPods, Trouble } from './pods.ts';
import type { Session } from './session.ts';

export interface HoldOptions {
  clock: Clock;
  workloads: Ref<WorkloadsProtocol>;
  workloadId: string;
  /** Whether the workload may be woken. */
  wake: boolean;
  pods: TetherPods;
  /** Connections that wait, of all tethers of the thread. */
  room: { held: number };
  /** An error that is nobody's answer. */
  defect(error: unknown): void;
}

/** Codes that say nothing of the cluster: the cloud's own thread is busy or begins anew. */
const PASSING: ReadonlySet<string> = new Set(['overloaded', 'deadline', 'crashed', 'gone', 'daemon_busy']);

const isAsleep = ({ state, replicas }: Route): boolean =>
  state === 'asleep' || state === 'sleeping' || replicas === 0;

/** The sessions of one tether that have no pod yet; its carrier owns it and has it reviewed at every tick. */
export class Hold {
  private readonly options: HoldOptions;
  private readonly held = new Set<Session>();
  private trouble: Trouble | null = null;
  private isRousing = false;
  private rousedAt = Number.NEGATIVE_INFINITY;

  constructor(options: HoldOptions) {
    this.options = options;
  }

  get sessions(): ReadonlySet<Session> {
    return this.held;
  }

  /** Lets it wait, and sees to it that there is something to wait for. Resets it when too many wait. */
  add(session: Session): void {
    if (this.held.has(session)) return;
    const { room } = this.options;
    if (this.held.size >= TETHER.held || room.held >= TETHER.heldPerThread) {
      session.reset(`${this.held.size} connections are waiting for a pod: no more are held`);
      return;
    }
    this.held.add(session);
    room.held += 1;
    void this.rouse();
  }

  /** It waits no longer. */
  remove(session: Session): void {
    if (this.held.delete(session)) this.options.room.held -= 1;
  }

  /** Lets go of those for which there is no hope, or who have waited long enough; looks again after the others. */
  review(): void {
    const now = this.options.clock.monotonic();
    const trouble = this.options.pods.trouble ?? this.trouble;
    for (const session of this.held) {
      const inTrouble = trouble ? now - Math.max(session.since, trouble.since) : 0;
      if (trouble && inTrouble >= trouble.graceMs) session.reset(trouble.reason);
      else if (now - session.since >= TETHER.holdMs)
        session.reset(trouble?.reason ?? `no pod became ready within ${TETHER.holdMs / 1000} s`);
    }
    if (this.held.size > 0 && now - this.rousedAt >= TETHER.rouseMs) void this.rouse();
  }

  /** Finds out where the workload is, follows its pods, and wakes it if it sleeps. Never rejects. */
  private async rouse(): Promise<void> {
    if (this.isRousing) return;
    const { clock, workloads, workloadId, wake, pods } = this.options;
    this.isRousing = true;
    this.rousedAt = clock.monotonic();
    try {
      const route = await workloads.ask('route', { id: workloadId });
      this.trouble = null;
      if (this.held.size === 0) return;
      if (route.workload.selector === '') {
        this.setTrouble('the selector of the workload is not understood', 0);
        return;
      }
      pods.start(route);
      // Without a pod the route may be older than a sleep by somebody else. A wake looks first, and leaves alone what is awake.
      const isDoubtful = wake && route.state === 'awake' && pods.isEmpty;
      if (isAsleep(route) || isDoubtful) await this.wake();
    } catch (error) {
      this.failed(error);
    } finally {
      this.isRousing = false;
    }
  }

  private async wake(): Promise<void> {
    const { clock, workloads, workloadId, wake } = this.options;
    if (!wake) {
      this.setTrouble('the workload is asleep, and this tether does not wake it', 0);
      return;
    }
    // Who only looked whether the port is open has gone again by then; the sockets have their turn once more to say so.
    await new Promise((resolve) => clock.after(TETHER.glanceMs, () => setImmediate(resolve)));
    const isWanted = [...this.held].some(({ isGone }) => !isGone);
    if (isWanted) await workloads.ask('wake', { id: workloadId, waitMs: null });
  }

  private failed(error: unknown): void {
    if (!isFailure(error)) {
      this.options.defect(error);
      return;
    }
    if (PASSING.has(error.code)) return;
    this.setTrouble(error.message, error.code === 'cluster_unreachable' ? TETHER.retryMs : 0);
  }

  private setTrouble(reason: string, graceMs: number): void {
    const since = this.trouble?.graceMs === graceMs ? this.trouble.since : this.options.clock.monotonic();
    this.trouble = { reason, since, graceMs };
    this.review();
  }
}
