// State: one phase of the table in state.ts, the spec, how the last process ended, who follows the log and looks at
// the terminal. Rebuilt from: the store (spec and end) and the ledger of the process host (the run); viewers come again.
//
// What is asked is looked up in the table here; the effects are in lifecycle.ts.
import { join } from 'node:path';
import type { Probe } from '../../adapters/ready.ts';
import { SERVICE } from '../../limits.ts';
import { fail } from '../../protocol/errors.ts';
import type {
  Explanation,
  LastEnd,
  RunEnd,
  ServiceProtocol,
  ServiceSpec,
  StartAnswer,
  StopAnswer,
  StoredService,
} from '../../protocol/service.ts';
import type { TerminalProtocol } from '../../protocol/terminal.ts';
import { actor, type Context, type Handlers, isFailure, type Message } from '../../runtime/actor.ts';
import { ServiceEffects, type ServiceEffectsConfig } from './effects.ts';
import { explain } from './explain.ts';
import { Lifecycle, UNASKED } from './lifecycle.ts';
import { ServiceLog } from './log.ts';
import type { LiveRun } from './run.ts';
import { liveRun, liveRunOf, runOf, stopOf, TABLE } from './state.ts';
import { ServiceTerminal, USUAL_SIZE } from './terminal.ts';

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

class Service {
  private readonly context: Context;
  private readonly name: string;
  private readonly effects: ServiceEffects;
  private readonly life: Lifecycle;
  readonly log: ServiceLog;
  readonly terminal: ServiceTerminal;
  /** Why no start is accepted any more. */
  private closing: string | null = null;
  /** Cancels the end of the actor of a service that is not there. */
  private staying: () => void = nothing;

  constructor(context: Context, config: ServiceConfig) {
    const { bootedAt, logs, probe } = config;
    this.context = context;
    this.name = context.address.slice(SERVICE_PREFIX.length);
    this.effects = new ServiceEffects(context, config, this.name);
    this.log = new ServiceLog(join(logs, this.name), this.effects);
    this.terminal = new ServiceTerminal(context, this.log, this.effects);
    const lastLines = (run: string): Promise<string[]> => this.log.lastLines(run);
    const ended = (run: LiveRun, { exitCode, signal }: LastEnd): void => {
      this.effects.untrack(run);
      this.terminal.end(run.id, { exitCode, signal });
    };
    this.life = new Lifecycle({
      context,
      name: this.name,
      effects: this.effects,
      probe,
      bootedAt,
      lastLines,
      ended,
    });
  }

  start(message: Message<ServiceProtocol, 'start'>): Promise<StartAnswer> {
    const { life, name } = this;
    const { state } = life;
    const stored = this.stored();
    if (this.closing) throw fail('daemon_busy', `${name} cannot be started: ${this.closing}`);
    switch (TABLE[state.phase][message.join ? 'join' : 'start']) {
      case 'launch': {
        life.restarts = 0;
        life.attempt = 0;
        const run = life.launch(stored, patience(stored.spec, message), false);
        return message.wait ? run.ready.promise : run.there.promise;
      }
      case 'share':
        return runOf(state).ready.promise;
      case 'answer':
        return Promise.resolve({ name, status: 'running', pid: liveRunOf(state).pid });
      case 'refuse':
        throw fail('already_running', `${name} is ${life.view().status} already`);
      case 'busy':
        throw life.busy();
      case 'cancel':
        return life.cancelRestart().then(() => this.start(message));
      case 'after':
        return this.over().then(() => this.start(message));
    }
  }

  /** `graceMs` null: the service's own. Ends a process and any restart. */
  stop(graceMs: number | null): Promise<StopAnswer> {
    const { life } = this;
    const { state } = life;
    switch (TABLE[state.phase].stop) {
      case 'none':
        return this.acceptEnd(graceMs);
      case 'cancel':
        return life.cancelRestart().then(() => this.stop(graceMs));
      case 'after':
        // Whoever comes while the end of a stop is written down gets the answer of that stop.
        return this.over().then((answer) => answer ?? this.stop(graceMs));
      case 'halt':
        return life.halt(liveRunOf(state), graceMs, null).promise;
      case 'share':
        return stopOf(state).promise;
      case 'busy':
        throw life.busy();
    }
  }

  /** As `stop`; a service that is no longer registered has nothing to stop. */
  stopKnown({ graceMs, last = false }: Message<ServiceProtocol, 'stop'>): Promise<StopAnswer> {
    this.stored();
    if (last) this.closing = 'the daemon is shutting down';
    return this.stop(graceMs);
  }

  async restart({ timeoutMs, graceMs }: Message<ServiceProtocol, 'restart'>): Promise<StartAnswer> {
    this.stored();
    await this.stop(graceMs);
    return this.start({ timeoutMs, wait: true });
  }

  async retire(graceMs: number | null): Promise<null> {
    const { life } = this;
    const before = this.closing;
    this.closing = 'it is being removed';
    try {
      await this.stop(graceMs);
      await this.effects.forget();
    } catch (error) {
      this.closing = before;
      throw error;
    }
    // Its record is still in the store: whoever asks before that is gone must not find another actor that read it.
    life.stored = null;
    life.end = null;
    life.restarts = 0;
    this.closing = null;
    this.leave();
    return null;
  }

