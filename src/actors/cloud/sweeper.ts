// State: the sweep under way. Rebuilt from: nothing.

import type { SweeperProtocol } from '../../protocol/cloud.ts';
import { actor, type Context, type Handlers, type ReplyOf, tolerateFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

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
    const { ids } = await workloads.ask('idle', {});
    const report: SweepReport = { slept: [], left: [] };
    const next = async (): Promise<void> => {
      for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
        const sleep = workloads.ask(
          'sleep',
          { id, by: 'idle', holdMs: null },
          { deadlineMs: CLOUD.scaleTimeoutMs },
        );
        await tolerateFailure(
          sleep.then(({ slept }) => slept && report.slept.push(id)),
          ({ message }) => report.left.push({ id, reason: message }),
        );
      }
    };
    await Promise.all(Array.from({ length: CLOUD.maxConcurrentSleeps }, next));
    return report;
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
