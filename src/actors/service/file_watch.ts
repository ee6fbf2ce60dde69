// Watches the files of a service while it is wanted, and reacts to changes: docs/reference.md "Watch". Also
// makes restarts, by changes and by clients, survive the daemon. A service is wanted from its start until
// somebody stops it; if it ends by itself, the next change starts it.
import { isAlive } from '../../adapters/process/process_table.ts';
import type { RunMetadata } from '../../protocol/host.ts';
import type { WatchSpec } from '../../protocol/service.ts';
import { isWatchedAfter, type WatchState } from '../../protocol/watcher.ts';
import { type Failure, isFailure, tolerateFailure } from '../../runtime/actor.ts';
import { WATCH } from '../../settings/limits.ts';
import type { LiveRun, Run } from './run.ts';
import { isUnasked, liveRun } from './state.ts';
import { WatcherRequest, type WatcherRequestOptions } from './watcher_request.ts';

/** Temporary failures of the disk and the process host, after which the reaction is tried again. */
const PASSING: ReadonlySet<string> = new Set(['storage_full', 'daemon_busy', 'gone', 'crashed', 'deadline']);
const FULL_DISK: ReadonlySet<string> = new Set(['storage_full']);
const RETRY_MS = 1_000;

const CLIENTS_RESTART = { action: 'restart', cascade: false } as const;

export interface FileWatchOptions extends WatcherRequestOptions {
  /** When the machine was booted, epoch milliseconds. Restarts owed from before that are dropped. */
  bootedAt: number;
  /**
   * `start` starts the service when it has no process; `restart` stops and starts it. They fail as a client's
   * requests do, but a start that fails is followed by the restart policy.
   */
  start: () => Promise<unknown>;
  restart: () => Promise<unknown>;
  /** Whether a restart is under way whose start has not begun. */
  isRestarting: () => boolean;
  /** Whether it is asleep, or will be when its run has ended. */
  isAsleep: () => boolean;
}

