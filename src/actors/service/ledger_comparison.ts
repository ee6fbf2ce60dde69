// What a row of the process host's ledger means for a service that knows less, or something else. Pure.
import type { LedgerRun } from '../../protocol/host.ts';
import type { LastEnd, RunEnd } from '../../protocol/service.ts';
import { type LiveRun, runFromLedger } from './run.ts';
import { type LifecycleState, liveRun } from './state.ts';

/** What the comparison comes to. */
export type LedgerFinding =
  /** No process, and nothing that is not known. */
  | { is: 'nothing' }
  /** What is known, and it lives. */
  | { is: 'same'; passed: boolean }
  /** It has ended and its end is written down: the host may drop it. */
  | { is: 'recorded'; run: string }
  | { is: 'ended'; run: LiveRun; end: RunEnd; stopped: boolean }
  /** What was taken to live is not in the ledger any more. */
  | { is: 'vanished'; run: LiveRun; stopped: boolean }
  | { is: 'checking' | 'running' | 'stopping'; run: LiveRun };

/** Compares what the host has (`row`; null: nothing) with what the service takes itself to be and its last known end. */
export function compareWithLedger(
  row: LedgerRun | null,
  state: LifecycleState,
  end: LastEnd | null,
): LedgerFinding {
  const known = liveRun(state);
  const was = state.phase === 'lost' ? state.was : state;
  const stopped = was?.phase === 'stopping';
  if (!row) return known ? { is: 'vanished', run: known, stopped } : { is: 'nothing' };
  const run = known?.id === row.run ? known : runFromLedger(row);
  if (row.end) {
    if (row.run === end?.run) return { is: 'recorded', run: row.run };
    return { is: 'ended', run, end: row.end, stopped: stopped || row.stopping };
  }
  if (run === known && state.phase !== 'lost') return { is: 'same', passed: row.memo.passed };
  // The host finishes a stop by itself; one that it forgot with its own end is asked for again.
  if (stopped || row.stopping) return { is: 'stopping', run };
  return { is: row.memo.passed ? 'running' : 'checking', run };
}
