// How a service goes on from what the process host has of it: after a start of the daemon, and when the host
// was away: docs/reference.md "Death of the daemon", "Death of the process host".
import type { LedgerRun } from '../../protocol/host.ts';
import type { ServiceEffects } from './effects.ts';
import { compareWithLedger, type LedgerFinding } from './ledger_comparison.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import { backoffDelayMs } from './restart_policy.ts';
import type { LiveRun } from './run.ts';
import type { ReadyTimeout } from './state.ts';

/** `row` is what the host has; `now` and `bootedAt` are epoch milliseconds. */
export function reconcile(
  life: ServiceLifecycle,
  effects: ServiceEffects,
  row: LedgerRun | null,
  now: number,
  bootedAt: number,
): void {
  const { state, end } = life;
  const finding = compareWithLedger(row, state, end);
  const late = state.phase === 'lost' && state.was?.phase === 'stopping' ? state.was.late : null;
  switch (finding.is) {
    case 'same':
      // The host that was told that it is ready is gone.
      if (state.phase === 'running' && !finding.passed) life.announce(state.run);
      break;
    case 'recorded':
      effects.acknowledge(finding.run);
      rest(life, now, bootedAt);
      break;
    case 'nothing':
      rest(life, now, bootedAt);
      break;
    case 'ended':
      count(life, finding.run);
      life.finish(finding.run, finding.end, { stopped: finding.stopped, late, stop: null });
      break;
    case 'vanished': {
      const outcome = { exitCode: null, signal: null, exitUnknown: true, cause: 'exit', at: now } as const;
      life.finish(finding.run, outcome, { stopped: finding.stopped, late, stop: null });
      break;
    }
    default:
      count(life, finding.run);
      live(life, finding, now, late);
  }
}

function live(
  life: ServiceLifecycle,
  { is, run }: Extract<LedgerFinding, { is: 'checking' | 'running' | 'stopping' }>,
  now: number,
  late: ReadyTimeout | null,
): void {
  const { deadline } = run.metadata;
  if (is === 'running') life.running(run, false);
  else if (is === 'stopping') life.halt(run, null, late);
  else life.check(run, deadline === null ? null : Math.max(0, deadline - now));
}

/** Of a run of another daemon's the memo says how often it was restarted; that is also the most that were in a row. */
function count(life: ServiceLifecycle, run: LiveRun): void {
  if (life.state.phase !== 'lost' || life.state.was) return;
  life.restarts = run.metadata.restarts;
  life.attempt = run.metadata.restarts;
}

/** There is no process. A restart that an earlier daemon owed is made, unless the machine was booted since. */
function rest(life: ServiceLifecycle, now: number, bootedAt: number): void {
  const { end, state, stored } = life;
  if (state.phase !== 'lost') return;
  if (!end?.restart || end.at < bootedAt || !stored || stored.spec.restart === 'no') {
    life.become({ phase: 'idle', trouble: null });
    return;
  }
  const { attempt, at } = end.restart;
  life.wait({ attempt, delayMs: backoffDelayMs(attempt), nextAt: Math.max(now, at) }, null);
}
