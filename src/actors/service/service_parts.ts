// The parts of a service, which need each other: each gets functions that access the others when called.
import { type Context, tolerateFailure } from '../../runtime/actor.ts';
import type { AgentRequests } from './agent_requests.ts';
import { AgentSession } from './agent_session.ts';
import type { AgentState } from './agent_state.ts';
import { type AgentTerminal, DEFAULT_TERMINAL_SIZE, type TerminalConfig } from './agent_terminal.ts';
import type { ProbeMeans } from './check_probes.ts';
import type { ServiceEffects, ServiceEffectsConfig } from './effects.ts';
import { FileWatch } from './file_watch.ts';
import { ServiceLifecycle } from './lifecycle.ts';
import type { ServiceMachine } from './machine.ts';
import type { Restarts } from './restarts.ts';
import { ServiceDoor } from './service_door.ts';
import type { ServiceLog } from './service_log.ts';
import { liveRun } from './state.ts';
import type { StateScreens } from './state_screen.ts';

/** Shared by all services of a thread. */
export interface ServiceConfig extends ServiceEffectsConfig, TerminalConfig, ProbeMeans {
  /** The host's log directory: one folder per service. */
  logs: string;
  /** When the machine was booted, epoch milliseconds. Restarts owed from before that are dropped. */
  bootedAt: number;
  states: StateScreens;
  /** The range of ports for services behind a door. */
  ports: readonly [from: number, to: number];
}

/** A service as its parts see it. Parts created later exist by the time they are called. */
export interface SupervisedParts {
  readonly context: Context;
  readonly name: string;
  readonly effects: ServiceEffects;
  readonly log: ServiceLog;
  readonly terminal: AgentTerminal;
  readonly door: ServiceDoor;
  readonly session: AgentSession;
  readonly life: ServiceLifecycle;
  readonly machine: ServiceMachine;
  readonly restarts: Restarts;
  readonly files: FileWatch;
  readonly agent: AgentState;
  readonly requests: AgentRequests;
}

export function createDoor(parts: SupervisedParts, { ports, store }: ServiceConfig): ServiceDoor {
  const { context, effects, name } = parts;
  return new ServiceDoor({
    context,
    name,
    effects,
    table: store.table('doors'),
    ports,
    known: () => parts.life.snapshot(),
    stop: () => parts.machine.stop(null),
    onChanged: () => parts.life.publish(),
  });
}

export function createSession(parts: SupervisedParts, { store }: ServiceConfig): AgentSession {
  const { context, effects, name, terminal } = parts;
  const size = () => {
    const { state, stored } = parts.life.snapshot();
    return { ...(stored?.spec.agent ?? DEFAULT_TERMINAL_SIZE), marks: liveRun(state)?.metadata.sizes };
  };
  return new AgentSession({
    context,
    name,
    effects,
    table: store.table('sessions'),
    known: () => parts.life.snapshot(),
    status: () => parts.agent.status(),
    screen: (run) => terminal.keptScreen(run, size()),
    isPrompted: () => parts.requests.prompts.isUnderWay,
    stop: () => parts.machine.stop(null),
    onChanged: () => parts.life.publish(),
  });
}

export function createLife(parts: SupervisedParts, config: ServiceConfig): ServiceLifecycle {
  const { context, door, effects, log, name, session, terminal } = parts;
  const { bootedAt, execProbe, probe } = config;
  return new ServiceLifecycle({
    context,
    name,
    effects,
    door,
    session,
    probes: {
      probe,
      execProbe,
      clock: context.clock,
      host: effects.questions,
      log,
      onDefect: (error) => context.crash(error),
    },
    bootedAt,
    lastLines: (run) => log.lastLines(run),
    onChanged: () => {
      parts.files.update();
      parts.agent.update();
    },
    onUnhealthy: (run, check) => {
      const told = tolerateFailure(effects.reportUnhealthy(run, check), () => null);
      const fault = { run: run.id, cause: 'unhealthy', check, graceMs: null } as const;
      told.then(() => parts.machine.faulty(fault)).catch((error: unknown) => context.crash(error));
    },
    isRelaunched: (run) => parts.files.isRelaunched(run),
    isReleased: () => parts.files.isReleased,
    onEnded: (run, { exitCode, signal }) => {
      effects.untrack(run);
      parts.files.onEnded(run);
      door.release();
      terminal.onRunEnded(run.id, { exitCode, signal });
    },
  });
}

export function createFileWatch(parts: SupervisedParts, { bootedAt }: ServiceConfig): FileWatch {
  const { context, door, effects, life, machine, name, restarts, session } = parts;
  return new FileWatch({
    context,
    name,
    effects,
    life,
    bootedAt,
    start: async () => machine.start({ timeoutMs: null, wait: true, join: true, by: 'change' }),
    restart: async () => restarts.restart({ timeoutMs: null, graceMs: null }, 'change'),
    isRestarting: () => restarts.isStopping,
    isAsleep: () => {
      const run = liveRun(life.snapshot().state);
      const isFalling = run !== null && (session.sleptAfter(run.id) ?? door.sleptAfter(run.id)) !== null;
      return isFalling || life.view().status === 'sleeping';
    },
  });
}
