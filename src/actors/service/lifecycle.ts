// The effects behind the table in state.ts: one service from start to end and again, together with the process
// host that owns its process.
//
// What has happened is told and written in this order: the views first, so that whoever hears of it reads it; then the
// event in the journal, then the end in the store; only then the host may drop the run from its ledger and whoever waits is
// answered. A daemon that was killed in between does it again: both may be done twice.
import type { Probe } from '../../adapters/ready_probe.ts';
import { fail } from '../../protocol/errors.ts';
import type { LedgerRun, SpawnReply } from '../../protocol/host.ts';
import type { LastEnd, RunEnd, ServiceState, StopResult, StoredService } from '../../protocol/service.ts';
import { type Context, type Failure, isFailure } from '../../runtime/actor.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';
import { READY_CHECK, SERVICE } from '../../settings/limits.ts';
import { reconcile } from './adopt.ts';
import type { ServiceEffects } from './effects.ts';
import { startFailure } from './explain.ts';
import { startReadyCheck } from './ready_check.ts';
import { type Backoff, classifyEnd, nextRestart } from './restart_policy.ts';
import { type LiveRun, plannedRun, type Run, withMeasuredMemory } from './run.ts';
import {
  disposeState,
  type EndContext,
  type EndedState,
  type LifecycleState,
  type ReadyTimeout,
  serviceStateOf,
  TRANSITIONS,
} from './state.ts';

/** Refusals of a spawn that leave open what the host has: nobody answered, or it has a process not known here. */
const DOUBT: readonly string[] = ['overloaded', 'deadline', 'crashed', 'gone', 'already_running'];

export interface LifecycleOptions {
  context: Context;
  name: string;
  effects: ServiceEffects;
  probe: Probe;
  /** When the machine was booted, epoch milliseconds: restarts owed from before are not made. */
  bootedAt: number;
  /** The last lines that a run has printed. */
  lastLines: (run: string) => Promise<string[]>;
  /** Told once of each end. */
  onEnded: (run: LiveRun, end: LastEnd) => void;
}

type EndOutcome = Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown' | 'cause' | 'at'>;
type Lost = Extract<LifecycleState, { phase: 'lost' }>;

const nothing = (): void => {};
export const UNASKED: EndContext = { stopped: false, late: null, stop: null };

/** In which phase one service is, and what takes it to the next. Its actor (service.ts) owns it. */
export class ServiceLifecycle {
  stored: StoredService | null;
  end: LastEnd | null;
  state: LifecycleState = { phase: 'lost', was: null, cancel: nothing };
  /** Restarts by policy since a client started it; `attempt` counts those in a row that did not stay up. */
  restarts = 0;
  attempt = 0;
  private readonly options: LifecycleOptions;

  constructor(options: LifecycleOptions) {
    this.options = options;
    this.stored = options.effects.stored();
    this.end = options.effects.lastEnd();
    // What is still under way finds another state and does nothing more.
    options.context.scope.defer(() => {
      disposeState(this.state);
      this.state = { phase: 'lost', was: null, cancel: nothing };
    });
  }

  view(): ServiceState {
    return serviceStateOf(this.options.name, this.state, this.end, this.restarts);
  }

  busy(): Failure {
    const { name } = this.options;
    return this.state.phase === 'stopping'
      ? fail('daemon_busy', `${name} is being stopped`)
      : fail('daemon_busy', `the process host does not answer; it is asked again what it has of ${name}`);
  }

  /** Makes a process from the spec as it is now. `timeoutMs` null: no deadline for its ready-check. */
  launch(stored: StoredService, timeoutMs: number | null, byPolicy: boolean): Run {
    const { context, effects } = this.options;
    const asked = { now: context.clock.now(), timeoutMs, byPolicy, restarts: this.restarts };
    const run = plannedRun(stored, asked);
    const state = { phase: 'launching', run, early: null } as const;
    this.become(state);
    this.inBackground(
      effects.spawn(run, stored.spec, this.end).then(
        (reply) => this.state === state && this.spawned(run, reply),
        (error: unknown) => this.state === state && this.unspawned(state, error),
      ),
    );
    return run;
  }