/** Sends a signal to the process group of a run, unless its first process has just ended. */
function signalGroup({ pid, startTicks }: LiveRun, signal: string): void {
  if (!isAlive(pid, startTicks)) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // The process has just ended, or the pid now belongs to another user.
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

export class FileWatch {
  private readonly options: FileWatchOptions;
  private isWanted = false;
  /** Somebody has stopped the service, and nobody has started it since. */
  isReleased = false;
  /** The last run whose launch is known; null if none. */
  private launched: string | null = null;
  private readonly watcher: WatcherRequest;
  /** Why the last change did not restart the run. */
  private refused: Failure | null = null;
  /** A change that has not been handled yet, or the second half of a restart. */
  private isDue = false;
  /** What is due is a restart that an earlier daemon began. */
  private owesRestart = false;
  /** The services that depend on this one must be restarted once it is running again. */
  private owesCascade = false;
  /** A service that it depends on is being restarted, and it will be after that. */
  private isExpected = false;
  /** Cancels the next attempt to start it. */
  private cancelRetry = (): void => {};
  /** The run that is being stopped for a restart. */
  private relaunching: LiveRun | null = null;

  constructor(options: FileWatchOptions) {
    this.options = options;
    this.watcher = new WatcherRequest(options);
  }

  /** What is watched; null if nothing. */
  get state(): WatchState | null {
    const { refused, watcher } = this;
    const { state } = watcher;
    const trouble = refused && `the last change did not restart it: ${refused.message}`;
    return state && { ...state, trouble: state.trouble ?? trouble };
  }

  /** Called after every change of the service's phase or record. */
  update(): void {
    const { state } = this.options.life.snapshot();
    const { phase } = state;
    if (phase === 'launching') this.onLaunch(state.run);
    const isUp = phase === 'launching' || phase === 'checking' || phase === 'running';
    const isEnding = phase === 'stopping' && isUnasked(state);
    // After a stop, it is up until its launch has ended and its door has closed.
    if ((isUp || isEnding || phase === 'waiting') && !this.isReleased) this.isWanted = true;
    this.askWatcher();
    // Before the process exists, so that a later daemon learns of it with the process.
    if (this.owesCascade && phase === 'launching') state.run.metadata.cascade = true;
    if (this.owesCascade && phase === 'running') this.cascade();
    // Deferred, because the caller is in the middle of its own change.
    if (this.isDue) this.options.context.clock.after(0, () => this.act());
  }

  /** A start ends what a stop has begun. A restart by the policy, or a stop during the launch, does not. */
  private onLaunch({ id, by }: Run): void {
    if (id !== this.launched && by !== 'policy') this.isReleased = false;
    this.launched = id;
    this.refused = null;
  }

  /** Called once a later daemon, or a restarted actor, has learned the current state. */
  resume(): void {
    const { bootedAt, life } = this.options;
    const { end, state } = life.snapshot();
    // A restart that is under way here starts it itself.
    const isOwed =
      state.phase === 'idle' && end?.relaunch && end.at >= bootedAt && !this.options.isRestarting();
    if (isOwed) this.isDue = this.owesRestart = true;
    if (state.phase === 'idle' && end && isWatchedAfter(end) && !this.isReleased) this.isWanted = true;
    // An earlier daemon was killed before it could request the stop.
    const isUp = state.phase === 'checking' || state.phase === 'running';
    if (isUp && state.run.metadata.relaunch) this.isDue = this.owesRestart = true;
    if (isUp && state.run.metadata.cascade) this.owesCascade = true;
    this.update();
  }

  /** A run has ended, perhaps stopped by an earlier daemon that meant to start the service again. */
  onEnded({ id, metadata }: LiveRun): void {
    const isOurs = this.relaunching?.id === id;
    this.relaunching = null;
    if (metadata.cascade && !this.isReleased) this.owesCascade = true;
    if (!metadata.relaunch || isOurs || this.isReleased) return;
    this.isWanted = this.isDue = this.owesRestart = true;
  }

  /** Whether the run is being stopped to be started again, by this daemon or an earlier one. */
  isRelaunched({ id, metadata }: LiveRun): boolean {
    return !this.isReleased && (this.relaunching?.id === id || metadata.relaunch === true);
  }

  /** Why a restart is refused and the run goes on: the start after its stop is sure to fail. */
  private get refusal(): Failure | null {
    const { effects, life } = this.options;
    const { stored } = life.snapshot();
    return stored && effects.startFailure(stored);
  }

  /** The service is about to be stopped and started. If this daemon is killed, a later one starts it. */
  private beforeRestart(): void {
    const { state } = this.options.life.snapshot();
    const isUp = state.phase === 'checking' || state.phase === 'running';
    if (isUp && this.relaunching?.id !== state.run.id && !this.refusal) this.keep(state.run);
  }

  /** As `beforeRestart`, for a client's restart, which also follows a stop or a sleep that is under way. */
  beforeClientsRestart(): void {
    const { state } = this.options.life.snapshot();
    this.isReleased = false;
    if (state.phase === 'stopping') this.keep(state.run);
    else this.beforeRestart();
  }

  private keep(run: LiveRun, changes: Partial<RunMetadata> = {}): void {
    this.relaunching = run;
    this.noteRelaunch(run, true, changes);
  }

  /** In place, so that later notes about the run repeat it, also the one that it is ready. */
  private noteRelaunch(run: LiveRun, relaunch: boolean, changes: Partial<RunMetadata> = {}): void {
    run.metadata.relaunch = relaunch;
    this.options.effects.note(run, changes);
  }

  /**
   * One that the service depends on is restarted, and it is about to be. If this daemon is killed before, a
   * later one restarts it.
   */
  expectRestart(): void {
    if (this.isReleased) return;
    this.beforeRestart();
    this.isExpected = this.relaunching !== null;
  }

  /** Whether its process goes on, or ends without a client's stop or sleep, or to be started again. */
  private get isUp(): boolean {
    const { state } = this.options.life.snapshot();
    const run = liveRun(state);
    return run !== null && (state.phase !== 'stopping' || isUnasked(state) || this.isRelaunched(run));
  }

  /**
   * Restarts the service if it is up, or was when the restart was announced, unless it was stopped or put to
   * sleep. Fails as a restart does; a start that a passing error prevented is tried again.
   */
  async restartDependant(): Promise<void> {
    const isWanted = this.isExpected || this.isUp;
    this.isExpected = false;
    if (!isWanted || this.isReleased || this.options.isAsleep()) return;
    this.beforeRestart();
    await this.repeated(PASSING, this.options.restart);
  }

  /**
   * Makes a client's restart. The client learns how it fails; if the service has a process, a start that a
   * full disk prevents is tried again.
   */
  clientsRestart<R>(restart: () => Promise<R>): Promise<R> {
    return liveRun(this.options.life.snapshot().state) ? this.repeated(FULL_DISK, restart) : restart();
  }

  /** Makes a restart, whose start is tried again after one of these errors. */
  private async repeated<R>(codes: ReadonlySet<string>, restart: () => Promise<R>): Promise<R> {
    try {
      return await restart();
    } catch (error) {
      if (isFailure(error) && codes.has(error.code) && !this.isReleased) {
        this.isWanted = this.owesRestart = true;
        this.retryLater(error.code);
      }
      throw error;
    }
  }

  /** Makes a client's stop. If it is refused, the service goes on, and its files are watched again. */
  async clientsStop<R>(stop: () => Promise<R>): Promise<R> {
    this.release();
    try {
      return await stop();
    } catch (error) {
      const { state } = this.options.life.snapshot();
      const { phase } = state.phase === 'lost' && state.was ? state.was : state;
      if (phase !== 'stopping' && phase !== 'ended' && phase !== 'idle') {
        this.isReleased = false;
        this.update();
      }
      throw error;
    }
  }

  /** Somebody stops the service, so changes do not matter until it is started again. */
  release(): void {
    this.isWanted = this.isDue = this.owesRestart = this.owesCascade = this.isExpected = false;
    this.isReleased = true;
    this.cancelRetry();
    const { state } = this.options.life.snapshot();
    // A later daemon learns of an end that is not stored yet from the host, with the run's metadata.
    const run = state.phase === 'ended' ? state.run : liveRun(state);
    if (run?.metadata.relaunch || run?.metadata.cascade) {
      run.metadata.cascade = false;
      this.noteRelaunch(run, false);
    }
    this.askWatcher();
  }

  /** The watcher has restarted, or has never been asked. */
  askAgain(): null {
    this.inBackground(this.watcher.sendAgain(this.isWanted));
    return null;
  }

  onState(state: WatchState): null {
    return this.watcher.onState(state);
  }

  /** Files have changed, and the change is in the journal. */
  async onChange(paths: string[]): Promise<null> {
    const { effects } = this.options;
    if (!this.watcher.isMade) {
      this.watcher.withdraw();
      return null;
    }
    await tolerateFailure(effects.announceChange(paths.slice(0, WATCH.reportedPaths)), () => null);
    if (this.isReleased) return null;
    this.isDue = true;
    this.act();
    return null;
  }

  private get spec(): WatchSpec | null {
    return this.options.life.snapshot().stored?.spec.watch ?? null;
  }

  /** How to react to what is due. A restart requested by a client is not a signal of the watch rule. */
  private get rule(): Pick<WatchSpec, 'action' | 'cascade'> {
    const { spec } = this;
    return spec === null || (this.owesRestart && spec.action !== 'restart') ? CLIENTS_RESTART : spec;
  }

  private askWatcher(): void {
    this.inBackground(this.watcher.send(this.isWanted));
  }

  /** Handles the change, or waits for the next phase in which it can be handled. */
  private act(): void {
    if (!this.isDue) return;
    const spec = this.rule;
    const { life, start } = this.options;
    const { state } = life.snapshot();
    switch (state.phase) {
      case 'checking':
      case 'running':
        if (this.options.isAsleep()) return;
        this.isDue = this.owesRestart = false;
        this.answer(state.run, spec);
        return;
      case 'idle':
      case 'waiting':
        this.isDue = this.owesRestart = false;
        // A sleeping service is left asleep: whoever wakes it starts it with the files as they are then.
        if (spec.action !== 'restart' || life.view().status === 'sleeping') return;
        this.owesCascade = spec.cascade;
        this.inBackground(start());
        return;
      case 'stopping':
        // The next process starts with the current files; after a failed check, only a change may start it.
        if (!isUnasked(state)) this.isDue = this.owesRestart = false;
        return;
      case 'lost':
      case 'launching':
      case 'ended':
        return;
    }
  }

  /** Restarts the run, or sends it the signal. The host keeps that the change has been handled. */
  private answer(run: LiveRun, { action, cascade }: Pick<WatchSpec, 'action' | 'cascade'>): void {
    const { context, effects, restart } = this.options;
    const changedAt = context.clock.now();
    this.refused = action === 'restart' ? this.refusal : null;
    if (this.refused) {
      this.relaunching = null;
      this.noteRelaunch(run, false, { changedAt });
      return;
    }
    if (action !== 'restart') {
      effects.note(run, { changedAt });
      signalGroup(run, action);
      return;
    }
    this.keep(run, { changedAt });
    this.owesCascade = cascade;
    this.inBackground(restart());
  }

  /** Restarts the services that depend on this one. */
  private cascade(): void {
    const { context, name } = this.options;
    this.owesCascade = false;
    context.ref('groups').tell('restartDependants', { name });
  }

  /** The services that depend on this one know that they are restarted, so its run owes them no more. */
  cascadeKnown(): null {
    const { state } = this.options.life.snapshot();
    if (state.phase === 'running' && state.run.metadata.cascade) {
      state.run.metadata.cascade = false;
      this.options.effects.note(state.run);
    }
    return null;
  }

  /** No client waits for this reaction, so without a retry the service would stay stopped. */
  private retryLater(code: string): null {
    if (!PASSING.has(code)) return null;
    this.cancelRetry();
    this.cancelRetry = this.options.context.clock.after(RETRY_MS, () => {
      const { phase } = this.options.life.snapshot().state;
      if (!this.isWanted || this.isReleased || phase === 'running' || phase === 'checking') return;
      this.isDue = true;
      this.act();
    });
    return null;
  }

  /** No client waits for this. Permanent failures show in the state of the service. */
  private inBackground(work: Promise<unknown>): void {
    tolerateFailure(work, ({ code }) => this.retryLater(code)).catch((error: unknown) =>
      this.options.context.crash(error),
    );
  }
}
