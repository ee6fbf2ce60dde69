// The life of one service as a table: the reaction of each phase to each event.
// docs/reference.md "Status and transitions". Each cell is the action itself; the machine only looks it up.
import { fail } from '../../protocol/errors.ts';
import type {
  RunEnd,
  ServiceProtocol,
  ServiceSpec,
  StartReply,
  StopReply,
  StoredService,
} from '../../protocol/service.ts';
import { type Failure, isFailure, type MessageOf, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE, TASK } from '../../settings/limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import type { Run, StartedBy } from './run.ts';
import { type In, type Phase, type RunFault, UNASKED } from './state.ts';
import { ownPort, stopSettings } from './stop_settings.ts';
import type { StartReason } from './stored_end.ts';

type StartRequest = MessageOf<ServiceProtocol, 'start'> & { by?: StartedBy };

/** Why a run must end. `graceMs` null: the service's own grace period. */
export interface FaultReport extends RunFault {
  run: string;
  graceMs: number | null;
}

/** The events of a service, and the reply to each. */
interface Events {
  /** A start, by a client unless `by` says otherwise. */
  start(request: StartRequest): Promise<StartReply>;
  /** A group's start of a member: a running service is left alone, a start under way is joined. */
  join(request: StartRequest): Promise<StartReply>;
  /** `graceMs` null: the service's own grace period. */
  stop(graceMs: number | null): Promise<StopReply>;
  /** The service was registered again: a pending restart is cancelled. */
  changed(stored: StoredService): Promise<null>;
  /** A run must end, though no client asked for it. */
  faulty(fault: FaultReport): void;
  /** The host reports the end of a run. */
  exited(end: RunEnd): void;
  /** The host has connected, for the first time or again: its ledger is compared with the known state. */
  adopt(): Promise<void>;
}

type Cell<P extends Phase, E extends keyof Events> = (
  machine: ServiceMachine,
  state: In<P>,
  ...message: Parameters<Events[E]>
) => ReturnType<Events[E]>;

type Row<P extends Phase> = { readonly [E in keyof Events]: Cell<P, E> };

/** Waits for the end of a task's run, for a start. `timeoutMs` null: for a day. */
function endOfTask({ life, name }: ServiceMachine, { ready }: Run, timeoutMs: number | null) {
  const ms = timeoutMs ?? SERVICE.taskWaitMs;
  const late = fail('ready_timeout', `${name} has not ended within ${ms} ms; it keeps running`);
  return life.inTime(ms, ready.promise, late);
}

/** How long a start waits for the process, and how it fails then. The inputs of a task are read first. */
function spawnLimit(
  { name, inputs, startTimeout }: ServiceSpec,
  timeoutMs: number | null,
): [ms: number, late: Failure] {
  const ms = Math.max(timeoutMs ?? startTimeout, SERVICE.minSpawnMs);
  const goesOn = `the start of ${name} continues`;
  if (inputs?.length && timeoutMs !== null)
    return [ms, fail('ready_timeout', `its inputs are not yet read after ${ms} ms; ${goesOn}`)];
  const readMs = inputs?.length ? TASK.hashTimeoutMs : 0;
  return [ms + readMs, fail('daemon_busy', `the process host does not answer; ${goesOn}`)];
}

const launch: Cell<'idle', 'start'> = (machine, _, { timeoutMs, wait, by = 'client' }) => {
  const { life } = machine;
  const { spec } = life.registered();
  const isTask = spec.kind === 'task';
  // A task has no deadline, and neither has a start of an agent that does not wait.
  const readyMs = timeoutMs ?? spec.startTimeout;
  const run = life.launchAsked(isTask || (spec.agent && !wait) ? null : readyMs, by);
  const [limitMs, late] = spawnLimit(spec, timeoutMs);
  const made = life.inTime(limitMs, run.spawned.promise, late);
  if (!wait) return made;
  return made.then(() => (isTask ? endOfTask(machine, run, timeoutMs) : run.ready.promise));
};
const startWithoutRestart: Cell<'waiting', 'start'> = (machine, _, request) =>
  machine.life.cancelRestart().then(() => machine.start(request));
const startAfterRecord: Cell<'ended', 'start'> = (machine, state, request) =>
  machine.life.record(state).then(() => machine.start(request));
const joinStart: Cell<'launching' | 'checking', 'join'> = (machine, state, { timeoutMs, wait }) => {
  const { life, name } = machine;
  const { run } = state;
  if (!wait)
    return state.phase === 'launching'
      ? run.spawned.promise
      : Promise.resolve(life.startResult('starting', state.run));
  if (run.metadata.task) return endOfTask(machine, run, timeoutMs);
  const ms = timeoutMs ?? life.registered().spec.startTimeout;
  const late = fail('ready_timeout', `${name} is still starting after ${ms} ms; the start continues`);
  return life.inTime(ms, run.ready.promise, late);
};
const joinRunning: Cell<'running', 'join'> = async (machine, { run }, { timeoutMs, wait }) =>
  wait && run.metadata.task ? endOfTask(machine, run, timeoutMs) : machine.life.startResult('running', run);
