// The waits for dependencies: each is woken, and then waited for a limited time until it is ready.
// docs/reference.md "Wake order".
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { WakeCause } from '../../protocol/receipts.ts';
import { type Clock, tolerateFailure } from '../../runtime/actor.ts';
import { withTimeout } from '../../runtime/deferred.ts';
import { WAKE_ORDER } from '../../settings/cloud_limits.ts';
import type { WorkloadEvents } from './workload_events.ts';
import { targetName } from './workload_patch.ts';

export interface DependencyWaitsOwner {
  readonly clock: Clock;
  readonly events: Pick<WorkloadEvents, 'onFailed'>;
  readonly table: { get(id: string): StoredWorkload | undefined };
  readonly readyWait: { untilReady(id: string, ms: number): Promise<void> };
}

/** The wake that a dependency is waited for. */
interface DependentWake {
  by: WakeCause;
  operation: string | undefined;
  subject: string | undefined;
}

/** Waits for one dependency, by who needs it. */
type Waits = Map<string, Promise<void>>;

export class DependencyWaits {
  private readonly owner: DependencyWaitsOwner;
  /**
   * By dependency; shared by simultaneous requests of the same subject, until a sleep of the dependency is
   * requested.
   */
  private readonly waiting = new Map<string, Waits>();
  /** Dependencies that were waited for in vain, and until when not to wait again (monotonic milliseconds). */
  private readonly unready = new Map<string, number>();

  constructor(owner: DependencyWaitsOwner) {
    this.owner = owner;
  }

  /** Whether a wake waits for the dependency. */
  has(id: string): boolean {
    return this.waiting.has(id);
  }

  /** A sleep of the dependency is requested: no later wake joins the waits for it. */
  callOff(id: string): void {
    this.waiting.delete(id);
  }

  /**
   * Resolves when the dependency is ready, or has been waited for in vain until `end` (monotonic
   * milliseconds). `wake` wakes it if that is necessary.
   */
  untilReady(
    row: StoredWorkload,
    request: DependentWake,
    end: number,
    wake: () => Promise<unknown>,
  ): Promise<void> {
    const waits: Waits = this.waiting.get(row.id) ?? new Map();
    // A wake that the quota of one subject refuses may be allowed to another.
    const key = JSON.stringify([request.by, request.subject]);
    const joined = waits.get(key);
    if (joined) return joined;
    this.waiting.set(row.id, waits);
    const isCalledOff = (): boolean => this.waiting.get(row.id) !== waits;
    const wait = this.wakeAndWait(row, request, end, wake, isCalledOff).finally(() => {
      waits.delete(key);
      if (waits.size === 0 && !isCalledOff()) this.waiting.delete(row.id);
    });
    waits.set(key, wait);
    return wait;
  }

  /** `isCalledOff`: whether a sleep of the dependency has been requested meanwhile. */
  private async wakeAndWait(
    row: StoredWorkload,
    request: DependentWake,
    end: number,
    wake: () => Promise<unknown>,
    isCalledOff: () => boolean,
  ): Promise<void> {
    const { clock, events, table } = this.owner;
    const isWaitedFor = clock.monotonic() >= (this.unready.get(row.id) ?? 0);
    const leftMs = isWaitedFor ? Math.round(Math.max(0, end - clock.monotonic())) : 0;
    let isWoken = false;
    const work = async (): Promise<true> => {
      await wake();
      isWoken = true;
      if (isWaitedFor) await this.untilAwake(row.id, end);
      return true;
    };
    const failure = await tolerateFailure(
      withTimeout(leftMs + WAKE_ORDER.graceMs, work(), clock).then((isDone) =>
        isDone || !isWaitedFor
          ? null
          : fail('ready_timeout', `${targetName(row.seen)} was not woken within ${leftMs} ms`),
      ),
      (error) => error,
    );
    if (isWaitedFor) this.unready.delete(row.id);
    if (!failure || failure.code === 'daemon_busy') return;
    // A workload that was put to sleep had no time to become ready.
    if (isCalledOff() || (isWoken && (table.get(row.id)?.seen.replicas ?? 0) === 0)) return;
    // A wake that failed at once has not been waited for, and another may succeed.
    if (failure.code === 'ready_timeout') this.unready.set(row.id, clock.monotonic() + WAKE_ORDER.waitMs);
    events.onFailed(row, 'a wake has waited for it in vain', failure, request.operation);
  }

  private async untilAwake(id: string, end: number): Promise<void> {
    const { clock, readyWait, table } = this.owner;
    // A schedule does not wake what it has not put to sleep.
    if ((table.get(id)?.seen.replicas ?? 0) === 0) return;
    await readyWait.untilReady(id, Math.round(Math.max(0, end - clock.monotonic())));
  }
}
