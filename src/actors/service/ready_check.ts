// The ready-check of one starting service, docs/reference.md "Ready-check": when it probes, when it gives up,
// and the result of the last probe. The probes themselves are made by an adapter.
import type { Probe } from '../../adapters/ready_probe.ts';
import type { ServiceExplanation } from '../../protocol/service.ts';
import type { Clock } from '../../runtime/actor.ts';
import { READY_CHECK, SERVICE } from '../../settings/limits.ts';
import type { LiveRun } from './run.ts';

export type LastCheck = NonNullable<ServiceExplanation['lastCheck']>;

export interface ReadyCheck {
  /**
   * The result of the last probe; null before the first one has ended, and when there is nothing to probe.
   */
  last(): LastCheck | null;
  /** Who had the port of the service when the check would have passed last; null: nobody had. */
  foreignHolder(): string | null;
  /** Ends the check without a result. */
  stop(): void;
}

/** What a check asks. */
export interface ReadyQuestions {
  probe: Probe;
  /** Calls `onDone` with who listens on the port of the service without being of its run; null: nobody. */
  foreignHolder: (onDone: (holder: string | null) => void) => void;
}

export interface ReadyPlan {
  /** null: the service is ready when its process has been up for 50 ms. */
  url: string | null;
  /** Uptime of the process, in milliseconds. */
  upMs: number;
  /** null: no deadline. 0: one probe, however long it takes. */
  timeoutMs: number | null;
  /** The longest pause between two probes, in milliseconds. */
  slowestMs: number;
}

/** The check of `run` with `timeoutMs` left. */
export function readyPlanOf(
  { askedAt, metadata, pty, startedAt }: LiveRun,
  timeoutMs: number | null,
  clock: Clock,
): ReadyPlan {
  const slowestMs = pty ? READY_CHECK.agentMaxIntervalMs : READY_CHECK.maxIntervalMs;
  // The wall clocks of two processes, each of which may have been set: monotonic time bounds what they say.
  const sinceAsked = askedAt === null ? Number.POSITIVE_INFINITY : clock.monotonic() - askedAt;
  const upMs = Math.min(sinceAsked, Math.max(0, clock.now() - startedAt));
  return { url: metadata.ready, upMs, timeoutMs, slowestMs };
}

/** Milliseconds from one probe to the next, after `waitedMs` of waiting. */
export function probePauseMs(waitedMs: number, slowestMs: number): number {
  return waitedMs < READY_CHECK.fastPhaseMs
    ? READY_CHECK.fastIntervalMs
    : Math.min(slowestMs, waitedMs * READY_CHECK.elapsedFraction);
}

const nothing = (): void => {};

/**
 * Tries until the check passes or times out, then calls `onResult` once with the outcome. What answers in the
 * place of the service does not count.
 */
export function startReadyCheck(
  clock: Clock,
  { probe, foreignHolder }: ReadyQuestions,
  { url, upMs, timeoutMs, slowestMs }: ReadyPlan,
  onResult: (passed: boolean) => void,
): ReadyCheck {
  let began = clock.monotonic();
  let last: LastCheck | null = null;
  let holder: string | null = null;
  let over = false;
  let cancelStep = nothing;
  let cancelDeadline = nothing;
  const stop = (): void => {
    over = true;
    cancelStep();
    cancelDeadline();
  };
  const finish = (passed: boolean): void => {
    if (over) return;
    stop();
    onResult(passed);
  };
  const judge = (passed: boolean, from: number): void => {
    const now = clock.monotonic();
    if (passed || (timeoutMs !== null && now - began >= timeoutMs)) finish(passed);
    else cancelStep = clock.after(Math.max(0, from + probePauseMs(now - began, slowestMs) - now), step);
  };
  const lookAtPort = (from: number): void =>
    foreignHolder((found) => {
      if (over) return;
      holder = found;
      if (last && found !== null) last.error = `it answered, but ${found} listens on the port of the service`;
      judge(found === null, from);
    });
  const step = (): void => {
    const from = clock.monotonic();
    cancelStep = nothing;
    if (url === null) lookAtPort(from);
    else
      cancelStep = probe(url, READY_CHECK.probeTimeoutMs, ({ status, error }) => {
        last = { url, at: clock.now(), status, error };
        if (error === null) lookAtPort(from);
        else judge(false, from);
      });
  };
  if (url === null) {
    cancelStep = clock.after(Math.max(0, SERVICE.minUptimeMs - upMs), () => {
      began = clock.monotonic();
      step();
    });
  } else {
    const late = (): void => {
      last ??= { url, at: clock.now(), status: null, error: `no answer yet after ${timeoutMs} ms` };
      finish(false);
    };
    if (timeoutMs) cancelDeadline = clock.after(timeoutMs, late);
    step();
  }
  return { last: () => last, foreignHolder: () => holder, stop };
}
