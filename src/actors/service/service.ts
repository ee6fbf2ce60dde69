// State: one phase of the table in state.ts, the spec, how the last process ended, who follows the log and looks at
// the terminal. Rebuilt from: the store (spec and end) and the ledger of the process host (the run); viewers come again.
//
// What is asked is looked up in the table here; the effects are in lifecycle.ts.
import { join } from 'node:path';
import type { Probe } from '../../adapters/ready_probe.ts';
import { fail } from '../../protocol/errors.ts';
import type {
  LastEnd,
  RunEnd,
  ServiceExplanation,
  ServiceProtocol,
  StartResult,
  StopResult,
  StoredService,
} from '../../protocol/service.ts';
import type { TerminalProtocol } from '../../protocol/terminal.ts';
import { actor, type Context, type Handlers, type MessageOf } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import { acceptEnd } from './accept_end.ts';
import { AgentTerminal, DEFAULT_TERMINAL_SIZE } from './agent_terminal.ts';
import { ServiceEffects, type ServiceEffectsConfig } from './effects.ts';
import { explainService } from './explain.ts';
import { ServiceLifecycle, UNASKED } from './lifecycle.ts';
import type { LiveRun } from './run.ts';
import { ServiceLog } from './service_log.ts';
import { awaitSharedStart, startDeadline } from './start_deadline.ts';
import { liveRun, liveRunOf, runOf, stopOf, TRANSITIONS } from './state.ts';

/** The same for all services of a thread. */
export interface ServiceConfig extends ServiceEffectsConfig {
  /** `gated(socketProbe(clock))`, one per thread. */
  probe: Probe;
  /** Where the host keeps the logs: one folder per service. */
  logs: string;
  /** When the machine was booted, epoch milliseconds: restarts owed from before are not made. */
  bootedAt: number;
}

export const SERVICE_PREFIX = 'service:';

const nothing = (): void => {};

class SupervisedService {
  private readonly context: Context;
  private readonly name: string;
  private readonly effects: ServiceEffects;
  private readonly life: ServiceLifecycle;
  readonly log: ServiceLog;
  readonly terminal: AgentTerminal;
  /** Why no start is accepted any more. */
  private closingReason: string | null = null;
  /** The restart that is stopping what runs. */
  private restarting: Promise<StartResult> | null = null;
  /** Cancels the end of the actor of a service that is not there. */
  private cancelEnd: () => void = nothing;

  constructor(context: Context, config: ServiceConfig) {
    const { bootedAt, logs, probe } = config;
    this.context = context;
    this.name = context.address.slice(SERVICE_PREFIX.length);
    this.effects = new ServiceEffects(context, config, this.name);
    this.log = new ServiceLog(join(logs, this.name), this.effects);
    this.terminal = new AgentTerminal(context, this.log, this.effects);
    const lastLines = (run: string): Promise<string[]> => this.log.lastLines(run);
    const ended = (run: LiveRun, { exitCode, signal }: LastEnd): void => {
      this.effects.untrack(run);
      this.terminal.onRunEnded(run.id, { exitCode, signal });
    };
    this.life = new ServiceLifecycle({
      context,
      name: this.name,
      effects: this.effects,
      probe,
      bootedAt,
      lastLines,
      onEnded: ended,
    });
  }

  start(message: MessageOf<ServiceProtocol, 'start'>): Promise<StartResult> {
    const { life, name } = this;
    const { state } = life;
    const stored = this.stored();
    if (this.closingReason) throw fail('daemon_busy', `${name} cannot be started: ${this.closingReason}`);
    switch (TRANSITIONS[state.phase][message.join ? 'join' : 'start']) {
      case 'launch': {
        life.restarts = 0;
        life.attempt = 0;
        const run = life.launch(stored, startDeadline(stored.spec, message), false);
        return message.wait ? run.ready.promise : run.spawned.promise;
      }
      case 'share':
        return awaitSharedStart(
          this.context.clock,
          name,
          runOf(state),
          message.timeoutMs ?? stored.spec.startTimeout,
        );
      case 'answer':
        return Promise.resolve({ name, status: 'running', pid: liveRunOf(state).pid });
      case 'refuse':
        throw fail('already_running', `${name} is ${life.view().status} already`);
      case 'busy':
        throw life.busy();
      case 'cancel':
        return life.cancelRestart().then(() => this.start(message));
      case 'after':
        return this.waitUntilSettled().then(() => this.start(message));
    }
  }

