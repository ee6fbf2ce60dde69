// The transitions of one service, made together with the process host. machine.ts decides when each is due.
//
// An end goes to the views, then to the journal, then to the store. Only then may the host drop the run, and
// only then do waiting callers get their replies. If the daemon is killed in between, both writes are
// repeated.
import { fail } from '../../protocol/errors.ts';
import type { LedgerRun, SpawnReply } from '../../protocol/host.ts';
import { hostLostFailure } from '../../protocol/host_loss.ts';
import type { LastEnd, ServiceState, StartReply, StopReply, StoredService } from '../../protocol/service.ts';
import { type Failure, isFailure, tolerateFailure } from '../../runtime/actor.ts';
import { type Deferred, deferred, withTimeout } from '../../runtime/deferred.ts';
import { SERVICE } from '../../settings/limits.ts';
import { leavesDoubt } from './effects.ts';
import { startFailure } from './explain.ts';
import type { LifecycleOptions } from './lifecycle_options.ts';
import { applyFinding, type FindingActions, type Known, reconcile } from './reconcile.ts';
import { RestartCounter } from './restart_counter.ts';
import { asleepEnd, type Backoff, type RunOutcome } from './restart_policy.ts';
import { completedReply, type LiveRun, plannedRun, type Run, withMeasuredMemory } from './run.ts';
import { RunChecks } from './run_checks.ts';
import {
  type EndContext,
  type In,
  type LifecycleState,
  type ReadyTimeout,
  type RunFault,
  SUCCESSORS,
  UNASKED,
} from './state.ts';
import { stopSettings } from './stop_settings.ts';
import { StoredEnd } from './stored_end.ts';

const nothing = (): void => {};

/** One service: its phase, its record and the end of its last process. */
export class ServiceLifecycle {
  private readonly options: LifecycleOptions;
  private stored: StoredService | null;
  readonly lastEnd: StoredEnd;
  private state: LifecycleState = { phase: 'lost', was: null };
  /** Ends the timer or check of the current phase. */
  private leavePhase: () => void = nothing;
  private readonly checks: RunChecks;
  private readonly restarts = new RestartCounter(() => this.stored?.spec.restart ?? 'no');

  constructor(options: LifecycleOptions) {
    this.options = options;
    this.stored = options.effects.stored();
    this.checks = new RunChecks(options.probes, options.effects);
    this.lastEnd = new StoredEnd(options.context, options.effects, () => this.publish());
    this.restarts.resumeEnded(this.lastEnd.value);
    // Work still under way notices the changed state and stops.
    options.context.scope.defer(() => {
      this.leavePhase();
      this.state = { phase: 'lost', was: null };
    });
  }

  /** The current knowledge, for `reconcile`. */
  snapshot(): Known {
    return { stored: this.stored, state: this.state, end: this.lastEnd.value };
  }

  /** The service as clients see it. */
  view(): ServiceState {
    const { door, session } = this.options;
    const row = door.view(this.state, this.lastEnd.value, this.restarts.total);
    return session.isAsleep ? { ...row, status: 'sleeping' } : row;
  }

  /** The record of the service. Fails unknown_service when it is not registered. */
  registered(): StoredService {
    if (this.stored) return this.stored;
    throw fail('unknown_service', `there is no service ${this.options.name}`);
  }

  /** Takes a first or a changed registration. */
  register(stored: StoredService): void {
    this.stored = stored;
    this.publish();
  }

  /** Forgets a removed service until it is registered again. */
  forget(): void {
    this.stored = null;
    this.lastEnd.value = null;
    this.restarts.reset();
  }

  busy(): Failure {
    if (this.state.phase !== 'stopping') return hostLostFailure(this.options.name);
    return fail('daemon_busy', `${this.options.name} is being stopped`);
  }

  startResult(status: StartReply['status'], { pid }: LiveRun): StartReply {
    return { name: this.options.name, status, pid };
  }

  /** Begins a start other than the policy's. `timeoutMs` null: no deadline for its ready-check. */
  launchAsked(timeoutMs: number | null, by: Run['by']): Run {
    this.restarts.reset();
    return this.launch(this.registered(), timeoutMs, by);
  }

