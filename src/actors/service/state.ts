// The phases of a service, the data of each and its successors: docs/reference.md "Status and transitions".
// machine.ts holds the reaction of each phase to each event.
import type {
  EndCause,
  LastCheck,
  LastEnd,
  RunEnd,
  ServiceState,
  ServiceStatus,
  StopReply,
} from '../../protocol/service.ts';
import type { Deferred } from '../../runtime/deferred.ts';
import type { LiveCheck } from './live_check.ts';
import type { ReadyCheck } from './ready_check.ts';
import type { Backoff } from './restart_policy.ts';
import { type LiveRun, publicPort, type Run } from './run.ts';

/** The data of each phase. */
interface PhaseData {
  /**
   * The host's record is unknown: before its first answer, and after the host was lost during a launch or a
   * stop (`was`). Requests are refused until the host has answered.
   */
  lost: { was: In<'launching' | 'stopping'> | null };
  /** No process, and no restart pending. `trouble`: why the last start failed to start a process. */
  idle: { trouble: string | null };
  /** No process; a timer will start one. `trouble`: why the last restart failed to start a process. */
  waiting: { backoff: Backoff; trouble: string | null };
  /**
   * Starting: the port is checked and the process is being started. `early`: an end that arrived before the
   * spawn's reply.
   */
  launching: { run: Run; early: RunEnd | null };
  /** Starting: the process exists and has not passed its ready-check yet. */
  checking: { run: LiveRun; check: ReadyCheck };
  /** `live`: its live-check; null: it has none. */
  running: { run: LiveRun; live: LiveCheck | null };
  /** The host is ending the process tree. `late` and `fault`: why, if no client asked for it. */
  stopping: {
    run: LiveRun;
    graceMs: number;
    late: ReadyTimeout | null;
    fault: RunFault | null;
    stop: Deferred<StopReply>;
  };
  /** No process; its end is being stored. `recording`: the current attempt; null between two attempts. */
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

/** The phases that a comparison with the host's ledger can lead to. */
const RECONCILED = ['checking', 'running', 'stopping', 'ended'] as const;

/** The phases that may follow each phase. */
export const SUCCESSORS: { readonly [P in Phase]: readonly Phase[] } = {
  lost: ['idle', 'waiting', ...RECONCILED],
  idle: ['launching', ...RECONCILED],
  waiting: ['idle', 'launching', ...RECONCILED],
  launching: ['idle', 'waiting', 'checking', 'running', 'ended', 'lost'],
  checking: ['running', 'stopping', 'ended'],
  running: ['stopping', 'ended'],
  stopping: ['ended', 'lost'],
  ended: ['idle', 'waiting'],
};

/** The facts at the moment the ready-check timed out. */
export interface ReadyTimeout {
  check: LastCheck | null;
  /** The process that listened on the port at that moment. */
  holder: Promise<string | null>;
  /** Who held the service's port, so that the check did not pass; null: nobody. */
  foreignHolder: string | null;
}

/** Why a running process is ended without a client's request. */
export interface RunFault {
  cause: EndCause;
  /** The last live-check; null: another fault, or a stop that an earlier daemon began. */
  check: LastCheck | null;
}

/** The circumstances of an end. */
export interface EndContext {
  /** A stop was requested, by a client or after a ready-check that timed out. */
  stopped: boolean;
  late: ReadyTimeout | null;
  fault: EndCause | null;
  /** The stop waiting for its answer; null if none. */
  stop: { asked: Deferred<StopReply>; answer: StopReply } | null;
}

/** An end that nobody requested. */
export const UNASKED: EndContext = { stopped: false, late: null, fault: null, stop: null };

/** Whether a run is being stopped without a client's request. */
export const isUnasked = ({ late, fault }: In<'stopping'>): boolean => late !== null || fault !== null;

/** Phases in which nothing is running or about to run. */
const RESTING: ReadonlySet<Phase> = new Set(['lost', 'idle', 'ended']);

/** Whether nothing is running or about to run. */
export const isResting = ({ phase }: LifecycleState): boolean => RESTING.has(phase);

/** The run whose process is known to exist; null without one. */
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

/** The status that clients see. `end` is the end of the last process. */
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

/** The row for the views, of a service with a closed door. */
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
    ...(state.phase === 'launching' && { launching: state.run.id }),
    process: run && {
      run: run.id,
      pid: run.pid,
      startedAt: run.startedAt,
      port: publicPort(run.metadata),
      revision: run.metadata.revision,
      rssMB: run.rssMB,
      innerPort: run.metadata.doorPort === undefined ? null : run.metadata.port,
    },
    end,
    isDoorOpen: false,
  };
}
