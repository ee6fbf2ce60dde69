// The checks of one service: its ready-check while it starts, its live-check while it runs.

import { liveCheckOf, readyCheckOf } from '../../protocol/checks.ts';
import type { LastCheck } from '../../protocol/service.ts';
import { checkProbe, type ProbeContext } from './check_probes.ts';
import type { ServiceEffects } from './effects.ts';
import { type LiveCheck, startLiveCheck } from './live_check.ts';
import { type ReadyCheck, readyPlanOf, startReadyCheck } from './ready_check.ts';
import type { LiveRun } from './run.ts';

const askNothing = () => () => {};

export class RunChecks {
  private readonly probes: ProbeContext;
  private readonly effects: Pick<ServiceEffects, 'foreignHolder'>;

  constructor(probes: ProbeContext, effects: Pick<ServiceEffects, 'foreignHolder'>) {
    this.probes = probes;
    this.effects = effects;
  }

  /** The current end of the log, where the output of the next run begins. */
  logEnd(): number {
    return this.probes.log.end();
  }

  /** Starts the ready-check of a process. `timeoutMs` null: it has no deadline. */
  startReady(
    run: LiveRun,
    timeoutMs: number | null,
    onResult: (passed: boolean, check: ReadyCheck) => void,
  ): ReadyCheck {
    const { clock, onDefect } = this.probes;
    const { port, ready } = run.metadata;
    const asked = readyCheckOf(ready, port);
    const questions = {
      ask: asked ? checkProbe(asked, run, this.probes, 'ready') : askNothing,
      foreignHolder: (onDone: (holder: string | null) => void): void =>
        void this.effects.foreignHolder(run).then(onDone).catch(onDefect),
    };
    const plan = readyPlanOf(run, timeoutMs, clock);
    const check = startReadyCheck(clock, questions, plan, (passed) => onResult(passed, check));
    return check;
  }

  /** Starts the live-check of a process; null: it has none. */
  startLive(run: LiveRun, onFailed: (check: LastCheck) => void): LiveCheck | null {
    const { live = null, port } = run.metadata;
    const plan = liveCheckOf(live, port);
    return (
      plan && startLiveCheck(this.probes.clock, checkProbe(plan, run, this.probes, 'live'), plan, onFailed)
    );
  }
}