  /** The value of `promise`. Fails with `late` after `ms` milliseconds; the promise itself goes on. */
  async inTime<T extends object>(ms: number, promise: Promise<T>, late: Failure): Promise<T> {
    const value = await withTimeout(ms, promise, this.options.context.clock);
    if (value) return value;
    throw late;
  }

  /** Starts the ready-check of a process. `timeoutMs` null: it has no deadline. */
  private check(run: LiveRun, timeoutMs: number | null): void {
    const { effects } = this.options;
    const check = this.checks.startReady(run, timeoutMs, (passed, { foreignHolder, last }) => {
      if (passed) this.beginRunning(run);
      else {
        // Asks for the listener before the stop changes it. Without an answer the hint is shorter.
        const holder = tolerateFailure(effects.portHolder(run.metadata.port), () => null);
        this.halt(run, null, { check: last(), holder, foreignHolder: foreignHolder() });
      }
    });
    this.become({ phase: 'checking', run, check }, check.stop);
    effects.track(run, false);
  }

  /** The process has passed its ready-check, or belongs to a task, which has none. */
  private beginRunning(run: LiveRun): void {
    this.becomeRunning(run);
    this.announce(run);
  }

  private becomeRunning(run: LiveRun): void {
    const live = this.checks.startLive(run, (check) => this.options.onUnhealthy(run, check));
    this.become({ phase: 'running', run: withMeasuredMemory(run), live }, live?.stop);
    this.options.effects.track(run, true);
  }

  /** Records that the run is ready, and answers its start. The start of a task is answered when it ends. */
  private announce(run: LiveRun): void {
    const asked = run.metadata.task ? null : run.ready;
    this.inBackground(
      this.options.effects.announce(run, this.options.context.clock).then(
        () => asked?.resolve(this.startResult('running', run)),
        (error: unknown) => {
          // The service is running anyway. A later comparison with the host's ledger announces it.
          asked?.reject(error);
          if (!isFailure(error)) throw error;
        },
      ),
    );
  }

  /** Makes the host end the process tree. */
  halt(
    run: LiveRun,
    graceMs: number | null,
    late: ReadyTimeout | null,
    fault: RunFault | null = null,
  ): Deferred<StopReply> {
    const { context, effects, name } = this.options;
    const stop = deferred<StopReply>();
    const settings = stopSettings(this.stored, graceMs);
    const { graceMs: ms } = settings;
    const state: In<'stopping'> = { phase: 'stopping', run, graceMs: ms, late, fault, stop };
    this.become(state);
    this.inBackground(
      effects.stopRun(run.id, run.metadata.port, settings).then(
        ({ exitUnknown, ...report }) => {
          if (this.state !== state) return;
          const answer: StopReply = { name, status: 'stopped', ...report };
          const outcome = { ...report, exitUnknown, cause: 'exit', at: context.clock.now() } as const;
          const why = { late: state.late, fault: state.fault?.cause ?? null };
          this.finish(run, outcome, { stopped: true, ...why, stop: { asked: stop, answer } });
        },
        (error: unknown) => {
          if (!isFailure(error)) throw error;
          if (this.state === state) this.sever(state);
        },
      ),
    );
    return stop;
  }

  /** Records the end of the process, and decides what follows. */
  finish(run: LiveRun, outcome: RunOutcome, how: EndContext): void {
    const { context, isRelaunched, isReleased, session } = this.options;
    const { late, stopped, stop, fault } = how;
    const plan = { relaunched: isRelaunched(run), released: isReleased() };
    const why = { stopped, whole: stop !== null, fault, timedOut: late !== null, ...plan };
    const ended = this.restarts.afterEnd({ run, outcome, ...why }, context.clock.now());
    const { end, backoff } = session.onEnded(run, outcome, stopped) ? asleepEnd(ended.end) : ended;
    this.lastEnd.value = end;
    const state: In<'ended'> = { phase: 'ended', run, end, how, backoff, recording: null };
    this.become(state);
    this.options.onEnded(run, end);
    this.recordSoon(state);
  }

