// Has the files of a service watched while it is wanted, and acts on their changes:
// docs/reference.md "Watch". Has restarts, by changes and by clients, outlive the daemon. A service is wanted
// from a start until somebody stops it; one that has ended by itself is started by the next change.
import { isAlive } from '../../adapters/process/process_table.ts';
import type { RunMetadata } from '../../protocol/host.ts';
import type { WatchSpec } from '../../protocol/service.ts';
import { isSameRequest, type WatchRequest, type WatchState } from '../../protocol/watcher.ts';
import { type Context, tolerateFailure } from '../../runtime/actor.ts';
import { WATCH } from '../../settings/limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import type { LiveRun } from './run.ts';
import { liveRun } from './state.ts';

/** Failures of the disk and the process host, which pass: what a change asks for is then done. */
const PASSING: ReadonlySet<string> = new Set(['storage_full', 'daemon_busy', 'gone', 'crashed', 'deadline']);
const RETRY_MS = 1_000;

const CLIENTS_RESTART = { action: 'restart', cascade: false } as const;

export interface FileWatchOptions {
  context: Context;
  name: string;
  effects: ServiceEffects;
  life: ServiceLifecycle;
  /** Boot time of the machine, epoch milliseconds. What was owed before it is not made. */
  bootedAt: number;
  /** Starts the service, which has no process, and stops and starts it. They fail as a client's do. */
  start: () => Promise<unknown>;
  restart: () => Promise<unknown>;
}