  /** `graceMs` null: the service's own. Ends a process and any restart. */
  stop(graceMs: number | null): Promise<StopResult> {
    const { life } = this;
    const { state } = life;
    switch (TRANSITIONS[state.phase].stop) {
      case 'none':
        return acceptEnd(life, this.effects, this.name, graceMs);
      case 'cancel':
        return life.cancelRestart().then(() => this.stop(graceMs));
      case 'after':
        // Whoever comes while the end of a stop is written down gets the answer of that stop.
        return this.waitUntilSettled().then((answer) => answer ?? this.stop(graceMs));
      case 'halt':
        return life.halt(liveRunOf(state), graceMs, null).promise;
      case 'share':
        return stopOf(state).promise;
      case 'busy':
        throw life.busy();
    }
  }

  /** As `stop`; a service that is no longer registered has nothing to stop. */
  stopRegistered({ graceMs, last = false }: MessageOf<ServiceProtocol, 'stop'>): Promise<StopResult> {
    this.stored();
    if (last) this.closingReason = 'the daemon is shutting down';
    this.restarting = null;
    return this.stop(graceMs);
  }

  /** Another one joins it as long as it stops what runs; a stop that comes meanwhile has the last word. */
  restart({ timeoutMs, graceMs }: MessageOf<ServiceProtocol, 'restart'>): Promise<StartResult> {
    this.stored();
    if (this.restarting) return this.restarting;
    const stopping = (async () => this.stop(graceMs))();
    const restarting = stopping.then(() => {
      if (this.restarting !== restarting)
        throw fail('start_failed', `${this.name} was stopped while it was being restarted`);
      this.restarting = null;
      return this.start({ timeoutMs, wait: true });
    });
    this.restarting = restarting;
    stopping.catch(() => {
      this.restarting = null;
    });
    return restarting;
  }

  async retire(graceMs: number | null): Promise<null> {
    const { life } = this;
    const before = this.closingReason;
    this.closingReason = 'it is being removed';
    this.restarting = null;
    try {
      await this.stop(graceMs);
      await this.effects.forget();
    } catch (error) {
      this.closingReason = before;
      throw error;
    }
    // Its record is still in the store: whoever asks before that is gone must not find another actor that read it.
    life.stored = null;
    life.end = null;
    life.restarts = 0;
    this.closingReason = null;
    this.endSoon();
    return null;
  }

  /** There is no such service: the actor ends soon, unless it is registered. */
  private endSoon(): void {
    this.cancelEnd();
    this.cancelEnd = this.context.clock.after(SERVICE.removedLingerMs, () => this.context.end());
  }

  async changed(stored: StoredService): Promise<null> {
    const { life } = this;
    this.cancelEnd();
    life.stored = stored;
    life.publish();
    const action = TRANSITIONS[life.state.phase].changed;
    if (action === 'after') {
      await this.waitUntilSettled();
      return this.changed(stored);
    }
    if (action === 'cancel') await life.cancelRestart();
    return null;
  }

  exited(end: RunEnd): null {
    const { life, effects } = this;
    const { state } = life;
    const action = TRANSITIONS[state.phase].exited;
    if (end.run === life.end?.run && state.phase !== 'ended') effects.acknowledge(end.run);
    else if (action === 'look') life.inBackground(life.look());
    else if (action === 'skip' || runOf(state).id !== end.run) return null;
    else if (state.phase === 'launching') state.early = end;
    else life.finish(liveRunOf(state), end, UNASKED);
    return null;
  }