  /** Like `finish`, for a run that ended unobserved: a task counts as having been up. */
  private finishUnseen(run: LiveRun, outcome: RunOutcome, how: EndContext): void {
    if (run.metadata.task && !run.metadata.passed) this.announce(run);
    this.finish(run, outcome, how);
  }

  /** Resolves when the current end is on disk. Fails as the store does; the end is then written later. */
  async record(state: In<'ended'>): Promise<void> {
    state.recording ??= this.write(state);
    await state.recording;
  }

  /** Whether the end of `run` is in the store. In phase `ended` the last end is still being written. */
  isRecorded(run: string): boolean {
    return this.state.phase !== 'ended' && this.lastEnd.value?.run === run;
  }

  /** Cancels any pending restart, here and for a later daemon. */
  async cancelRestart(): Promise<null> {
    if (this.state.phase === 'waiting') this.become({ phase: 'idle', trouble: null });
    await this.lastEnd.forgo('restart');
    return null;
  }

  /** The host has no process for this service. */
  private rest(owed: Backoff | null): void {
    if (this.state.phase !== 'lost') return;
    if (owed) this.wait(owed, null);
    else this.become({ phase: 'idle', trouble: null });
  }

  /** Asks the host for its record of this service, and continues from there. */
  async look(): Promise<void> {
    const asked = this.state;
    const { bootedAt, context, effects } = this.options;
    let row: LedgerRun | null;
    try {
      row = await effects.questions.runOf();
    } catch (error) {
      if (!isFailure(error)) throw error;
      if (this.state === asked && asked.phase === 'lost') this.lookLater();
      return;
    }
    if (this.state !== asked) return;
    const finding = reconcile(row, this.snapshot(), context.clock.now(), bootedAt);
    if ('run' in finding && asked.phase === 'lost' && !asked.was) this.restarts.resume(finding.run.metadata);
    applyFinding(this.findingActions(), finding);
  }

  /** As `look`, without waiting for it. */
  lookSoon(): void {
    this.inBackground(this.look());
  }

  /** The action for each result of a comparison with the host's ledger. */
  private findingActions(): FindingActions {
    return {
      same: nothing,
      unannounced: ({ run }) => this.announce(run),
      absent: ({ owed }) => this.rest(owed),
      recorded: ({ id, owed }) => {
        this.options.effects.acknowledge(id);
        this.rest(owed);
      },
      ended: ({ run, outcome, ...how }) => this.finishUnseen(run, outcome, { ...how, stop: null }),
      checking: ({ run, timeoutMs }) => this.check(run, timeoutMs),
      running: ({ run }) => this.becomeRunning(run),
      working: ({ run }) => this.beginRunning(run),
      stopping: ({ run, graceMs, late, fault }) => void this.halt(run, graceMs, late, fault),
    };
  }

