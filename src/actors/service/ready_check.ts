// The ready-check of one starting service, docs/reference.md "Ready-check": when it probes, when it gives
// up, and the result of the last probe. The probes themselves are made by an adapter.
import { readyCheckOf } from '../../protocol/checks.ts';
import type { LastCheck } from '../../protocol/service.ts';
import type { Clock } from '../../runtime/actor.ts';
import { CHECK, READY_CHECK, SERVICE } from '../../settings/limits.ts';
import type { AskCheck } from './check_probes.ts';
import { CheckTime } from './check_time.ts';
import type { LiveRun } from './run.ts';

export interface ReadyCheck {
  /**
   * The result of the last probe; null before the first one has ended, and when there is nothing to probe.
   */
  last(): LastCheck | null;
  /** Who held the service's port when the check would last have passed; null: nobody. */
  foreignHolder(): string | null;
  /** Milliseconds until it times out; null: never. */
  leftMs(): number | null;
  /** Ends the check without a result. */
  stop(): void;
}

/** How to make the probes of a check. */
export interface ReadyQuestions {
  /** Probes what the plan names. */
  ask: AskCheck;
  /** Calls `onDone` with who listens on the service's port without belonging to its run; null: nobody. */
  foreignHolder: (onDone: (holder: string | null) => void) => void;
}

export interface ReadyPlan {
  /**
   * What is probed, as shown to people; null: the service is ready once its process has been up for 50 ms.
   */
  text: string | null;
  /** Uptime of the process, in milliseconds. */
  upMs: number;
  /** null: no deadline. 0: one probe, however long it takes. */
  timeoutMs: number | null;
  probeMs: number;
  /** The shortest and the longest pause between two probes, in milliseconds. */
  fastestMs: number;
  slowestMs: number;
}

/** The check of `run` with `timeoutMs` left. */
export function readyPlanOf(
  { askedAt, metadata, pty, startedAt }: LiveRun,
  timeoutMs: number | null,
  clock: Clock,
): ReadyPlan {
  const check = readyCheckOf(metadata.ready, metadata.port);
  const isExec = check?.probing.kind === 'exec';
  const fastestMs =
    check?.intervalMs ?? (isExec ? READY_CHECK.minExecIntervalMs : READY_CHECK.fastIntervalMs);
  const usualMs = pty ? READY_CHECK.agentMaxIntervalMs : READY_CHECK.maxIntervalMs;
  const slowestMs = check?.intervalMs ?? usualMs;
  // The wall clock may have been set between the two processes, so monotonic time limits the result.
  const sinceAsked = askedAt === null ? Number.POSITIVE_INFINITY : clock.monotonic() - askedAt;
  const upMs = Math.min(sinceAsked, Math.max(0, clock.now() - startedAt));
  const probeMs = check?.timeoutMs ?? CHECK.timeoutMs;
  return { text: check?.text ?? null, upMs, timeoutMs, probeMs, fastestMs, slowestMs };
}

/** Milliseconds between two probes, after `waitedMs` of waiting. */
export function probePauseMs(
  waitedMs: number,
  { fastestMs, slowestMs }: Pick<ReadyPlan, 'fastestMs' | 'slowestMs'>,
): number {
  return waitedMs < READY_CHECK.fastPhaseMs
    ? fastestMs
    : Math.max(fastestMs, Math.min(slowestMs, waitedMs * READY_CHECK.elapsedFraction));
}

const nothing = (): void => {};

/**
 * Probes until the check passes or times out, then calls `onResult` once with the outcome. Answers from
 * another program on the port do not count.
 */
export function startReadyCheck(
  clock: Clock,
  { ask, foreignHolder }: ReadyQuestions,
  { text, timeoutMs, upMs, ...plan }: ReadyPlan,
  onResult: (passed: boolean) => void,
): ReadyCheck {
  const time = new CheckTime(clock);
  let last: LastCheck | null = null;
  let holder: string | null = null;
  let over = false;
  let cancelStep = nothing;
  const stop = (): void => {
    over = true;
    cancelStep();
    time.stop();
  };
  const finish = (passed: boolean): void => {
    if (over) return;
    stop();
    onResult(passed);
  };
  const judge = (passed: boolean, from: number): void => {
    const waited = time.ms;
    if (passed || (timeoutMs !== null && waited >= timeoutMs)) finish(passed);
    else cancelStep = clock.after(Math.max(0, from + probePauseMs(waited, plan) - clock.monotonic()), step);
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
    if (text === null) lookAtPort(from);
    else
      cancelStep = ask(plan.probeMs, ({ status, error }) => {
        last = { url: text, at: clock.now(), status, error };
        if (error === null) lookAtPort(from);
        else judge(false, from);
      });
  };
  if (text === null) {
    cancelStep = clock.after(Math.max(0, SERVICE.minUptimeMs - upMs), () => {
      time.start(null, nothing);
      step();
    });
  } else {
    // With a timeout of 0 the first probe decides.
    time.start(timeoutMs || null, () => {
      last ??= { url: text, at: clock.now(), status: null, error: `no answer yet after ${timeoutMs} ms` };
      finish(false);
    });
    step();
  }
  const leftMs = (): number | null => timeoutMs && Math.max(0, timeoutMs - time.ms);
  return { last: () => last, foreignHolder: () => holder, leftMs, stop };
}
