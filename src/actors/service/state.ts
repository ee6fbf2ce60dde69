// The life of a service as data: in which phase it is, what each phase answers to each event, and from which phase to
// which it may go: docs/reference.md "Status and transitions". Pure: the actor looks up here and does the
// effects.
import type { LastEnd, RunEnd, ServiceState, ServiceStatus, StopResult } from '../../protocol/service.ts';
import type { Deferred } from '../../runtime/deferred.ts';
import type { LastCheck, ReadyCheck } from './ready_check.ts';
import type { Backoff } from './restart_policy.ts';
import type { LiveRun, Run } from './run.ts';

/**
 * - `lost`: what the process host has is not known: before the first look, and when the host went away in the middle
 *   of something. Requests are refused until it has been asked.
 * - `idle`: no process, and none to come.
 * - `waiting`: no process; one is started when the timer fires.
 * - `launching`: starting; the port is looked at and the process is being made.
 * - `checking`: starting; the process is there and the ready-check has not passed yet.
 * - `running`
 * - `stopping`: the host ends the process tree.
 * - `ended`: no process; its end is being written down.
 */
export type LifecyclePhase = LifecycleState['phase'];

interface PhaseRow {
  /** A client's start. `cancel`: no restart any more, then again. `after`: again when what is under way is over. */
  start: 'launch' | 'refuse' | 'busy' | 'cancel' | 'after';
  /** A group's start of a member: what runs is left alone, a start under way is joined. */
  join: 'launch' | 'answer' | 'share' | 'busy' | 'cancel' | 'after';
  stop: 'none' | 'cancel' | 'after' | 'halt' | 'share' | 'busy';
  /** It was registered again: no restart follows any more. */
  changed: 'keep' | 'cancel' | 'after';
  /** The host tells the end of the run at hand. `hold`: until the spawn is answered. */
  exited: 'look' | 'hold' | 'finish' | 'skip';
  /** Look what the host has: at boot, and when the host is back. `skip`: the answer under way will say it. */
  adopt: 'look' | 'skip';
  /** Phases that may follow. */
  next: readonly LifecyclePhase[];
}

/** Where a look at the host's ledger can lead. */
const RECONCILED_PHASES = ['checking', 'running', 'stopping', 'ended'] as const;

export const TRANSITIONS: Readonly<Record<LifecyclePhase, PhaseRow>> = {
  lost: {
    start: 'busy',
    join: 'busy',
    stop: 'busy',
    changed: 'keep',
    exited: 'look',
    adopt: 'look',
    next: ['idle', 'waiting', ...RECONCILED_PHASES],
  },
  idle: {
    start: 'launch',
    join: 'launch',
    stop: 'none',
    changed: 'keep',
    exited: 'look',
    adopt: 'look',
    next: ['launching', ...RECONCILED_PHASES],
  },
  waiting: {
    start: 'cancel',
    join: 'cancel',
    stop: 'cancel',
    changed: 'cancel',
    exited: 'look',
    adopt: 'look',
    next: ['idle', 'launching', ...RECONCILED_PHASES],
  },
  launching: {
    start: 'refuse',
    join: 'share',
    stop: 'after',
    changed: 'keep',
    exited: 'hold',
    adopt: 'skip',
    next: ['idle', 'waiting', 'checking', 'ended', 'lost'],
  },
  checking: {
    start: 'refuse',
    join: 'share',
    stop: 'halt',
    changed: 'keep',
    exited: 'finish',
    adopt: 'look',
    next: ['running', 'stopping', 'ended'],
  },
  running: {
    start: 'refuse',
    join: 'answer',
    stop: 'halt',
    changed: 'keep',
    exited: 'finish',
    adopt: 'look',
    next: ['stopping', 'ended'],
  },
  stopping: {
    start: 'busy',
    join: 'busy',
    stop: 'share',
    changed: 'keep',
    exited: 'skip',
    adopt: 'skip',
    next: ['ended', 'lost'],
  },
  ended: {
    start: 'after',
    join: 'after',
    stop: 'after',
    changed: 'after',
    exited: 'skip',
    adopt: 'skip',
    next: ['idle', 'waiting'],
  },
};

/** What was known when the ready-check ran out of time. */
export interface ReadyTimeout {
  check: LastCheck | null;
  /** Who listened on the port then. */
  holder: Promise<string | null>;
}

export type LifecycleState =
  | { phase: 'lost'; was: LifecycleState | null; cancel: () => void }
  /** `trouble`: why the last start made no process. */
  | { phase: 'idle'; trouble: string | null }
  | { phase: 'waiting'; backoff: Backoff; trouble: string | null; cancel: () => void }
  | { phase: 'launching'; run: Run; early: RunEnd | null }
  | { phase: 'checking'; run: LiveRun; check: ReadyCheck }
  | { phase: 'running'; run: LiveRun }
  | {
      phase: 'stopping';
      run: LiveRun;
      graceMs: number;
      late: ReadyTimeout | null;
      stop: Deferred<StopResult>;
    }
  | EndedState;

export interface EndedState {
  phase: 'ended';
  run: LiveRun;
  end: LastEnd;
  how: EndContext;
  backoff: Backoff | null;
  /** The attempt under way to write the end down; null between two attempts. */
  recording: Promise<void> | null;
  cancel: () => void;
}

/** What came before an end. */
export interface EndContext {
  /** Somebody asked for it. */
  stopped: boolean;
  late: ReadyTimeout | null;
  /** The stop that waits to be answered; null where nobody waits. */
  stop: { asked: Deferred<StopResult>; answer: StopResult } | null;
}

/** The run of a state that has a process. */
export function liveRun(state: LifecycleState): LiveRun | null {
  if (state.phase === 'lost') return state.was && liveRun(state.was);
  return state.phase === 'checking' || state.phase === 'running' || state.phase === 'stopping'
    ? state.run
    : null;
}

/** The run of a phase that has one; where the table leads here without it, that is a defect. */
export function runOf(state: LifecycleState): Run {
  if ('run' in state) return state.run;
  throw new TypeError(`${state.phase} has no run`);
}

export function liveRunOf(state: LifecycleState): LiveRun {
  const run = liveRun(state);
  if (run) return run;
  throw new TypeError(`${state.phase} has no process`);
}

export function stopOf(state: LifecycleState): Deferred<StopResult> {
  if (state.phase === 'stopping') return state.stop;
  throw new TypeError(`${state.phase} has no stop`);
}

/** The timers and checks of a phase end with it. */
export function disposeState(state: LifecycleState): void {
  if (state.phase === 'checking') state.check.stop();
  else if ('cancel' in state) state.cancel();
}

function statusOfState(state: LifecycleState, end: LastEnd | null): ServiceStatus {
  switch (state.phase) {
    case 'lost':
      return state.was ? statusOfState(state.was, end) : (end?.status ?? 'stopped');
    case 'launching':
    case 'checking':
      return 'starting';
    case 'running':
    case 'stopping':
      return state.phase;
    default:
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
    status: statusOfState(state, end),
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
