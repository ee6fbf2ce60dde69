// State: the phase and the end of the last process (lifecycle.ts), the followers of the log, the viewers of
// the terminal. Rebuilt from: the store (spec and end) and the ledger of the process host (the run); viewers
// attach again.
import { join } from 'node:path';
import { SERVICE_PREFIX } from '../../protocol/address.ts';
import type { AgentStateProtocol } from '../../protocol/agent_state.ts';
import type { CommandProtocol } from '../../protocol/commands.ts';
import { fail } from '../../protocol/errors.ts';
import type { PromptMessage, PromptProtocol, PromptReply } from '../../protocol/prompts.ts';
import type {
  RunEnd,
  ServiceExplanation,
  ServiceProtocol,
  SignalReply,
  SleepReply,
  StartReply,
  StopReply,
  StoredService,
} from '../../protocol/service.ts';
import type { TerminalProtocol } from '../../protocol/terminal.ts';
import type { WatchedServiceProtocol } from '../../protocol/watcher.ts';
import { actor, type Context, type MessageOf, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import { AgentRequests } from './agent_requests.ts';
import type { AgentSession } from './agent_session.ts';
import { AgentState, agentStateHandlers } from './agent_state.ts';
import { AgentTerminal } from './agent_terminal.ts';
import { CommandSession } from './command_session.ts';
import { ServiceEffects } from './effects.ts';
import { explain } from './explanation_facts.ts';
import type { FileWatch } from './file_watch.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import { ServiceMachine } from './machine.ts';
import { MemberOverride } from './member_override.ts';
import { Restarts } from './restarts.ts';
import type { ServiceDoor } from './service_door.ts';
import { ServiceLog } from './service_log.ts';
import {
  createDoor,
  createFileWatch,
  createLife,
  createSession,
  type ServiceConfig,
  type SupervisedParts,
} from './service_parts.ts';
import { liveRun } from './state.ts';
import { TaskStarts } from './task_starts.ts';

/** The requests of a service beyond the table of phases. */
class SupervisedService implements SupervisedParts {
  readonly machine: ServiceMachine;
  readonly log: ServiceLog;
  readonly terminal: AgentTerminal;
  readonly context: Context;
  readonly name: string;
  readonly door: ServiceDoor;
  readonly session: AgentSession;
  readonly effects: ServiceEffects;
  readonly life: ServiceLifecycle;
  readonly tasks: TaskStarts;
  readonly files: FileWatch;
  readonly agent: AgentState;
  readonly requests: AgentRequests;
  readonly restarts: Restarts;
  /** Cancels the pending end of an actor whose service is not registered. */
  private cancelEnd = (): void => {};
  /** The command, if this actor is one instead of a service. */
  private command: CommandSession | null = null;

  constructor(context: Context, config: ServiceConfig) {
    const { screens, logs, viewersInThread } = config;
    const name = context.address.slice(SERVICE_PREFIX.length);
    const effects = new ServiceEffects(context, config, name);
    const log = new ServiceLog(join(logs, name), effects);
    const terminal = new AgentTerminal(context, { screens, viewersInThread }, log, effects);
    this.context = context;
    this.name = name;
    this.effects = effects;
    this.log = log;
    this.terminal = terminal;
    this.door = createDoor(this, config);
    this.session = createSession(this, config);
    this.life = createLife(this, config);
    this.machine = new ServiceMachine(name, this.life, effects);
    const override = new MemberOverride(context, config.store, name);
    this.restarts = new Restarts(this.machine, context.clock, override);
    this.tasks = new TaskStarts(name, this.life, this.machine, effects);
    this.files = createFileWatch(this, config);
    const { life, session } = this;
    this.agent = new AgentState({
      context,
      name,
      effects,
      life,
      log,
      terminal,
      screens: config.states,
      session,
    });
    this.agent.watchStatus(() => session.follow());
    this.requests = new AgentRequests({ context, name, life, log, terminal, agent: this.agent, session });
  }

  /** A client's stop, which overrides a restart under way. */
  async stop(message: MessageOf<ServiceProtocol, 'stop'>): Promise<StopReply> {
    const { graceMs, last = false, forRestart } = message;
    this.life.registered();
    // Its door stays open if it is asleep.
    if (forRestart !== undefined && this.restarts.isOverridden(forRestart)) return this.machine.stop(graceMs);
    if (last) this.machine.close('the daemon is shutting down');
    this.restarts.cancel(forRestart !== undefined ? 'group' : last ? 'shutdown' : 'client');
    const answer = await this.files.clientsStop(() => this.stopProcess(graceMs, last));
    await this.restarts.kept;
    return answer;
  }

  private stopProcess(graceMs: number | null, last: boolean): Promise<StopReply> {
    if (this.session.isKept) {
      const kept = last ? this.session.suspend() : this.session.ended();
      return kept.then(() => this.machine.stop(graceMs));
    }
    if (!this.door.isOpen) return this.machine.stop(graceMs);
    const told = last ? this.door.suspend() : this.door.forget();
    return told
      .then(() => this.machine.stop(graceMs))
      .then(async (answer) => {
        await this.door.closed();
        return answer;
      });
  }

  /**
   * Starts the service, and continues through restarts. A wake first waits for a stop under way; autostart
   * does so, too.
   */
  start(message: MessageOf<ServiceProtocol, 'start'>): Promise<StartReply> {
    const { wake = false, autostart = false, awake = false, force = false, slot, askedAt } = message;
    const { spec } = this.life.registered();
    const isUp = ['starting', 'running'].includes(this.life.view().status);
    if (!isUp) this.effects.refuseUncreated(spec);
    this.restarts.allowStart(askedAt);
    if (slot !== undefined) return this.tasks.atSlot(message, slot);
    if (wake && this.session.isFallingAsleep) return this.session.settled().then(() => this.start(message));
    this.session.asked(wake, force);
    const { end, state } = this.life.snapshot();
    this.effects.slot ??= liveRun(state)?.metadata.task?.slot ?? end?.slot ?? null;
    if (!wake && !autostart) this.door.asked(awake);
    const begin = (request = message): Promise<StartReply> => {
      if (wake) this.door.waking();
      return request.ifChanged ? this.tasks.ifChanged(request) : this.machine.start(request);
    };
    const beginThrough = (): Promise<StartReply> =>
      this.restarts.start(message.timeoutMs, (leftMs) =>
        begin(leftMs === null ? message : { ...message, timeoutMs: leftMs, join: true }),
      );
    if (autostart)
      return this.restarts.autostart(async () => {
        const { name } = this;
        const isAsleep = this.life.view().status === 'sleeping';
        return isAsleep ? { name, status: 'sleeping', pid: null } : beginThrough();
      });
    if (!wake) return beginThrough();
    return this.restarts.wake(async () => {
      const { state: now } = this.life.snapshot();
      if (now.phase === 'stopping') {
        await tolerateFailure(now.stop.promise, () => null);
        this.restarts.allowStart(askedAt);
      }
      return begin();
    });
  }

  /** A client's sleep, which overrides a restart under way unless it is refused. */
  async sleep({ force = false }: MessageOf<ServiceProtocol, 'sleep'>): Promise<SleepReply> {
    const { spec } = this.life.registered();
    // Whether it has a process that must end is not known.
    if (this.life.snapshot().state.phase === 'lost') throw this.life.busy();
    const onAccepted = (): void => this.restarts.cancel('client');
    const reply = await (spec.agent ? this.session.sleep(force, onAccepted) : this.door.sleep(onAccepted));
    await this.restarts.kept;
    return reply;
  }

  /** Whether an agent has no process now, but is about to get one. */
  private get isLaunching(): boolean {
    return this.life.snapshot().state.phase === 'launching';
  }

  /**
   * Wakes an agent that is asleep, or waits for its start, if it `mayStart`; tells whether it did. Fails as a
   * start does.
   */
  private async awake(mayStart = true): Promise<boolean> {
    await this.session.settled();
    const { isAsleep } = this.session;
    if (!mayStart) return false;
    if (!isAsleep && !this.isLaunching) return false;
    // A first start may not know a conversation yet, so it is no wake.
    await this.start({ timeoutMs: null, wait: false, join: true, wake: isAsleep });
    return true;
  }

  /** Stops the service, then starts it. This overrides a stop or a sleep under way. */
  restart(message: MessageOf<ServiceProtocol, 'restart'>): Promise<StartReply> {
    this.effects.refuseUncreated(this.life.registered().spec);
    this.restarts.refuseFutile();
    if (!this.restarts.isStopping) {
      // In this order: if the daemon is killed in between, the service is asleep, and not just stopped.
      this.files.beforeClientsRestart();
      this.door.forgoSleep();
      this.session.forgoSleep();
    }
    return this.files.clientsRestart(() => this.restarts.restart(message));
  }

  /** Stops the service and deletes its logs. The actor ends soon, unless the service is registered again. */
  async retire(graceMs: number | null): Promise<null> {
    const reopen = this.machine.close('it is being removed');
    this.restarts.cancel('client');
    this.files.release();
    try {
      await this.door.forget();
      await this.machine.stop(graceMs);
      await this.door.closed();
      await this.session.forget();
      await this.effects.forget();
    } catch (error) {
      reopen();
      throw error;
    }
    // The record is still in the store, where a new actor would read it. So this actor stays until the record
    // is removed.
    this.machine.forget();
    this.endSoon();
    return null;
  }

  changed(stored: StoredService): Promise<null> {
    this.cancelEnd();
    return this.machine.changed(stored);
  }

  async adopt(): Promise<null> {
    this.log.resumeFollow();
    await this.machine.adopt();
    await this.door.resume();
    this.files.resume();
    this.agent.resume();
    const { stored, state } = this.life.snapshot();
    if (!stored && state.phase === 'idle') this.endSoon();
    return null;
  }

  /** The log. Fails unknown_service when the service is not registered. */
  registeredLog(): ServiceLog {
    this.life.registered();
    return this.log;
  }

  /** Turns this actor into a command, if it is not a service. */
  prepare({ input }: MessageOf<CommandProtocol, 'prepare'>): null {
    const { context, effects, name, terminal } = this;
    if (this.command || this.life.snapshot().stored) throw fail('name_in_use', `${name} is taken`);
    const stored = input.service === null ? null : effects.storedOf(input.service);
    const onOver = (): void => this.endSoon();
    this.command = new CommandSession({ context, name, effects, terminal, stored, input, onOver });
    this.cancelEnd();
    return null;
  }

  attach({ viewer, observes = false }: MessageOf<TerminalProtocol, 'attach'>): null | Promise<null> {
    if (this.command) return this.terminal.openWith(this.command.attach(viewer));
    if (!observes && (this.session.isAsleep || this.session.isFallingAsleep || this.isLaunching))
      return this.terminal.openWith(this.awake().then(() => this.attach({ viewer, observes })));
    const [run, size] = this.requests.live();
    this.terminal.attach(viewer, run.id, size, observes);
    return null;
  }

  /**
   * Types a prompt. If the agent is asleep or starting, waits until it runs and is idle, unless the prompt is
   * for one process: it would not be the one that starts.
   */
  async prompt(message: PromptMessage): Promise<PromptReply> {
    const isWoken = await this.awake(message.pid === null);
    return this.requests.prompts.prompt(isWoken ? { ...message, queue: true } : message);
  }

  explain(): Promise<ServiceExplanation> {
    return explain(this, this.restarts.startFollows);
  }

  detach(viewer: string): void {
    this.terminal.detach(viewer);
    this.command?.detach();
  }

  exited(end: RunEnd): null {
    (this.command ?? this.machine).exited(end);
    return null;
  }

  async restartRunning(): Promise<null> {
    await this.files.restartDependant();
    return null;
  }

  async expectRestart(): Promise<null> {
    // A daemon that has just started may not know the process yet.
    await this.machine.adopt();
    this.files.expectRestart();
    return null;
  }

  /** Fails not_running without a process. */
  async signal(signal: string): Promise<SignalReply> {
    const run = liveRun(this.life.snapshot().state);
    this.life.registered();
    if (!run) throw fail('not_running', `${this.name} has no process`);
    return { name: this.name, signal, processes: await this.effects.questions.signal(run.id, signal) };
  }

  /** Ends a run above its memory limit at once, because its use keeps growing. */
  overMemory({ run }: MessageOf<ServiceProtocol, 'overMemory'>): null {
    this.machine.faulty({ run, cause: 'memory', check: null, graceMs: 0 });
    return null;
  }

  private endSoon(): void {
    this.cancelEnd();
    this.cancelEnd = this.context.clock.after(SERVICE.removedLingerMs, () => this.context.end());
  }
}

type ServiceMessages = ServiceProtocol &
  TerminalProtocol &
  WatchedServiceProtocol &
  CommandProtocol &
  AgentStateProtocol &
  PromptProtocol;

/** One service. Its name follows `service:` in its address. */
export const serviceActor = actor<ServiceMessages, ServiceConfig>(
  'service',
  async (context, config) => {
    const service = new SupervisedService(context, config);
    const { door, log, terminal } = service;
    // Learn the host's run before handling any message.
    await service.adopt();
    return {
      adopt: () => context.replyLater(service.adopt()),
      changed: ({ stored }) => context.replyLater(service.changed(stored)),
      start: (message) => context.replyLater(service.start(message)),
      sleep: (message) => context.replyLater(service.sleep(message)),
      knocked: () => door.knocked(),
      idle: () => context.replyLater(door.idle()),
      doorLost: () => door.lost(),
      wakeFailed: ({ reason }) => door.wakeFailed(reason),
      stop: (message) => context.replyLater(service.stop(message)),
      restart: (message) => context.replyLater(service.restart(message)),
      undo: () => context.replyLater(service.tasks.undo()),
      retire: ({ graceMs }) => context.replyLater(service.retire(graceMs)),
      logs: (query) => context.replyLater(service.registeredLog().tail(query)),
      tailStart: (query) => service.registeredLog().tailStart(query),
      read: ({ offset, limit, ...query }) => service.registeredLog().parts(offset, limit, query),
      explain: () => context.replyLater(service.explain()),
      restartRunning: () => context.replyLater(service.restartRunning()),
      expectRestart: () => context.replyLater(service.expectRestart()),
      filesChanged: ({ paths }) => context.replyLater(service.files.onChange(paths)),
      watchState: (state) => service.files.onState(state),
      watchAgain: () => service.files.askAgain(),
      cascadeKnown: () => service.files.cascadeKnown(),
      signal: ({ signal }) => context.replyLater(service.signal(signal)),
      overMemory: (message) => service.overMemory(message),
      follow: ({ on }) => log.follow(on),
      exited: (end) => service.exited(end),
      grew: () => {
        log.grew();
        return terminal.onLogGrowth();
      },
      prepare: (message) => service.prepare(message),
      attach: (message) => {
        const attached = service.attach(message);
        return attached && context.replyLater(attached);
      },
      detach: ({ viewer }) => terminal.whenOpen(() => service.detach(viewer)),
      screen: (message) => context.replyLater(service.requests.screen(message)),
      type: (message) => context.replyLater(service.requests.type(message)),
      prompt: (message) => context.replyLater(service.prompt(message)),
      cancelPrompt: ({ id }) => service.requests.prompts.cancel(id),
      input: ({ viewer, data }) => terminal.input(viewer, data),
      resize: ({ cols, rows }) => terminal.resize(cols, rows),
      ack: ({ viewer, bytes }) => terminal.acknowledge(viewer, bytes),
      ...agentStateHandlers(context, service.agent),
    };
  },
  { drainMs: 1_000 },
);