/** Sends a signal to the process group of a run, unless its first process has just ended. */
function signalGroup({ pid, startTicks }: LiveRun, signal: string): void {
  if (!isAlive(pid, startTicks)) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // It has ended meanwhile, or belongs to another user by now.
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

export class FileWatch {
  private readonly options: FileWatchOptions;
  private isWanted = false;
  /** Somebody has stopped the service, and nobody has started it since. */
  private isReleased = false;
  /** The request that the watcher has; null: none. */
  private request: WatchRequest | null = null;
  private latest: WatchState | null = null;
  /** A change that nothing has been done about, or the second half of a restart. */
  private isDue = false;
  /** What is due is the restart that an earlier daemon had begun. */
  private owesRestart = false;
  /** The services that depend on this one are restarted once it runs again. */
  private owesCascade = false;
  /** The run that is being stopped for a restart. */
  private relaunching: LiveRun | null = null;

  constructor(options: FileWatchOptions) {
    this.options = options;
  }

  /** What is watched; null: nothing. */
  get state(): WatchState | null {
    return this.request && this.latest;
  }

  /** After every change of the service's phase or record. */
  update(): void {
    const { phase } = this.options.life.snapshot().state;
    if (phase === 'launching' || phase === 'checking' || phase === 'running' || phase === 'waiting')
      this.isWanted = true;
    if (phase === 'launching') this.isReleased = false;
    this.askWatcher();
    if (this.owesCascade && phase === 'running') this.cascade();
    // The caller is in the middle of its own change.
    if (this.isDue) this.options.context.clock.after(0, () => this.act());
  }

  /** A later daemon, or a later incarnation of the actor, has learned what there is. */
  resume(): void {
    const { bootedAt, life } = this.options;
    const { end, state } = life.snapshot();
    if (state.phase === 'idle' && end?.relaunch && end.at >= bootedAt) this.isDue = this.owesRestart = true;
    if (state.phase === 'idle' && end?.status === 'crashed') this.isWanted = true;
    // An earlier daemon was killed before it could ask for the stop.
    const isUp = state.phase === 'checking' || state.phase === 'running';
    if (isUp && state.run.metadata.relaunch) this.isDue = this.owesRestart = true;
    this.update();
  }

  /** A run has ended: perhaps by the stop of an earlier daemon, which meant to start the service again. */
  onEnded({ id, metadata }: LiveRun): void {
    const isOurs = this.relaunching?.id === id;
    this.relaunching = null;
    if (!metadata.relaunch || isOurs || this.isReleased) return;
    this.isWanted = this.isDue = this.owesRestart = true;
  }

  /** Whether the run is being stopped to be started again, by this daemon or an earlier one. */
  isRelaunched({ id, metadata }: LiveRun): boolean {
    return !this.isReleased && (this.relaunching?.id === id || metadata.relaunch === true);
  }

  /** The service is about to be stopped and started: a later daemon starts it, if this one is killed. */
  beforeRestart(): void {
    const { state } = this.options.life.snapshot();
    const isUp = state.phase === 'checking' || state.phase === 'running';
    if (isUp && this.relaunching?.id !== state.run.id)
      this.keep(state.run, { passed: state.phase === 'running' });
  }

  private keep(run: LiveRun, changes: Partial<RunMetadata>): void {
    this.options.effects.note(run, { ...changes, relaunch: true });
    this.relaunching = run;
  }

  /** Somebody stops the service: changes are of no interest until it is started. */
  release(): void {
    this.isWanted = this.isDue = this.owesRestart = this.owesCascade = false;
    this.isReleased = true;
    if (this.relaunching) this.options.effects.note(this.relaunching, { relaunch: false });
    this.askWatcher();
  }

  /** The watcher is new, or has never been asked. */
  askAgain(): null {
    this.request = null;
    this.askWatcher();
    return null;
  }

  onState(state: WatchState): null {
    this.latest = state;
    return null;
  }

  /** Files have changed, and it is on record. */
  async onChange(paths: string[]): Promise<null> {
    const { context, effects, name } = this.options;
    if (!this.request) {
      context.ref('watcher').tell('unwatch', { service: name });
      return null;
    }
    await tolerateFailure(effects.announceChange(paths.slice(0, WATCH.reportedPaths)), () => null);
    this.isDue = true;
    this.act();
    return null;
  }

  private get spec(): WatchSpec | null {
    return this.options.life.snapshot().stored?.spec.watch ?? null;
  }

  /** How what is due is answered: a restart that a client has asked for is none of the rule's signals. */
  private get rule(): Pick<WatchSpec, 'action' | 'cascade'> {
    const { spec } = this;
    return spec === null || (this.owesRestart && spec.action !== 'restart') ? CLIENTS_RESTART : spec;
  }

  /** Has the watcher know what is wanted now. */
  private askWatcher(): void {
    const { context, life, name } = this.options;
    const { end, state, stored } = life.snapshot();
    const watcher = context.ref('watcher');
    if (!this.isWanted || !stored?.spec.watch) {
      if (this.request) watcher.tell('unwatch', { service: name });
      this.request = this.latest = null;
      return;
    }
    const { cwd, watch } = stored.spec;
    const { paths, ignore, debounceMs } = watch;
    const run = liveRun(state);
    const before = run ? (run.metadata.changedAt ?? run.startedAt) : end?.at;
    const since = (this.request ? null : before) ?? context.clock.now();
    const request = { service: name, cwd, paths, ignore, debounceMs, since };
    if (this.request && isSameRequest(this.request, request)) return;
    this.request = request;
    const ready = context.ref('threads').ask('ensure', { address: 'watcher' });
    const asked = ready.then(() => {
      if (this.request === request) watcher.tell('watch', request);
    });
    const trouble = 'the thread that watches files does not run; the log of the daemon says why';
    this.inBackground(tolerateFailure(asked, () => this.onState({ folders: 0, trouble })));
  }

  /** Answers the change, or waits for the next phase in which that is possible. */
  private act(): void {
    if (!this.isDue) return;
    const spec = this.rule;
    const { life, start } = this.options;
    const { state } = life.snapshot();
    switch (state.phase) {
      case 'checking':
      case 'running':
        this.isDue = this.owesRestart = false;
        this.answer(state.run, spec, state.phase === 'running');
        return;
      case 'idle':
      case 'waiting':
        this.isDue = this.owesRestart = false;
        // Whoever needs a sleeping service wakes it: it begins with the files as they are then.
        if (spec.action !== 'restart' || life.view().status === 'sleeping') return;
        this.owesCascade = spec.cascade;
        this.inBackground(start());
        return;
      case 'stopping':
        // The process that follows begins with the files as they are now.
        if (state.late === null) this.isDue = this.owesRestart = false;
        return;
      case 'lost':
      case 'launching':
      case 'ended':
        return;
    }
  }

  /** Restarts the run, or sends it the signal. The host keeps that the change has been seen to. */
  private answer(
    run: LiveRun,
    { action, cascade }: Pick<WatchSpec, 'action' | 'cascade'>,
    passed: boolean,
  ): void {
    const { context, effects, restart } = this.options;
    const changedAt = context.clock.now();
    if (action !== 'restart') {
      effects.note(run, { passed, changedAt });
      signalGroup(run, action);
      return;
    }
    this.keep(run, { passed, changedAt });
    this.owesCascade = cascade;
    this.inBackground(restart());
  }

  /** Those that depend on this service begin anew after it. */
  private cascade(): void {
    const { context, name } = this.options;
    this.owesCascade = false;
    context.ref('groups').tell('restartDependants', { name });
  }

  /** Nobody waits for it, so nobody else would try again: the service would stay stopped. */
  private retryLater(code: string): null {
    if (!PASSING.has(code)) return null;
    this.options.context.clock.after(RETRY_MS, () => {
      const { phase } = this.options.life.snapshot().state;
      if (!this.isWanted || this.isReleased || phase === 'running' || phase === 'checking') return;
      this.isDue = true;
      this.act();
    });
    return null;
  }

  /** Nobody waits for it: what fails for good is in the state of the service. */
  private inBackground(work: Promise<unknown>): void {
    tolerateFailure(work, ({ code }) => this.retryLater(code)).catch((error: unknown) =>
      this.options.context.crash(error),
    );
  }
}
