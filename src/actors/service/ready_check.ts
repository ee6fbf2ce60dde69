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
  /** Ends the check without a result. */
  stop(): void;
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

/** The check of `run` with `timeoutMs` left. `now`: epoch milliseconds. */
export function readyPlanOf(
  { metadata, pty, startedAt }: LiveRun,
  timeoutMs: number | null,
  now: number,
): ReadyPlan {
  const slowestMs = pty ? READY_CHECK.agentMaxIntervalMs : READY_CHECK.maxIntervalMs;
  return { url: metadata.ready, upMs: now - startedAt, timeoutMs, slowestMs };
}

/** Milliseconds from one probe to the next, after `waitedMs` of waiting. */
export function probePauseMs(waitedMs: number, slowestMs: number): number {
  return waitedMs < READY_CHECK.fastPhaseMs
    ? READY_CHECK.fastIntervalMs
    : Math.min(slowestMs, waitedMs * READY_CHECK.elapsedFraction);
}

/** Probes until the check passes or times out, then calls `onResult` once with the outcome. */
export function startReadyCheck(
  clock: Clock,
  probe: Probe,
  plan: ReadyPlan,
  onResult: (passed: boolean) => void,
): ReadyCheck {
  const { url, timeoutMs, slowestMs } = plan;
  if (url === null) {
    const stop = clock.after(Math.max(0, SERVICE.minUptimeMs - plan.upMs), () => onResult(true));
    return { last: () => null, stop };
  }
  const began = clock.monotonic();
  let last: LastCheck | null = null;
  let over = false;
  let cancelStep = (): void => {};
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
  const step = (): void => {
    const from = clock.monotonic();
    cancelStep = probe(url, READY_CHECK.probeTimeoutMs, ({ status, error }) => {
      last = { url, at: clock.now(), status, error };
      if (error === null || timeoutMs === 0) return finish(error === null);
      const now = clock.monotonic();
      cancelStep = clock.after(Math.max(0, from + probePauseMs(now - began, slowestMs) - now), step);
    });
  };
  const late = (): void => {
    last ??= { url, at: clock.now(), status: null, error: `no answer yet after ${timeoutMs} ms` };
    finish(false);
  };
  const cancelDeadline = timeoutMs ? clock.after(timeoutMs, late) : () => {};
  step();
  return { last: () => last, stop };
}