  /** Goes on from what the host has. */
  async adopt(): Promise<null> {
    const { life } = this;
    this.log.resumeFollow();
    await life.look();
    if (life.state.phase === 'ended') await this.waitUntilSettled().catch(nothing); // it is tried again until it succeeds
    if (!life.stored && life.state.phase === 'idle') this.endSoon();
    return null;
  }

  /** The log of a service that is there. */
  registeredLog(): ServiceLog {
    this.stored();
    return this.log;
  }

  attach(viewer: string): null {
    const run = liveRun(this.life.state);
    if (!run?.pty) throw fail('not_running', `${this.name} has no terminal: it does not run`);
    this.terminal.attach(viewer, run.id, this.life.stored?.spec.agent ?? DEFAULT_TERMINAL_SIZE);
    return null;
  }

  async explain(): Promise<ServiceExplanation> {
    const { spec } = this.stored();
    const { life } = this;
    const holder = await this.effects.portHolder(liveRun(life.state)?.metadata.port ?? spec.port);
    const { end, state } = life;
    const run = 'run' in state ? state.run.id : (end?.run ?? null);
    const { status } = life.view();
    const lastLines = run === null ? [] : await this.log.lastLines(run);
    const lostBytes = state.phase === 'lost' ? 0 : await this.effects.droppedBytes();
    return explainService({
      spec,
      status,
      state,
      end,
      portHolder: holder,
      lastLines,
      droppedBytes: lostBytes,
      now: this.context.clock.now(),
    });
  }

  private stored(): StoredService {
    const { stored } = this.life;
    if (stored) return stored;
    throw fail('unknown_service', `there is no service ${this.name}`);
  }

  /** Resolves when what keeps the service from being asked again is over; with the answer of a stop that just ended. */
  private async waitUntilSettled(): Promise<StopResult | null> {
    const { life } = this;
    const { state } = life;
    if (state.phase === 'ended') return life.record(state);
    if (state.phase === 'launching') await state.run.spawned.promise.catch(nothing);
    return null;
  }
}

type ServiceMessages = ServiceProtocol & TerminalProtocol;

async function init(context: Context, config: ServiceConfig): Promise<Handlers<ServiceMessages>> {
  const service = new SupervisedService(context, config);
  const { log, terminal } = service;
  // Before any letter is handled; a letter `adopt` looks once more.
  await service.adopt();
  return {
    adopt: () => context.replyLater(service.adopt()),
    changed: ({ stored }) => context.replyLater(service.changed(stored)),
    start: (message) => context.replyLater(service.start(message)),
    stop: (message) => context.replyLater(service.stopRegistered(message)),
    restart: (message) => context.replyLater(service.restart(message)),
    retire: ({ graceMs }) => context.replyLater(service.retire(graceMs)),
    logs: (query) => context.replyLater(service.registeredLog().tail(query)),
    tailStart: (query) => service.registeredLog().tailStart(query),
    read: ({ offset, limit, ...query }) => service.registeredLog().parts(offset, limit, query),
    explain: () => context.replyLater(service.explain()),
    follow: ({ on }) => log.follow(on),
    exited: (end) => service.exited(end),
    grew: () => {
      log.grew();
      return terminal.onLogGrowth();
    },
    attach: ({ viewer }) => service.attach(viewer),
    detach: ({ viewer }) => terminal.detach(viewer),
    input: ({ data }) => terminal.input(data),
    resize: ({ cols, rows }) => terminal.resize(cols, rows),
    ack: ({ viewer, bytes }) => terminal.acknowledge(viewer, bytes),
  };
}

/** One service. Its name is what follows `service:` in its address. */
export const serviceActor = actor<ServiceMessages, ServiceConfig>('service', init, { drainMs: 1_000 });
