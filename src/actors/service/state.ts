// The phases of a service, what is known in each and which may follow:
// docs/reference.md "Status and transitions". What each phase answers to what happens stands in machine.ts.
import type { LastEnd, RunEnd, ServiceState, ServiceStatus, StopResult } from '../../protocol/service.ts';
import type { Deferred } from '../../runtime/deferred.ts';
import type { LastCheck, ReadyCheck } from './ready_check.ts';
import type { Backoff } from './restart_policy.ts';
import type { LiveRun, Run } from './run.ts';

/** What is known in each phase. */
interface PhaseData {
  /**
   * It is not known what the process host has: before the first look, and after the host went away in the
   * middle of a launch or a stop (`was`). Requests are refused until the host has answered.
   */
  lost: { was: In<'launching' | 'stopping'> | null };
  /** No process, and none to come. `trouble`: why the last start made no process. */
  idle: { trouble: string | null };
  /** No process; one is started when the timer fires. `trouble`: as above, of the last restart. */
  waiting: { backoff: Backoff; trouble: string | null };
  /**
   * Starting: the port is looked at and the process is being made. `early`: the end, where it outruns the
   * spawn's reply.
   */
  launching: { run: Run; early: RunEnd | null };
  /** Starting: the process exists and has not passed its ready-check yet. */
  checking: { run: LiveRun; check: ReadyCheck };
  running: { run: LiveRun };
  /** The host ends the process tree. */
  stopping: { run: LiveRun; graceMs: number; late: ReadyTimeout | null; stop: Deferred<StopResult> };
  /**
   * No process; its end is being written down. `recording`: the attempt under way, null between two attempts.
   */
  ended: {
    run: LiveRun;
    end: LastEnd;
    how: EndContext;
    backoff: Backoff | null;
    recording: Promise<void> | null;
  };
}

export type Phase = keyof PhaseData;

/** The state of a service in one of the phases `P`. */
export type In<P extends Phase> = { [K in P]: { readonly phase: K } & PhaseData[K] }[P];

export type LifecycleState = In<Phase>;

/** Where a comparison with the host's ledger can lead. */
const RECONCILED = ['checking', 'running', 'stopping', 'ended'] as const;

/** The phases that may follow each phase. */
export const SUCCESSORS: { readonly [P in Phase]: readonly Phase[] } = {
  lost: ['idle', 'waiting', ...RECONCILED],
  idle: ['launching', ...RECONCILED],
  waiting: ['idle', 'launching', ...RECONCILED],
  launching: ['idle', 'waiting', 'checking', 'ended', 'lost'],
  checking: ['running', 'stopping', 'ended'],
  running: ['stopping', 'ended'],
  stopping: ['ended', 'lost'],
  ended: ['idle', 'waiting'],
};

/** What was known when the ready-check ran out of time. */
export interface ReadyTimeout {
  check: LastCheck | null;
  /** Who listened on the port at that moment. */
  holder: Promise<string | null>;
}

/** What came before an end. */
export interface EndContext {
  /** A stop was asked for, by a client or after a ready-check that ran out of time. */
  stopped: boolean;
  late: ReadyTimeout | null;
  /** The stop that waits for its answer; null where nobody waits. */
  stop: { asked: Deferred<StopResult>; answer: StopResult } | null;
}

/** An end that nobody has asked for. */
export const UNASKED: EndContext = { stopped: false, late: null, stop: null };

/** The run whose process exists as far as is known; null without one. */
export function liveRun(state: LifecycleState): LiveRun | null {
  switch (state.phase) {
    case 'lost':
      return state.was && liveRun(state.was);
    case 'checking':
    case 'running':
    case 'stopping':
      return state.run;
    case 'idle':
    case 'waiting':
    case 'launching':
    case 'ended':
      return null;
  }
}

/** The status that clients see; `end` is that of the last process. */
function statusOf(state: LifecycleState, end: LastEnd | null): ServiceStatus {
  switch (state.phase) {
    case 'lost':
      return state.was ? statusOf(state.was, end) : (end?.status ?? 'stopped');
    case 'launching':
    case 'checking':
      return 'starting';
    case 'running':
    case 'stopping':
      return state.phase;
    case 'idle':
    case 'waiting':
    case 'ended':
      return end?.status ?? 'stopped';
  }
}

/** What the views are told. */
export function serviceStateOf(
  name: string,
  state: LifecycleState,
  end: LastEnd | null,
  restarts: number,
): ServiceState {
  const run = liveRun(state);
  return {
    name,
    status: statusOf(state, end),
    restarts,
    process: run && {
      run: run.id,
      pid: run.pid,
      startedAt: run.startedAt,
      port: run.metadata.port,
      revision: run.metadata.revision,
      rssMB: run.rssMB,
    },
    end,
  };
}