  private spawned(run: Run, reply: SpawnReply): void {
    const { state } = this;
    const live: LiveRun = { ...run, ...reply };
    // The end may have arrived before the answer of the spawn was read.
    if (state.phase === 'launching' && state.early) this.finish(live, state.early, UNASKED);
    else this.check(live, run.timeoutMs);
    run.spawned.resolve({ name: this.options.name, status: 'starting', pid: live.pid });
  }

  private unspawned(state: Extract<LifecycleState, { phase: 'launching' }>, error: unknown): void {
    if (!isFailure(error)) throw error;
    if (DOUBT.includes(error.code)) this.sever(state);
    else this.refused(state.run, error);
  }

  private refused(run: Run, error: Failure): void {
    const policy = run.byPolicy && this.stored ? this.stored.spec.restart : 'no';
    const now = this.options.context.clock.now();
    const backoff = nextRestart(policy, { failed: true, upMs: 0, attempt: this.attempt }, now);
    if (backoff) this.wait(backoff, error.message);
    else this.become({ phase: 'idle', trouble: error.message });
    run.spawned.reject(error);
    run.ready.reject(error);
  }

  check(run: LiveRun, timeoutMs: number | null): void {
    const { context, effects, probe } = this.options;
    const { port, ready: url } = run.metadata;
    const slowestMs = run.pty ? READY_CHECK.agentMaxIntervalMs : READY_CHECK.maxIntervalMs;
    const plan = { url, upMs: context.clock.now() - run.startedAt, timeoutMs, slowestMs };
    const check = startReadyCheck(context.clock, probe, plan, (passed) => {
      if (passed) this.running(run, true);
      // Who listens is looked at before the stop changes it; without an answer the hint says less.
      else this.halt(run, null, { check: check.last(), holder: effects.portHolder(port).catch(() => null) });
    });
    this.become({ phase: 'checking', run, check });
    effects.track(run, false);
  }

  /** `news`: it has just become ready. */
  running(run: LiveRun, news: boolean): void {
    this.become({ phase: 'running', run: withMeasuredMemory(run) });
    this.options.effects.track(run, true);
    if (news) this.announce(run);
  }

  announce(run: LiveRun): void {
    const { name, effects } = this.options;
    this.inBackground(
      effects.announce(run).then(
        () => run.ready.resolve({ name, status: 'running', pid: run.pid }),
        (error: unknown) => {
          // It runs all the same; a later look at the host finds that it is still to be announced.
          run.ready.reject(error);
          if (!isFailure(error)) throw error;
        },
      ),
    );
  }

  /** Has the host end the process tree. `graceMs` null: the service's own grace period. */
  halt(run: LiveRun, graceMs: number | null, late: ReadyTimeout | null): Deferred<StopResult> {
    const { context, name, effects } = this.options;
    const { stopSignal = 'SIGTERM', stopGrace = SERVICE.defaultStopGraceMs } = this.stored?.spec ?? {};
    const stop = deferred<StopResult>();
    const state = { phase: 'stopping', run, graceMs: graceMs ?? stopGrace, late, stop } as const;
    this.become(state);
    this.inBackground(
      effects.stopRun(run.id, run.metadata.port, stopSignal, state.graceMs).then(
        ({ exitUnknown, ...report }) => {
          if (this.state !== state) return;
          const answer: StopResult = { name, status: 'stopped', ...report };
          const outcome = { ...report, exitUnknown, cause: 'exit', at: context.clock.now() } as const;
          this.finish(run, outcome, { stopped: true, late, stop: { asked: stop, answer } });
        },
        (error: unknown) => {
          if (!isFailure(error)) throw error;
          if (this.state === state) this.sever(state);
        },
      ),
    );
    return stop;
  }

  /** The process is gone: this is written down, and then what follows from it. */
  finish(run: LiveRun, outcome: EndOutcome, how: EndContext): void {
    const { stopped } = how;
    const late = how.late !== null;
    const { end, backoff } = classifyEnd(
      { run, attempt: this.attempt, outcome, stopped, timedOut: late },
      this.stored?.spec.restart ?? 'no',
      this.options.context.clock.now(),
    );
    this.end = end;
    const state: EndedState = { phase: 'ended', run, end, how, backoff, recording: null, cancel: nothing };
    this.become(state);
    this.options.onEnded(run, end);
    this.recordSoon(state);
  }