  /** There is no such service: the actor ends soon, unless it is registered. */
  private leave(): void {
    this.staying();
    this.staying = this.context.clock.after(SERVICE.retiredMs, () => this.context.end());
  }

  async changed(stored: StoredService): Promise<null> {
    const { life } = this;
    this.staying();
    life.stored = stored;
    life.show();
    const action = TABLE[life.state.phase].changed;
    if (action === 'after') {
      await this.over();
      return this.changed(stored);
    }
    if (action === 'cancel') await life.cancelRestart();
    return null;
  }

  exited(end: RunEnd): null {
    const { life, effects } = this;
    const { state } = life;
    const action = TABLE[state.phase].exited;
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
    this.log.followAgain();
    await life.look();
    if (life.state.phase === 'ended') await this.over().catch(nothing); // it is tried again until it succeeds
    if (!life.stored && life.state.phase === 'idle') this.leave();
    return null;
  }

  /** The log of a service that is there. */
  knownLog(): ServiceLog {
    this.stored();
    return this.log;
  }

  attach(viewer: string): null {
    const run = liveRun(this.life.state);
    if (!run?.pty) throw fail('not_running', `${this.name} has no terminal: it does not run`);
    this.terminal.attach(viewer, run.id, this.life.stored?.spec.agent ?? USUAL_SIZE);
    return null;
  }

  async explain(): Promise<Explanation> {
    const { spec } = this.stored();
    const { life } = this;
    const holder = await this.effects.holder(liveRun(life.state)?.memo.port ?? spec.port);
    const { end, state } = life;
    const run = 'run' in state ? state.run.id : (end?.run ?? null);
    const { status } = life.view();
    const lastLines = run === null ? [] : await this.log.lastLines(run);
    const lostBytes = state.phase === 'lost' ? 0 : await this.effects.lostBytes();
    return explain({ spec, status, state, end, holder, lastLines, lostBytes, now: this.context.clock.now() });
  }

  private stored(): StoredService {
    const { stored } = this.life;
    if (stored) return stored;
    throw fail('unknown_service', `there is no service ${this.name}`);
  }

  /** Resolves when what keeps the service from being asked again is over; with the answer of a stop that just ended. */
  private async over(): Promise<StopAnswer | null> {
    const { life } = this;
    const { state } = life;
    if (state.phase === 'ended') return life.record(state);
    if (state.phase === 'launching') await state.run.there.promise.catch(nothing);
    return null;
  }

  /** A stop of what has no process: what its last run has left behind is ended, and a crash is dealt with from now on. */
  private async acceptEnd(graceMs: number | null): Promise<StopAnswer> {
    const { life, name, effects } = this;
    const { end } = life;
    const { port = 0, stopSignal = 'SIGTERM', stopGrace = SERVICE.stopGraceMs } = life.stored?.spec ?? {};
    const answer = { name, status: 'stopped', exitCode: null, signal: null } as const;
    if (!end) {
      const portFree = port === 0 || (await effects.holder(port)) === null;
      return { ...answer, escalated: false, reaped: 0, left: [], portFree, ms: 0 };
    }
    const ended = effects.endTree(end.run, port, stopSignal, graceMs ?? stopGrace);
    const { exitUnknown: _, ...report } = await ended.catch((error: unknown) => {
      throw isFailure(error) ? life.busy() : error;
    });
    if (life.end?.run === end.run && end.status === 'crashed') await life.keep({ ...end, status: 'stopped' });
    return { ...answer, ...report, exitCode: end.exitCode, signal: end.signal };
  }
}

/** How long the ready-check may take. An agent that nobody waits for may take as long as it likes. */
function patience(spec: ServiceSpec, { timeoutMs, wait }: Message<ServiceProtocol, 'start'>): number | null {
  return spec.agent && !wait ? null : (timeoutMs ?? spec.startTimeout);
}

type Letters = ServiceProtocol & TerminalProtocol;

async function init(context: Context, config: ServiceConfig): Promise<Handlers<Letters>> {
  const service = new Service(context, config);
  const { log, terminal } = service;
  // Before any letter is handled; a letter `adopt` looks once more.
  await service.adopt();
  return {
    adopt: () => context.later(service.adopt()),
    changed: ({ stored }) => context.later(service.changed(stored)),
    start: (message) => context.later(service.start(message)),
    stop: (message) => context.later(service.stopKnown(message)),
    restart: (message) => context.later(service.restart(message)),
    retire: ({ graceMs }) => context.later(service.retire(graceMs)),
    logs: (query) => context.later(service.knownLog().tail(query)),
    tailStart: (query) => service.knownLog().tailStart(query),
    read: ({ offset, limit, stream }) => service.knownLog().parts(offset, limit, stream),
    explain: () => context.later(service.explain()),
    follow: ({ on }) => log.follow(on),
    exited: (end) => service.exited(end),
    grew: ({ end }) => {
      log.grew(end);
      return terminal.grew();
    },
    attach: ({ viewer }) => service.attach(viewer),
    detach: ({ viewer }) => terminal.detach(viewer),
    input: ({ data }) => terminal.input(data),
    resize: ({ cols, rows }) => terminal.resize(cols, rows),
    ack: ({ viewer, bytes }) => terminal.acknowledge(viewer, bytes),
  };
}

/** One service. Its name is what follows `service:` in its address. */
export const service = actor<Letters, ServiceConfig>('service', init, { drainMs: 1_000 });
