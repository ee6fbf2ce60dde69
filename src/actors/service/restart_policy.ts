// The meaning of an end, and whether a restart follows: docs/reference.md "Restart policy". Pure.

import type { RunMetadata } from '../../protocol/host.ts';
import type { LastEnd, RestartPolicy, RunEnd } from '../../protocol/service.ts';
import { SERVICE } from '../../settings/limits.ts';

export interface Backoff {
  /** Consecutive restarts whose runs did not stay up, including this one. */
  attempt: number;
  delayMs: number;
  /** Epoch milliseconds. */
  nextAt: number;
}

/** 100 ms before the first restart, doubled before each further one, at most 30 s. */
export function backoffDelayMs(attempt: number): number {
  const { initialDelayMs, maxDelayMs } = SERVICE.restart;
  return Math.min(maxDelayMs, initialDelayMs * 2 ** (attempt - 1));
}

/**
 * Whether and when a restart follows an end that nobody requested. `attempt` belongs to the run that has
 * ended: 0 for one that a client started. After a run that was up for 10 s, counting starts anew.
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

/** How a process has ended, from whatever source. */
export type RunOutcome = Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown' | 'cause' | 'at'>;

export interface EndedRun {
  run: { id: string; startedAt: number; byPolicy: boolean; metadata: Pick<RunMetadata, 'task'> };
  /** The attempt of that run. */
  attempt: number;
  outcome: RunOutcome;
  /** The end was requested. */
  stopped: boolean;
  /** The run was stopped because it was not ready in time. */
  timedOut: boolean;
}

/** The record of an end, and the restart that follows it. */
export function classifyEnd(
  { run, attempt, outcome, stopped, timedOut }: EndedRun,
  policy: RestartPolicy,
  now: number,
): { end: LastEnd; backoff: Backoff | null } {
  const { exitCode, signal, exitUnknown, cause, at } = outcome;
  const calm = stopped || cause === 'reboot' || exitCode === 0;
  // A client learns that its start timed out. A restart that timed out counts as any other failure.
  const mayFollow = cause === 'exit' && (!stopped || (timedOut && run.byPolicy));
  const ran = { failed: timedOut || !calm, upMs: at - run.startedAt, attempt };
  const backoff = mayFollow ? nextRestart(policy, ran, now) : null;
  const { task } = run.metadata;
  const isCompleted = task !== undefined && exitCode === 0 && !stopped && cause === 'exit';
  const end: LastEnd = {
    run: run.id,
    status: isCompleted ? 'completed' : calm ? 'stopped' : 'crashed',
    exitCode,
    signal,
    exitUnknown,
    at,
  };
  if (stopped || cause === 'reboot') end.whole = true;
  if (isCompleted) end.completed = { ms: Math.max(0, at - run.startedAt), content: task.content };
  if (backoff) end.restart = { attempt: backoff.attempt, at: backoff.nextAt };
  return { end, backoff };
}