  /** Resolves when the end at hand is on disk; with the answer of the stop that made it, if one did. */
  async record(state: EndedState): Promise<StopResult | null> {
    state.recording ??= this.write(state);
    await state.recording;
    return state.how.stop?.answer ?? null;
  }

  private recordSoon(state: EndedState): void {
    // A Failure is told to whoever waits, and the next attempt has its timer.
    this.inBackground(this.record(state).catch((error) => (isFailure(error) ? null : Promise.reject(error))));
  }

  private async write(state: EndedState): Promise<void> {
    const { run, end, how, backoff } = state;
    const { context, lastLines, name, effects } = this.options;
    try {
      await effects.recordEnd(end);
    } catch (error) {
      state.recording = null;
      state.cancel = context.clock.after(SERVICE.endRecordRetryMs, () => this.recordSoon(state));
      run.ready.reject(error);
      how.stop?.asked.reject(error);
      throw error;
    }
    if (this.state !== state) return;
    effects.acknowledge(end.run);
    if (backoff) this.wait(backoff, null);
    else this.become({ phase: 'idle', trouble: null });
    how.stop?.asked.resolve(how.stop.answer);
    if (!run.ready.settled)
      run.ready.reject(await startFailure(name, state, await lastLines(run.id), context.clock.now()));
  }

  wait(backoff: Backoff, trouble: string | null): void {
    const { clock } = this.options.context;
    const due = (): void => {
      if (!this.stored) return;
      const { agent, startTimeout } = this.stored.spec;
      this.restarts += 1;
      this.attempt = backoff.attempt;
      this.launch(this.stored, agent ? null : startTimeout, true);
    };
    const cancel = clock.after(Math.max(0, backoff.nextAt - clock.now()), due);
    this.become({ phase: 'waiting', backoff, trouble, cancel });
  }

  /** No restart follows any more, in this life or a later daemon's. */
  async cancelRestart(): Promise<void> {
    this.become({ phase: 'idle', trouble: null });
    if (!this.end?.restart) return;
    const { restart: _, ...end } = this.end;
    await this.keep(end);
  }

  /** Resolves when `end` is on disk. */
  async keep(end: LastEnd): Promise<void> {
    this.end = end;
    this.publish();
    await this.options.effects.saveEnd(end);
  }

  /** The host is gone in the middle of something: whoever waits is told, and it is asked again until it answers. */
  private sever(was: Extract<LifecycleState, { phase: 'launching' | 'stopping' }>): void {
    const state: Lost = { phase: 'lost', was, cancel: nothing };
    this.become(state);
    this.lookLater(state);
    const busy = this.busy();
    const waiting = [was.run.spawned, was.run.ready, ...(was.phase === 'stopping' ? [was.stop] : [])];
    for (const answer of waiting) answer.reject(busy);
  }

  /** Asks the host what it has of this service and goes on from there; harmless at any time. */
  async look(): Promise<void> {
    const asked = this.state;
    const { bootedAt, context, effects } = this.options;
    if (TRANSITIONS[asked.phase].adopt === 'skip') return;
    let row: LedgerRun | null;
    try {
      row = await effects.runOf();
    } catch (error) {
      if (!isFailure(error)) throw error;
      if (this.state === asked && asked.phase === 'lost') this.lookLater(asked);
      return;
    }
    if (this.state === asked) reconcile(this, effects, row, context.clock.now(), bootedAt);
  }

  private lookLater(state: Lost): void {
    state.cancel();
    state.cancel = this.options.context.clock.after(SERVICE.hostRetryMs, () =>
      this.inBackground(this.look()),
    );
  }

  become(next: LifecycleState): void {
    if (!TRANSITIONS[this.state.phase].next.includes(next.phase))
      throw new TypeError(`${this.options.name} cannot go from ${this.state.phase} to ${next.phase}`);
    disposeState(this.state);
    this.state = next;
    this.publish();
  }

  /** Tells the views, unless there is no such service. */
  publish(): void {
    if (this.stored) this.options.effects.publish(this.view());
  }

  inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.options.context.crash(error));
  }
}
