// What the agent of one service is doing, for all who ask or wait: docs/reference.md "State of an agent".
// The state that was told last is kept with the run at the host, so that a later daemon repeats no event.
import type {
  AgentStateName,
  AgentStateProtocol,
  AgentStatus,
  StateReason,
} from '../../protocol/agent_state.ts';
import { type Context, type MessageOf, tolerateFailure } from '../../runtime/actor.ts';
import { AGENT_STATE } from '../../settings/limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import type { LiveRun } from './run.ts';
import { agentStateEvent } from './run_events.ts';
import type { ServiceLog } from './service_log.ts';
import { liveRun } from './state.ts';
import { type DecidedState, decideState, type StateWords } from './state_words.ts';
import { NO_READING, WatchedTerminal } from './watched_terminal.ts';

export interface AgentStateOptions {
  context: Context;
  name: string;
  effects: ServiceEffects;
  life: ServiceLifecycle;
  log: ServiceLog;
  /** How many watch its terminal. */
  viewers: () => number;
}

interface Waiter {
  for: readonly AgentStateName[];
  afterMs: number;
  settle: (status: AgentStatus) => void;
}

interface ToldStatus {
  state: AgentStateName;
  /** Epoch milliseconds. */
  since: number;
  reason: StateReason;
}

const NO_WORDS: StateWords = { hook: null, osc: null, screen: null };
const EXITED: StateReason = { authority: 'process', rule: 'exited' };

export class AgentState {
  private readonly options: AgentStateOptions;
  private watched: WatchedTerminal | null = null;
  private told: ToldStatus | null = null;
  /** The state that the last event named. */
  private announced: AgentStateName = 'exited';
  private isAnnouncing = false;
  private readonly waiters = new Set<Waiter>();
  private cancelDue = (): void => {};
  private lastPublished = '';

  constructor(options: AgentStateOptions) {
    this.options = options;
    options.context.scope.defer(() => {
      this.cancelDue();
      this.watched?.end();
    });
  }

  /** After every change of the service's phase or record, and of who watches its terminal. */
  update(): void {
    const { state, stored } = this.options.life.snapshot();
    if (!stored?.spec.agent || state.phase === 'lost') return;
    const run = liveRun(state);
    if (run?.id !== this.watched?.run.id) {
      this.watched?.end();
      this.watched = run?.pty ? this.watch(run) : null;
    }
    this.decide();
  }

  /** The host has connected again, and watches nothing by itself. */
  resume(): void {
    this.watched?.ask();
  }

  status(): AgentStatus {
    const { life, name, viewers } = this.options;
    const { signals, lastOutputAt } = this.watched?.reading ?? NO_READING;
    const told = this.told ?? { state: 'exited', since: life.snapshot().end?.at ?? 0, reason: EXITED };
    return {
      name,
      ...told,
      question: [],
      title: signals.title,
      lastOutputAt,
      viewers: viewers(),
      sessionId: null,
    };
  }

  /** See `AgentStateProtocol.awaitState`. */
  awaitState({ for: wanted, afterMs, timeoutMs }: MessageOf<AgentStateProtocol, 'awaitState'>) {
    return new Promise<AgentStatus>((resolve) => {
      const waiter: Waiter = {
        for: wanted,
        afterMs,
        settle: (status) => {
          cancel();
          this.waiters.delete(waiter);
          resolve(status);
        },
      };
      const ms = Math.min(timeoutMs, AGENT_STATE.maxWaitMs);
      const cancel = this.options.context.clock.after(ms, () => waiter.settle(this.status()));
      this.waiters.add(waiter);
      this.settleWaiters();
    });
  }

  /** From the host. A notice about another run is late. */
  onMoved({ run, ...reading }: MessageOf<AgentStateProtocol, 'terminalMoved'>): null {
    if (this.watched?.run.id === run) this.watched.take(reading);
    return null;
  }

  /** Begins with a run, which an earlier daemon may have told about. */
  private watch(run: LiveRun): WatchedTerminal {
    const { context, effects, log } = this.options;
    const { told } = run.metadata;
    if (told) this.announced = told.state;
    return new WatchedTerminal({ context, effects, log, run, onReading: () => this.decide() });
  }

  private decide(): void {
    const { context } = this.options;
    this.cancelDue();
    const now = context.clock.now();
    // Before the host has answered, a run that is not new may be in any state.
    if (this.watched && !this.watched.isKnown && this.told?.state !== 'starting') return;
    const { until, ...decided } = this.decideAt(now);
    if (until !== null) this.cancelDue = context.clock.after(Math.max(0, until - now), () => this.decide());
    this.tell(decided, now);
  }

  private decideAt(now: number): DecidedState {
    const { state, stored } = this.options.life.snapshot();
    const run = liveRun(state);
    if (!run && state.phase !== 'launching') return { state: 'exited', reason: EXITED, until: null };
    const hasCheck = (run?.metadata.ready ?? stored?.spec.ready ?? null) !== null;
    return decideState({
      now,
      isStarting: state.phase === 'launching' || (state.phase === 'checking' && hasCheck),
      startedAt: run?.startedAt ?? now,
      lastOutputAt: this.watched?.reading.lastOutputAt ?? null,
      words: NO_WORDS,
      knowsPrompt: false,
    });
  }

  private tell({ state, reason }: Pick<DecidedState, 'state' | 'reason'>, now: number): void {
    const { told } = this;
    if (told?.state !== state) {
      const kept = told ? null : this.watched?.run.metadata.told;
      const since = kept?.state === state ? kept.since : this.sinceOf(state, now);
      this.told = { state, since, reason };
      this.keep();
      this.announceSoon();
    } else told.reason = reason;
    this.publish();
    this.settleWaiters();
  }

  /** When a state began that is told now: an agent without a process has exited when that has ended. */
  private sinceOf(state: AgentStateName, now: number): number {
    return state === 'exited' ? (this.options.life.snapshot().end?.at ?? now) : now;
  }

  /** Has the host keep what was told, for a later daemon. */
  private keep(): void {
    const { effects, life } = this.options;
    const { phase } = life.snapshot().state;
    if (!this.watched || !this.told || (phase !== 'checking' && phase !== 'running')) return;
    const { run } = this.watched;
    const { state, since } = this.told;
    run.metadata.told = { state, since };
    effects.note(run, { passed: phase === 'running' });
  }

  private publish(): void {
    const status = this.status();
    const text = JSON.stringify(status);
    if (text === this.lastPublished) return;
    this.lastPublished = text;
    this.options.effects.publishAgent(status);
  }

  private settleWaiters(): void {
    if (this.waiters.size === 0 || !this.told) return;
    const { state, since } = this.told;
    for (const waiter of [...this.waiters])
      if (waiter.for.includes(state) && since >= waiter.afterMs) waiter.settle(this.status());
  }

  /** Journals the state, no more often than the journal should hear of one agent. */
  private announceSoon(): void {
    if (this.isAnnouncing) return;
    this.isAnnouncing = true;
    this.announce().catch((error: unknown) => this.options.context.crash(error));
  }

  private async announce(): Promise<void> {
    const { context, effects, name } = this.options;
    while (this.told && this.told.state !== this.announced) {
      const { state, reason } = this.told;
      const event = agentStateEvent(name, this.watched?.run.id ?? null, state, this.announced, reason);
      this.announced = state;
      // The journal's failure is told where it matters; the state itself is in the views.
      await tolerateFailure(
        effects.appendEvent(event).then(() => null),
        () => null,
      );
      await new Promise<void>((resolve) => context.clock.after(AGENT_STATE.eventIntervalMs, resolve));
    }
    this.isAnnouncing = false;
  }
}
