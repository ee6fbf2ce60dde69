// Classifies an end, and decides whether a restart follows: docs/reference.md "Restart policy". Pure.

import type { RunMetadata } from '../../protocol/host.ts';
import type { EndCause, LastEnd, RestartPolicy, RestartRule, RunEnd } from '../../protocol/service.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { StartedBy } from './run.ts';

export interface Backoff {
  /** Consecutive restarts whose runs did not stay up, including this one. */
  attempt: number;
  delayMs: number;
  /** Epoch milliseconds. */
  nextAt: number;
}

/**
 * A restart rule with all defaults. `max` null: unlimited; `withinMs` null: since a client last started it.
 */
export interface CompleteRestartRule {
  policy: RestartPolicy;
  minMs: number;
  maxMs: number;
  max: number | null;
  withinMs: number | null;
}

/** The complete rule for a registered policy or rule. */
export function completeRestartRule(given: RestartPolicy | RestartRule): CompleteRestartRule {
  const {
    policy,
    minMs,
    maxMs,
    max = null,
    withinMs = null,
  } = typeof given === 'string' ? { policy: given } : given;
  const least = minMs ?? Math.min(SERVICE.restart.initialDelayMs, maxMs ?? Number.POSITIVE_INFINITY);
  return { policy, minMs: least, maxMs: Math.max(least, maxMs ?? SERVICE.restart.maxDelayMs), max, withinMs };
}

/** The pause before a restart: the shortest one, doubled for each further attempt, up to the longest. */
export const backoffDelayMs = (attempt: number, { minMs, maxMs }: CompleteRestartRule): number =>
  Math.min(maxMs, minMs * 2 ** (attempt - 1));

/** The restarts of `times` that still count at `now`. */
export function countedRestarts(times: readonly number[], rule: CompleteRestartRule, now: number): number[] {
  const { max, withinMs } = rule;
  if (max === null) return [];
  return times.filter((time) => withinMs === null || now - time < withinMs);
}

/**
 * Whether and when a restart follows an end that nobody requested. `attempt` is that of the run that ended: 0
 * if a client started it. A run that was up for 10 s resets the count. `exhausted`: the rule's limit is
 * reached.
 */
export function nextRestart(
  rule: CompleteRestartRule,
  run: { failed: boolean; upMs: number; attempt: number; times: readonly number[] },
  now: number,
): Backoff | 'exhausted' | null {
  const { policy, max } = rule;
  if (policy === 'no' || (policy === 'on-failure' && !run.failed)) return null;
  if (max !== null && countedRestarts(run.times, rule, now).length >= max) return 'exhausted';
  const attempt = run.upMs >= SERVICE.restart.resetAfterMs ? 1 : run.attempt + 1;
  const delay = backoffDelayMs(attempt, rule);
  return { attempt, delayMs: delay, nextAt: now + delay };
}

/** A restart as the record of the last end has it. `times`: the earlier ones that count for its rule. */
export function pendingRestart(
  { attempt, nextAt }: Backoff,
  times: readonly number[],
): NonNullable<LastEnd['restart']> {
  return { attempt, at: nextAt, ...(times.length > 0 && { times: [...times] }) };
}

/** How a process has ended, from whatever source. */
export type RunOutcome = Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown' | 'cause' | 'at'>;

export interface EndedRun {
  run: { id: string; startedAt: number; by: StartedBy; metadata: Pick<RunMetadata, 'task'> };
  /** The attempt of that run, and the times of the restarts that count. */
  attempt: number;
  times: readonly number[];
  outcome: RunOutcome;
  /** The end was requested. */
  stopped: boolean;
  /** A stop has ended the whole process tree. What is left of others is ended before the next start. */
  whole: boolean;
  /** The run was stopped because it was not ready in time. */
  timedOut: boolean;
  /** Why it was stopped, if no client asked for it. */
  fault: EndCause | null;
  /** It was stopped in order to be started again. */
  relaunched: boolean;
  /** A client has stopped the service. */
  released: boolean;
}

/** The record of an end, and the restart that follows it. */
export function classifyEnd(
  { run, attempt, times, outcome, stopped, whole, timedOut, fault, relaunched, released }: EndedRun,
  rule: CompleteRestartRule,
  now: number,
): { end: LastEnd; backoff: Backoff | null } {
  const { exitCode, signal, exitUnknown, at } = outcome;
  const cause = fault ?? (outcome.cause === 'memory' ? 'memory' : null);
  const isGone = outcome.cause === 'reboot' || outcome.cause === 'foreign';
  const calm = cause === null && (stopped || isGone || exitCode === 0);
  // A client is told that its start timed out. Another restart that times out counts as a failure.
  const isFollowed = !stopped || cause !== null || (timedOut && run.by !== 'client');
  const ran = { failed: timedOut || !calm, upMs: at - run.startedAt, attempt, times };
  const next = isGone || !isFollowed ? null : nextRestart(rule, ran, now);
  const backoff = next === 'exhausted' ? null : next;
  const { task } = run.metadata;
  const isCompleted = task !== undefined && exitCode === 0 && calm && !stopped && !isGone;
  const calmStatus = isCompleted ? 'completed' : 'stopped';
  const end: LastEnd = {
    run: run.id,
    status: calm && next !== 'exhausted' ? calmStatus : 'crashed',
    exitCode,
    signal,
    exitUnknown,
    at,
  };
  if (whole || isGone) end.whole = true;
  if (!isGone && !released && (!stopped || timedOut || cause !== null)) end.unasked = true;
  if (isCompleted) end.completed = { ms: Math.max(0, at - run.startedAt), content: task.content };
  if (task?.slot !== undefined) end.slot = task.slot;
  if (cause !== null) end.cause = cause;
  if (stopped && relaunched) end.relaunch = true;
  if (next === 'exhausted') end.exhausted = true;
  if (backoff) end.restart = pendingRestart(backoff, times);
  return { end, backoff };
}

/**
 * The end of an agent that counts as asleep although nobody stopped it: not a crash, and not followed by a
 * restart.
 */
export function asleepEnd({ restart: _, ...end }: LastEnd): { end: LastEnd; backoff: null } {
  return { end: { ...end, status: 'stopped' }, backoff: null };
}