/** A stop during a launch waits for its result. */
const stopLaunch: Cell<'launching', 'stop'> = async (machine, { run }, graceMs) => {
  const { life } = machine;
  const settled = run.spawned.promise.then(
    () => run,
    () => run,
  );
  const reads = life.snapshot().stored?.spec.inputs?.length;
  const busy = fail('daemon_busy', `${machine.name} is being started: its inputs are read first`);
  await life.inTime(SERVICE.hostAskTimeoutMs, settled, reads ? busy : life.busy());
  return machine.stop(graceMs);
};
/**
 * The service is registered again while an end is being written: no restart follows that end, in this daemon
 * or a later one.
 */
const forgoRestart: Cell<'ended', 'changed'> = ({ life }, state) => {
  const strip = (): null => {
    delete state.end.restart;
    return null;
  };
  state.backoff = null;
  // A write under way still contains the restart, so the end is written again.
  if (!state.recording) strip();
  const recorded = life.record(state).then(() => life.cancelRestart());
  return tolerateFailure(recorded, strip);
};
const refuseRunning = ({ life, name }: ServiceMachine): never => {
  throw fail('already_running', `${name} is ${life.view().status} already`);
};
const refuseBusy = ({ life }: ServiceMachine): never => {
  throw life.busy();
};
const halt: Cell<'checking' | 'running', 'stop'> = ({ life }, { run }, graceMs) =>
  life.halt(run, graceMs, null).promise;
const endFaulty: Cell<'checking' | 'running', 'faulty'> = (
  { effects, life },
  { run },
  { run: id, graceMs, ...fault },
) => {
  if (run.id !== id) return;
  // The host keeps the reason, so that a later daemon does not take this stop for a client's.
  effects.note(run, { fault: fault.cause });
  life.halt(run, graceMs, null, fault);
};
const skipFault = (): void => {};
/** Makes the host end a stop under way within `asked` ms, unless it ends earlier. null: the service's own. */
function shorten({ effects, life }: ServiceMachine, state: In<'stopping'>, asked: number | null): void {
  const settings = stopSettings(life.snapshot().stored, asked);
  if (settings.graceMs >= state.graceMs) return;
  state.graceMs = settings.graceMs;
  // The stop under way has the same answer, and notices the loss of the host.
  void tolerateFailure(effects.stopRun(state.run.id, state.run.metadata.port, settings), () => null);
}
/** A client's stop joins one under way, may shorten it, and cancels the restart after it. */
const joinStop: Cell<'stopping', 'stop'> = (machine, state, graceMs) => {
  const { effects } = machine;
  shorten(machine, state, graceMs);
  if (state.fault) effects.note(state.run);
  state.fault = null;
  if (state.run.by !== 'client') state.late = null;
  return state.stop.promise;
};
const finish: Cell<'checking' | 'running', 'exited'> = ({ life }, { run }, end) => {
  if (end.run === run.id) life.finish(run, end, UNASKED);
};
/** What a stop ends. Under the next daemon, a change still starts a service that had ended by itself. */
const endedByStop = ({ isClosed }: ServiceMachine): StartReason[] =>
  isClosed ? ['relaunch'] : ['relaunch', 'unasked'];
/** Stops the leftover processes of the last run. Fails daemon_busy when the host does not answer. */
const acceptEnd: Cell<'idle' | 'ended', 'stop'> = async (machine, { phase }, asked) => {
  const { effects, life, name } = machine;
  const { end, stored } = life.snapshot();
  const port = stored ? ownPort(stored.spec) : null;
  const answer = { name, status: 'stopped', exitCode: null, signal: null } as const;
  if (!end) {
    const portFree = (await effects.portHolder(port)) === null;
    return { ...answer, escalated: false, reaped: 0, left: [], portFree, ms: 0 };
  }
  const stopped = effects.stopRun(end.run, port, stopSettings(stored, asked));
  const { exitUnknown: _exitUnknown, ...report } = await stopped.catch((error: unknown) => {
    throw isFailure(error) ? life.busy() : error;
  });
  // An end that is still being stored stays as it is.
  const isKept = machine.isClosed || end.status === 'completed';
  if (phase === 'idle') await life.lastEnd.forgo(...endedByStop(machine));
  // Only a client's stop turns a crash into `stopped`.
  if (phase === 'idle') await life.lastEnd.settle(end.run, isKept ? end.status : 'stopped');
  return { ...answer, ...report, exitCode: end.exitCode, signal: end.signal };
};
/** A stop while an end is being stored. If that end is a stop's, it gets the same answer. */
const stopEnded: Cell<'ended', 'stop'> = async (machine, state, graceMs) => {
  const reasons = endedByStop(machine);
  // A write under way still contains them, so the end is written again.
  const recorded = machine.life.record(state).then(() => machine.life.lastEnd.forgo(...reasons));
  const isRecorded = await tolerateFailure(
    recorded.then(() => true),
    () => {
      for (const reason of reasons) delete state.end[reason];
      return false;
    },
  );
  if (state.how.stop) return state.how.stop.answer;
  return isRecorded ? machine.stop(graceMs) : acceptEnd(machine, state, graceMs);
};
const look = ({ life }: ServiceMachine): Promise<void> => life.look();
const lookSoon = ({ life }: ServiceMachine): void => life.lookSoon();
const keep = async (): Promise<null> => null;
/** Nothing to do: the pending reply of the host brings the answer. */
const skip = async (): Promise<void> => {};
const skipEnd = (): void => {};

