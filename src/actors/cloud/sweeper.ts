// State: the sweep under way. Rebuilt from: nothing.

import type { SweeperProtocol } from '../../protocol/cloud.ts';
import type { WorkloadSubject } from '../../protocol/policies.ts';
import {
  actor,
  type Context,
  type Failure,
  type Handlers,
  isFailure,
  type ReplyOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { runAutomatic } from './automatic_change.ts';

export interface SweeperConfig {
  /** The setting `cloud.sweep_interval_ms`. */
  intervalMs: number;
}

type SweepReport = ReplyOf<SweeperProtocol, 'sweep'>;

class Sweeper {
  private readonly context: Context;
  private sweeping: Promise<SweepReport> | null = null;

  constructor(context: Context) {
    this.context = context;
  }

  /** Joins a sweep that is under way. */
  sweep(): Promise<SweepReport> {
    this.sweeping ??= this.sweepNow().finally(() => {
      this.sweeping = null;
    });
    return this.sweeping;
  }

  private async sweepNow(): Promise<SweepReport> {
    const workloads = this.context.ref('workloads');
    const { ids, policies } = await workloads.ask('idle', {});
    const report: SweepReport = { slept: [], left: [] };
    const next = async (): Promise<void> => {
      for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
        const failure = await this.sleep(id, policies?.[id], report.slept);
        if (failure) report.left.push({ id, reason: failure.message });
      }
    };
    await Promise.all(Array.from({ length: CLOUD.maxConcurrentSleeps }, next));
    return report;
  }

  /** Puts a workload to sleep if it is still idle. If a policy decided, it is an operation. */
  private async sleep(
    id: string,
    decided: { who: string; subject: WorkloadSubject } | undefined,
    slept: string[],
  ): Promise<Failure | null> {
    const workloads = this.context.ref('workloads');
    const run = async (more: { operation?: string; policy?: string }): Promise<{ replicas: number }> => {
      const message = { id, by: 'idle', holdMs: null, ...more } as const;
      const answer = await workloads.ask('sleep', message, { deadlineMs: CLOUD.scaleTimeoutMs });
      if (answer.slept) slept.push(id);
      return { replicas: answer.replicas };
    };
    if (decided) {
      const change = { to: 'asleep', key: null, ...decided } as const;
      const work = (operation: string) => run({ operation, policy: decided.who });
      const outcome = await runAutomatic(this.context, change, work);
      return isFailure(outcome) ? outcome : null;
    }
    return tolerateFailure(
      run({}).then(() => null),
      (failure) => failure,
    );
  }
}

function init(context: Context, { intervalMs }: SweeperConfig): Handlers<SweeperProtocol> {
  const sweeper = new Sweeper(context);
  // The next sweep makes up for one that fails.
  context.clock.every(intervalMs, () => tolerateFailure(sweeper.sweep(), () => undefined));
  return { sweep: () => context.replyLater(sweeper.sweep()) };
}

/**
 * At `sweeper`: puts idle workloads to sleep, every 10 minutes by default. docs/reference.md "Auto-sleep".
 */
export const sweeperActor = actor<SweeperProtocol, SweeperConfig>('sweeper', init);
