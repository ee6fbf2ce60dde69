// Compares the process host's ledger with a service, at the start of the daemon and after a loss of the host:
// docs/reference.md "Crash of the daemon", "Crash of the process host". Pure.
import type { LedgerRun } from '../../protocol/host.ts';
import type { EndCause, LastEnd, StoredService } from '../../protocol/service.ts';
import { type Backoff, backoffDelayMs, completeRestartRule, type RunOutcome } from './restart_policy.ts';
import { type LiveRun, runFromLedger } from './run.ts';
import { type LifecycleState, liveRun, type ReadyTimeout, type RunFault } from './state.ts';

/** The data of each finding. */
export interface Findings {
  /** The host's record matches the known state. */
  same: object;
  /** The process has passed its ready-check, but the host is a new one and does not know that. */
  unannounced: { run: LiveRun };
  /** The host has no process. `owed`: a restart that an earlier daemon left pending. */
  absent: { owed: Backoff | null };
  /** The run has ended, and its end is stored: the host may drop it. */
  recorded: { id: string; owed: Backoff | null };
  /** The run has ended, or the host has lost it, and its end is not stored yet. */
  ended: {
    run: LiveRun;
    outcome: RunOutcome;
    stopped: boolean;
    late: ReadyTimeout | null;
    fault: EndCause | null;
  };
  /** The process waits for its ready-check. `timeoutMs` null: it has no deadline. */
  checking: { run: LiveRun; timeoutMs: number | null };
  running: { run: LiveRun };
  /** A running task that has not been announced yet. */
  working: { run: LiveRun };
  /**
   * The process is being stopped. If the host died and forgot the stop, it is requested again. `graceMs`
   * null: the service's own grace period.
   */
  stopping: { run: LiveRun; graceMs: number | null; late: ReadyTimeout | null; fault: RunFault | null };
}

export type Finding<K extends keyof Findings = keyof Findings> = {
  [F in K]: { readonly is: F } & Findings[F];
}[K];

/** The action for each finding. */
export type FindingActions = { readonly [K in keyof Findings]: (finding: Findings[K]) => void };

/** Runs the action of `finding`. */
export function applyFinding<K extends keyof Findings>(actions: FindingActions, finding: Finding<K>): void {
  actions[finding.is](finding);
}

/** What a service knows about itself. */
export interface Known {
  state: LifecycleState;
  end: LastEnd | null;
  /** null: it is not registered. */
  stored: StoredService | null;
}

/**
 * Compares `row`, the host's record (null: none), with the known state. `now` and `bootedAt` are epoch
 * milliseconds.
 */
export function reconcile(row: LedgerRun | null, known: Known, now: number, bootedAt: number): Finding {
  const { state, end } = known;
  const live = liveRun(state);
  const stopping = stoppingState(state);
  const late = state.phase === 'lost' ? (stopping?.late ?? null) : null;
  const cause = (stopping ? stopping.fault?.cause : row?.memo.fault) ?? null;
  if (!row) {
    if (!live) return { is: 'absent', owed: owedRestart(known, now, bootedAt) };
    const outcome = { exitCode: null, signal: null, exitUnknown: true, cause: 'exit', at: now } as const;
    return { is: 'ended', run: live, outcome, stopped: stopping !== null, late, fault: cause };
  }
  const run = live?.id === row.run ? live : runFromLedger(row);
  const stopped = stopping !== null || row.stopping;
  if (row.end) {
    if (row.run === end?.run) return { is: 'recorded', id: row.run, owed: owedRestart(known, now, bootedAt) };
    return { is: 'ended', run, outcome: row.end, stopped, late, fault: cause };
  }
  if (run === live && state.phase !== 'lost') {
    // The host that knew it as ready is gone.
    return state.phase === 'running' && !row.memo.passed ? { is: 'unannounced', run } : { is: 'same' };
  }
  if (stopped || cause !== null) {
    const fault = stopping?.fault ?? (cause && { cause, check: null });
    const graceMs = stopping?.graceMs ?? row.stopGraceMs ?? null;
    return { is: 'stopping', run, graceMs, late, fault };
  }
  if (row.memo.passed) return { is: 'running', run };
  const { deadline, task } = run.metadata;
  if (task) return { is: 'working', run };
  // If the clock was set back, no more time is left than at the start.
  const leftMs = deadline === null ? null : Math.max(0, deadline - now);
  const timeoutMs = leftMs === null || run.timeoutMs === null ? leftMs : Math.min(leftMs, run.timeoutMs);
  return { is: 'checking', run, timeoutMs };
}

/** The phase of the stop under way; null if none is known. */
function stoppingState(state: LifecycleState): Extract<LifecycleState, { phase: 'stopping' }> | null {
  const was = state.phase === 'lost' ? state.was : state;
  return was?.phase === 'stopping' ? was : null;
}

/**
 * The restart that an earlier daemon left pending, unless the policy has changed or the machine was rebooted
 * since.
 */
function owedRestart({ end, stored }: Known, now: number, bootedAt: number): Backoff | null {
  if (!end?.restart || end.at < bootedAt || !stored) return null;
  const rule = completeRestartRule(stored.spec.restart);
  if (rule.policy === 'no') return null;
  const { attempt, at } = end.restart;
  return { attempt, delayMs: backoffDelayMs(attempt, rule), nextAt: Math.max(now, at) };
}