const TRANSITIONS: { readonly [P in Phase]: Row<P> } = {
  lost: {
    start: refuseBusy,
    join: refuseBusy,
    stop: refuseBusy,
    changed: keep,
    faulty: skipFault,
    exited: lookSoon,
    adopt: look,
  },
  idle: {
    start: launch,
    join: launch,
    stop: acceptEnd,
    changed: keep,
    faulty: skipFault,
    exited: lookSoon,
    adopt: look,
  },
  waiting: {
    start: startWithoutRestart,
    join: startWithoutRestart,
    stop: (machine, _, graceMs) => machine.life.cancelRestart().then(() => machine.stop(graceMs)),
    changed: ({ life }) => life.cancelRestart(),
    faulty: skipFault,
    exited: lookSoon,
    adopt: look,
  },
  launching: {
    start: refuseRunning,
    join: joinStart,
    stop: stopLaunch,
    changed: keep,
    faulty: skipFault,
    exited: (_, state, end) => {
      if (end.run === state.run.id) state.early = end;
    },
    adopt: skip,
  },
  checking: {
    start: refuseRunning,
    join: joinStart,
    stop: halt,
    changed: keep,
    faulty: endFaulty,
    exited: finish,
    adopt: look,
  },
  running: {
    start: refuseRunning,
    join: joinRunning,
    stop: halt,
    changed: keep,
    faulty: endFaulty,
    exited: finish,
    adopt: look,
  },
  stopping: {
    start: refuseBusy,
    join: refuseBusy,
    stop: joinStop,
    changed: keep,
    faulty: skipFault,
    exited: skipEnd,
    adopt: skip,
  },
  ended: {
    start: startAfterRecord,
    join: startAfterRecord,
    stop: stopEnded,
    changed: forgoRestart,
    faulty: skipFault,
    exited: skipEnd,
    adopt: skip,
  },
};

function cellOf<P extends Phase, E extends keyof Events>(state: In<P>, event: E): Cell<P, E> {
  const row: Row<P> = TRANSITIONS[state.phase];
  return row[event];
}

/** Routes each event of one service to the cell of its phase. */
export class ServiceMachine {
  readonly name: string;
  readonly life: ServiceLifecycle;
  readonly effects: ServiceEffects;
  /** Why starts are refused; null: they are accepted. */
  private closedBecause: string | null = null;

  /** Starts are refused, because the daemon shuts down or the service is being removed. */
  get isClosed(): boolean {
    return this.closedBecause !== null;
  }

  constructor(name: string, life: ServiceLifecycle, effects: ServiceEffects) {
    this.name = name;
    this.life = life;
    this.effects = effects;
  }

  /** Fails unknown_service, or daemon_busy after `close`, in addition to the errors of the phase. */
  start(request: StartRequest): Promise<StartReply> {
    this.life.registered();
    if (this.closedBecause)
      throw fail('daemon_busy', `${this.name} cannot be started: ${this.closedBecause}`);
    return this.dispatch(request.join ? 'join' : 'start', request);
  }

  /** Ends a process and any restart. `graceMs` null: the service's own grace period. */
  stop(graceMs: number | null): Promise<StopReply> {
    return this.dispatch('stop', graceMs);
  }

  /** Shortens a stop under way, as a stop does that joins it. */
  shortenStop(graceMs: number | null): void {
    const { state } = this.life.snapshot();
    if (state.phase === 'stopping') shorten(this, state, graceMs);
  }

  changed(stored: StoredService): Promise<null> {
    this.life.register(stored);
    return this.dispatch('changed', stored);
  }

  faulty(fault: FaultReport): void {
    this.dispatch('faulty', fault);
  }

  exited(end: RunEnd): void {
    if (this.life.isRecorded(end.run)) this.effects.acknowledge(end.run);
    else this.dispatch('exited', end);
  }

  /** Resolves when an end from the ledger is on disk, or could not be written. */
  async adopt(): Promise<void> {
    await this.dispatch('adopt');
    const { state } = this.life.snapshot();
    // A failed write is repeated until it succeeds.
    if (state.phase === 'ended') await tolerateFailure(this.life.record(state), () => null);
  }

  /** Refuses starts from now on, for `reason`. Returns a function that undoes it. */
  close(reason: string): () => void {
    const before = this.closedBecause;
    this.closedBecause = reason;
    return () => {
      this.closedBecause = before;
    };
  }

  /** Forgets a removed service until it is registered again. */
  forget(): void {
    this.life.forget();
    this.closedBecause = null;
  }

  private dispatch<E extends keyof Events>(
    event: E,
    ...message: Parameters<Events[E]>
  ): ReturnType<Events[E]> {
    const { state } = this.life.snapshot();
    return cellOf(state, event)(this, state, ...message);
  }
}
