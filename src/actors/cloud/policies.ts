// State: the policies, and the switches under way. Rebuilt from: the store; a switch interrupted by the end
// of the daemon becomes due again, with the same operation key.
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { WorkloadsProtocol } from '../../protocol/cloud.ts';
import { ERRORS, fail, isErrorCode } from '../../protocol/errors.ts';
import type {
  DueSwitch,
  PoliciesProtocol,
  PolicyInput,
  PolicyReport,
  StoredPolicy,
} from '../../protocol/policies.ts';
import {
  actor,
  type Context,
  type Failure,
  type Handlers,
  isFailure,
  type Ref,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { CLOUD, POLICY } from '../../settings/cloud_limits.ts';
import { runAutomatic } from './automatic_change.ts';

export interface PoliciesConfig {
  store: Pick<CloudStore, 'policies' | 'savePolicy' | 'removePolicy'>;
}

/** After a look, the next one caused by a change waits this many times as long as the look took. */
const LOOK_PAUSES = 9;
/** Errors after which the cluster's other switches have to wait too. */
const CLUSTER_WIDE: ReadonlySet<string> = new Set(['cluster_unreachable', 'daemon_busy', 'deadline']);

/** Whether a retry may have another result. */
const mayRetry = ({ code }: Failure): boolean => !isErrorCode(code) || ERRORS[code].status >= 500;

class Policies {
  private readonly context: Context;
  private readonly store: PoliciesConfig['store'];
  private readonly workloads: Ref<WorkloadsProtocol>;
  private readonly rows = new Map<string, StoredPolicy>();
  private cancelLook: () => void = () => undefined;
  /** When the next look is (monotonic milliseconds); infinite: none is scheduled. */
  private lookAt = Number.POSITIVE_INFINITY;
  private isLooking = false;
  /** Something changed during a look. */
  private isLookWanted = false;
  /** Clusters with switches under way. */
  private readonly switching = new Set<string>();
  /** Clusters with a failed switch, and when to try again (monotonic milliseconds). */
  private readonly pausedTo = new Map<string, { at: number; delayMs: number }>();

  constructor(context: Context, { store }: PoliciesConfig) {
    this.context = context;
    this.store = store;
    this.workloads = context.ref('workloads');
    context.scope.defer(() => this.cancelLook());
  }

  async load(): Promise<void> {
    for (const row of await this.store.policies()) this.rows.set(row.name, row);
    if (this.rows.size > 0) await this.apply(false);
    this.lookSoon();
  }

  async list(): Promise<PolicyReport[]> {
    const reports = await this.workloads.ask('policyReports', {});
    return reports.sort((one, other) => (one.policy.name < other.policy.name ? -1 : 1));
  }

  async put(name: string, input: PolicyInput): Promise<PolicyReport> {
    const before = this.rows.get(name);
    if (!before && this.rows.size >= POLICY.maxPolicies)
      throw fail('invalid_spec', `there are ${POLICY.maxPolicies} policies already`);
    const row: StoredPolicy = { ...input, name, updatedAt: this.context.clock.now() };
    await this.store.savePolicy(row);
    this.rows.set(name, row);
    await this.apply(true);
    this.lookSoon();
    return this.workloads.ask('policyReport', { name });
  }

  async remove(name: string): Promise<{ removed: true; name: string }> {
    if (!this.rows.has(name)) throw fail('unknown_policy', `there is no policy ${name}`);
    await this.store.removePolicy(name);
    this.rows.delete(name);
    await this.apply(true);
    this.lookSoon();
    return { removed: true, name };
  }

  /**
   * Schedules a look at what is due, soon, because changes come in bursts. Further changes do not postpone
   * it.
   */
  lookSoon(): null {
    if (this.isLooking) this.isLookWanted = true;
    else this.lookIn(Math.min(POLICY.settleMs, this.lookAt - this.context.clock.monotonic()));
    return null;
  }

  private async apply(areNew: boolean): Promise<void> {
    await this.workloads.ask('setPolicies', { policies: [...this.rows.values()], areNew });
  }

  private lookIn(ms: number): void {
    this.cancelLook();
    this.lookAt = this.context.clock.monotonic() + ms;
    this.cancelLook = this.context.clock.after(Math.max(0, ms), () => this.inBackground(this.look()));
  }

  private inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.context.crash(error));
  }

  private async look(): Promise<void> {
    const { clock } = this.context;
    const beganAt = clock.monotonic();
    this.isLooking = true;
    this.isLookWanted = false;
    // In these clusters, what the answer calls due may already have been switched.
    const busy = new Set(this.switching);
    const answer = await tolerateFailure(this.workloads.ask('dueSwitches', {}), () => null);
    this.isLooking = false;
    this.lookAt = Number.POSITIVE_INFINITY;
    const waits = this.isLookWanted ? [POLICY.settleMs + LOOK_PAUSES * (clock.monotonic() - beganAt)] : [];
    // Timers do not notice a changed clock or a suspended machine, so no wait is long.
    if (!answer) waits.push(POLICY.lookMs);
    else if (answer.nextAt !== null) waits.push(Math.min(POLICY.lookMs, answer.nextAt - clock.now()));
    if (answer) waits.push(...this.switchAll(answer.due, busy));
    if (waits.length > 0) this.lookIn(Math.min(...waits));
  }

  /**
   * Begins the due switches, except in the clusters `busy`. Returns how long those that failed wait, in ms.
   */
  private switchAll(due: readonly DueSwitch[], busy: ReadonlySet<string>): number[] {
    const now = this.context.clock.monotonic();
    const clusters = new Set(due.map(({ clusterId }) => clusterId));
    // Clusters with nothing due need no retry.
    for (const id of this.pausedTo.keys()) if (!clusters.has(id) && !busy.has(id)) this.pausedTo.delete(id);
    const free = [...clusters].filter((id) => !busy.has(id));
    return free.flatMap((id) => {
      const leftMs = (this.pausedTo.get(id)?.at ?? 0) - now;
      if (leftMs > 0) return [leftMs];
      this.switchCluster(
        id,
        due.filter(({ clusterId }) => clusterId === id),
      );
      return [];
    });
  }

  /**
   * Begins the switches of a cluster. No look waits for them, so a slow cluster does not delay the others.
   */
  private switchCluster(id: string, rows: readonly DueSwitch[]): void {
    this.switching.add(id);
    const made = this.makeSwitches(id, rows).finally(() => {
      this.switching.delete(id);
      // Picks up what became due meanwhile.
      this.lookSoon();
    });
    this.inBackground(made);
  }

  /** Makes the switches of a cluster, a few at once, until the cluster fails. */
  private async makeSwitches(clusterId: string, rows: readonly DueSwitch[]): Promise<void> {
    const paused = this.pausedTo.get(clusterId);
    const waiting = [...rows];
    let isFailed = false;
    let isStopped = false;
    const next = async (): Promise<void> => {
      for (let row = waiting.shift(); row && !isStopped; row = waiting.shift()) {
        const failure = await this.switch(row);
        isFailed ||= failure !== null && mayRetry(failure);
        isStopped ||= failure !== null && CLUSTER_WIDE.has(failure.code);
      }
    };
    await Promise.all(Array.from({ length: POLICY.lanes }, next));
    if (!isFailed) this.pausedTo.delete(clusterId);
    else {
      const { initialDelayMs, maxDelayMs } = POLICY.retry;
      const delayMs = Math.min(maxDelayMs, paused ? paused.delayMs * 2 : initialDelayMs);
      this.pausedTo.set(clusterId, { at: this.context.clock.monotonic() + delayMs, delayMs });
    }
  }

  private async switch({ id, to, key, who, subject }: DueSwitch): Promise<Failure | null> {
    const { workloads } = this;
    const outcome = await runAutomatic(this.context, { to, subject, who, key }, async (operation) => {
      const message = { id, by: 'schedule', operation, policy: who } as const;
      const { replicas } = await (to === 'asleep'
        ? workloads.ask('sleep', { ...message, holdMs: null }, { deadlineMs: CLOUD.scaleTimeoutMs })
        : workloads.ask('wake', { ...message, waitMs: null }, { deadlineMs: CLOUD.scaleTimeoutMs }));
      return { replicas };
    });
    const failure = isFailure(outcome) ? outcome : null;
    if (failure && mayRetry(failure)) return failure;
    const made = outcome === 'withdrawn' ? null : to;
    await tolerateFailure(workloads.ask('switched', { id, to: made }), () => null);
    return failure;
  }
}

async function init(context: Context, config: PoliciesConfig): Promise<Handlers<PoliciesProtocol>> {
  const policies = new Policies(context, config);
  await policies.load();
  const workloads = context.ref('workloads');
  return {
    list: () => context.replyLater(policies.list()),
    read: ({ name }) => context.replyLater(workloads.ask('policyReport', { name })),
    put: ({ name, input }) => context.turn('policies', () => policies.put(name, input)),
    remove: ({ name }) => context.turn('policies', () => policies.remove(name)),
    preview: ({ name }) => context.replyLater(workloads.ask('previewPolicy', { name })),
    changed: () => policies.lookSoon(),
  };
}

/** At `policies`: see PoliciesProtocol. */
export const policiesActor = actor<PoliciesProtocol, PoliciesConfig>('policies', init);