  private inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.options.context.crash(error));
  }

  /** Enters `next`, which must be a possible successor. `leave` cancels the timer or check of that phase. */
  private become(next: LifecycleState, leave: () => void = nothing): void {
    if (!SUCCESSORS[this.state.phase].includes(next.phase))
      throw new TypeError(`${this.options.name} cannot go from ${this.state.phase} to ${next.phase}`);
    this.leavePhase();
    this.leavePhase = leave;
    this.state = next;
    this.publish();
  }

  /** Updates the door, and publishes the service to the views if it is registered. */
  publish(): void {
    this.options.door.follow();
    if (!this.stored) return;
    this.options.effects.publish(this.view());
    this.options.onChanged();
  }

  /** Starts a process from the current spec. `timeoutMs` null: no deadline for its ready-check. */
  private launch(stored: StoredService, timeoutMs: number | null, by: Run['by']): Run {
    const { context, door, session } = this.options;
    const logFrom = this.checks.logEnd();
    const options = { clock: context.clock, timeoutMs, by, restarts: this.restarts, logFrom };
    const run = plannedRun(stored, options);
    const state: In<'launching'> = { phase: 'launching', run, early: null };
    this.become(state);
    this.inBackground(
      session
        .prepared(run, stored)
        .then((prepared) => door.spawn(run, prepared, this.lastEnd.value))
        .then(
          (reply) => this.state === state && this.spawned(state, reply),
          (error: unknown) => this.state === state && this.unspawned(state, error),
        ),
    );
    return run;
  }

  private spawned({ run, early }: In<'launching'>, reply: SpawnReply): void {
    const live: LiveRun = { ...run, ...reply };
    if (early) this.finishUnseen(live, early, UNASKED);
    else if (run.metadata.task) this.beginRunning(live);
    else this.check(live, run.timeoutMs);
    run.spawned.resolve(this.startResult('starting', live));
  }

  private unspawned(state: In<'launching'>, error: unknown): void {
    if (!isFailure(error)) throw error;
    if (leavesDoubt(error)) {
      this.sever(state);
      return;
    }
    const next = this.restarts.afterNoProcess(state.run.by, error, this.options.context.clock.now());
    const isLast = next === 'exhausted' ? '; its restart policy allows no further restart' : '';
    const backoff = next === 'exhausted' ? null : next;
    if (backoff) this.wait(backoff, error.message);
    else this.become({ phase: 'idle', trouble: `${error.message}${isLast}` });
    this.inBackground(this.lastEnd.startFailed(error, backoff && this.restarts.pending(backoff)));
    state.run.spawned.reject(error);
    state.run.ready.reject(error);
  }

  private recordSoon(state: In<'ended'>): void {
    // Waiting callers get the Failure, and a timer repeats the attempt.
    this.inBackground(tolerateFailure(this.record(state), nothing));
  }

  private async write(state: In<'ended'>): Promise<void> {
    const { run, end, how } = state;
    const { context, door, lastLines, name, effects, session } = this.options;
    let recorded: LastEnd;
    try {
      await session.recorded(end);
      recorded = await effects.recordEnd(end, session.sleptAfter(end.run) ?? door.sleptAfter(end.run));
    } catch (error) {
      state.recording = null;
      if (this.state === state)
        this.leavePhase = context.clock.after(SERVICE.endRecordRetryMs, () => this.recordSoon(state));
      run.ready.reject(error);
      // The stop has succeeded, even if the disk is full: docs/reference.md "Full disk".
      if (isFailure(error)) how.stop?.asked.resolve(how.stop.answer);
      else how.stop?.asked.reject(error);
      throw error;
    }
    if (this.state !== state) return;
    if (recorded !== end) {
      this.lastEnd.value = recorded;
      state.backoff = null;
    }
    this.options.effects.acknowledge(end.run);
    if (state.backoff) this.wait(state.backoff, null);
    else this.become({ phase: 'idle', trouble: null });
    how.stop?.asked.resolve(how.stop.answer);
    if (recorded.completed) run.ready.resolve(completedReply(name, recorded.completed.ms));
    if (run.ready.settled) return;
    const known = { env: this.stored?.spec.env ?? [], path: effects.variable(this.stored, 'PATH') };
    const facts = { ...known, lastLines: await lastLines(run.id), now: context.clock.now() };
    run.ready.reject(await startFailure(name, state, facts));
  }

  private wait(backoff: Backoff, trouble: string | null): void {
    const { clock } = this.options.context;
    const due = (): void => {
      if (!this.stored) return;
      const { agent, startTimeout } = this.stored.spec;
      this.restarts.begin(backoff, clock.now());
      this.launch(this.stored, agent ? null : startTimeout, 'policy');
    };
    const cancel = clock.after(Math.min(backoff.delayMs, Math.max(0, backoff.nextAt - clock.now())), due);
    this.become({ phase: 'waiting', backoff, trouble }, cancel);
  }

  /** The host was lost in a launch or stop: callers get a Failure; the host is asked until it answers. */
  private sever(was: In<'launching' | 'stopping'>): void {
    this.become({ phase: 'lost', was });
    this.lookLater();
    const waiting = [was.run.spawned, was.run.ready, ...(was.phase === 'stopping' ? [was.stop] : [])];
    for (const answer of waiting) answer.reject(this.busy());
  }

  private lookLater(): void {
    this.leavePhase();
    this.leavePhase = this.options.context.clock.after(SERVICE.hostRetryMs, () => this.lookSoon());
  }
}
