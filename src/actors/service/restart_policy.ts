// What an end means and whether another start follows it: docs/reference.md "Restart policy". Pure.

import type { LastEnd, RestartPolicy, RunEnd } from '../../protocol/service.ts';
import { SERVICE } from '../../settings/limits.ts';

export interface Backoff {
  /** Restarts in a row of runs that did not stay up, this one included. */
  attempt: number;
  delayMs: number;
  /** Epoch milliseconds. */
  nextAt: number;
}

/** 100 ms before the first restart, twice as long before each further one, at most 30 s. */
export function backoffDelayMs(attempt: number): number {
  const { initialDelayMs, maxDelayMs } = SERVICE.restart;
  return Math.min(maxDelayMs, initialDelayMs * 2 ** (attempt - 1));
}

/**
 * Whether and when it is started again after an end that nobody asked for. `attempt` is that of the run that
 * has ended, 0 for one that a client started; a run that was up for 10 s begins to count anew.
 */
export function nextRestart(
  policy: RestartPolicy,
  run: { failed: boolean; upMs: number; attempt: number },
  now: number,
): Backoff | null {
  if (policy === 'no' || (policy === 'on-failure' && !run.failed)) return null;
  const attempt = run.upMs >= SERVICE.restart.resetAfterMs ? 1 : run.attempt + 1;
  const delay = backoffDelayMs(attempt);
  return { attempt, delayMs: delay, nextAt: now + delay };
}

/** How a process has ended, whoever says so. */
export type RunOutcome = Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown' | 'cause' | 'at'>;

export interface EndedRun {
  run: { id: string; startedAt: number; byPolicy: boolean };
  /** Of that run. */
  attempt: number;
  outcome: RunOutcome;
  /** Somebody asked for it. */
  stopped: boolean;
  /** It was stopped because it was not ready in time. */
  timedOut: boolean;
}

/** How an end is kept, and the restart that follows it. */
export function classifyEnd(
  { run, attempt, outcome, stopped, timedOut }: EndedRun,
  policy: RestartPolicy,
  now: number,
): { end: LastEnd; backoff: Backoff | null } {
  const { exitCode, signal, exitUnknown, cause, at } = outcome;
  const calm = stopped || cause === 'reboot' || exitCode === 0;
  // A client is told that its start timed out; a restart that did is a failure like any other.
  const mayFollow = cause === 'exit' && (!stopped || (timedOut && run.byPolicy));
  const ran = { failed: timedOut || !calm, upMs: at - run.startedAt, attempt };
  const backoff = mayFollow ? nextRestart(policy, ran, now) : null;
  const end: LastEnd = {
    run: run.id,
    status: calm ? 'stopped' : 'crashed',
    exitCode,
    signal,
    exitUnknown,
    at,
  };
  if (stopped || cause === 'reboot') end.whole = true;
  if (backoff) end.restart = { attempt: backoff.attempt, at: backoff.nextAt };
  return { end, backoff };
}
