// The state of one service's agent, for clients that ask or wait: docs/reference.md "State of an agent". The
// last published state is kept with the run at the host, for its time. Which state the last event named is
// read from the journal, because a daemon may end between the two, and an agent may exit while none runs.
import type {
  AgentStateName,
  AgentStateProtocol,
  AgentStatus,
  StateExplanation,
  StateReason,
  ToldState,
} from '../../protocol/agent_state.ts';
import { speaksFor } from '../../protocol/agent_types.ts';
import { fail } from '../../protocol/errors.ts';
import type { AgentSpec } from '../../protocol/service.ts';
import type { SizeMark } from '../../protocol/terminal.ts';
import { type Context, type Handlers, type MessageOf, tolerateFailure } from '../../runtime/actor.ts';
import { AGENT_STATE } from '../../settings/agent_limits.ts';
import type { AgentSession } from './agent_session.ts';
import type { AgentTerminal } from './agent_terminal.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import type { LiveRun } from './run.ts';
import { agentStateEvent } from './run_events.ts';
import type { ServiceLog } from './service_log.ts';
import { liveRun } from './state.ts';
import { StateEvidence } from './state_evidence.ts';
import type { StateScreens } from './state_screen.ts';
import type { DecidedState } from './state_words.ts';

export interface AgentStateOptions {
  context: Context;
  name: string;
  effects: ServiceEffects;
  life: ServiceLifecycle;
  log: ServiceLog;
  terminal: AgentTerminal;
  screens: StateScreens;
  session: AgentSession;
}

interface ToldStatus {
  state: AgentStateName;
  /** Epoch milliseconds. */
  since: number;
  reason: StateReason;
}

/** Whether the agent is working or asking, by more evidence than output. */
const isActing = ({ state, reason }: Pick<DecidedState, 'state' | 'reason'>): boolean =>
  (state === 'working' || state === 'blocked') && reason.authority !== 'output';

const EXITED: StateReason = { authority: 'process', rule: 'exited' };
const ASLEEP: StateReason = { authority: 'process', rule: 'asleep' };
const LAUNCHING: StateReason = { authority: 'process', rule: 'not-ready' };
const TAKEN_OVER: StateReason = { authority: 'process', rule: 'taken-over' };

export class AgentState {
  private readonly options: AgentStateOptions;
  private evidence: StateEvidence | null = null;
  private told: ToldStatus | null = null;
  /** The state named by the last event; null: the journal has not been asked yet. */
  private announced: AgentStateName | null = null;
  /** The state named by the last event, if the journal has none any more. */
  private assumed: AgentStateName = 'exited';
  private isAnnouncing = false;
  private readonly watchers = new Set<() => void>();
  private cancelDue = (): void => {};
  private lastPublished = '';
  /** Epoch milliseconds; 0: never. */
  private lastActedAt = 0;

  constructor(options: AgentStateOptions) {
    this.options = options;
    options.context.scope.defer(() => {
      this.cancelDue();
      this.evidence?.end();
    });
    options.terminal.onViewers = () => this.update();
    options.terminal.onSizes = (run, sizes) => this.keepSizes(run, sizes);
    options.terminal.onTyped = () => {
      this.evidence?.onTyped();
      this.keepAnswer();
    };
  }

  /** Called after every change of the service's phase or record, and of its terminal's viewers. */
  update(): void {
    const { state, stored } = this.options.life.snapshot();
    if (!stored?.spec.agent || state.phase === 'lost') return;
    const run = liveRun(state);
    if (run?.id !== this.evidence?.run.id) {
      this.evidence?.end();
      this.evidence = run?.pty ? this.watch(run, stored.spec.agent) : null;
    }
    this.decide();
  }

  /** The host has reconnected, and watches nothing until it is asked again. */
  resume(): void {
    this.evidence?.watched.ask();
  }

  status(): AgentStatus {
    const { life, name, session, terminal } = this.options;
    const { evidence } = this;
    const told = this.told ?? { state: 'exited', since: life.snapshot().end?.at ?? 0, reason: EXITED };
    return {
      name,
      ...told,
      question: told.state === 'blocked' ? (evidence?.question ?? []) : [],
      title: evidence?.title ?? '',
      lastOutputAt: evidence?.watched.reading.lastOutputAt ?? null,
      viewers: terminal.viewerCount,
      sessionId: session.id,
    };
  }

  /**
   * When the agent was last known to be working or asking, in epoch milliseconds; 0: never. Output alone does
   * not show that: it may be the echo of what was typed.
   */
  get actedAt(): number {
    return this.lastActedAt;
  }

  /** What each source says. */
  explain(): StateExplanation {
    const nothing = { authorities: [], drawnAt: null };
    return { status: this.shown(), ...(this.evidence?.explain(this.isStarting()) ?? nothing) };
  }

  /**
   * A hook reports the agent's state. Resolves when the report is kept, or ignored because it is of another
   * program. Fails not_running.
   */
  async report(message: MessageOf<AgentStateProtocol, 'reportState'>): Promise<AgentStatus> {
    const { context, effects, life, name, session } = this.options;
    if (!this.evidence) throw fail('not_running', `${name} has no process, so it has no state to report`);
    const { agent } = life.snapshot().stored?.spec ?? {};
    if (!speaksFor(agent?.agentType ?? null, message.reporter)) return this.shown();
    const { run } = this.evidence;
    this.evidence.onHook({ state: message.state, message: message.message, at: context.clock.now() });
    if (message.sessionId !== null) session.learnSoon(message.sessionId);
    this.decide();
    if (this.isUp) await effects.questions.note(run);
    return this.shown();
  }

  /** Calls `onChange` after every change of the status. Returns a function that ends it. */
  watchStatus(onChange: () => void): () => void {
    this.watchers.add(onChange);
    return () => void this.watchers.delete(onChange);
  }

  /** From the host. A notification about another run is outdated. */
  onMoved({ run, ...reading }: MessageOf<AgentStateProtocol, 'terminalMoved'>): null {
    if (this.evidence?.run.id === run) this.evidence.watched.take(reading);
    return null;
  }

  /** Begins to watch a run, whose state an earlier daemon may have published. */
  private watch(run: LiveRun, { agentType, cols, rows }: AgentSpec): StateEvidence {
    const { context, effects, log, screens, terminal } = this.options;
    const { sizes: marks } = run.metadata;
    return new StateEvidence({
      ...{ context, effects, log, terminal, screens, agentType, run, size: { cols, rows, marks } },
      onChanged: () => this.decide(),
    });
  }

  private decide(): void {
    const { context } = this.options;
    this.cancelDue();
    this.keepAnswer();
    const now = context.clock.now();
    // Until the host answers, a run that is not new may be in any state.
    if (this.evidence && !this.evidence.isKnown && this.told?.state !== 'starting') {
      if (this.keptState()) this.publish();
      return;
    }
    const { until, ...decided } = this.decideAt();
    if (until !== null) this.cancelDue = context.clock.after(Math.max(0, until - now), () => this.decide());
    this.tell(decided, now);
  }

  private decideAt(): DecidedState {
    const { state } = this.options.life.snapshot();
    if (this.evidence) return this.evidence.decide(this.isStarting());
    if (this.options.session.isAsleep) return { state: 'asleep', reason: ASLEEP, until: null };
    if (state.phase !== 'launching' && !liveRun(state))
      return { state: 'exited', reason: EXITED, until: null };
    return { state: 'starting', reason: LAUNCHING, until: null };
  }

  /** Whether its process is being started, or has a ready-check that has not passed. */
  private isStarting(): boolean {
    const { state } = this.options.life.snapshot();
    return state.phase === 'launching' || (state.phase === 'checking' && state.run.metadata.ready !== null);
  }

  private tell({ state, reason }: Pick<DecidedState, 'state' | 'reason'>, now: number): void {
    const { told } = this;
    if (isActing({ state, reason }) || (told && isActing(told))) this.lastActedAt = now;
    if (told?.state !== state) {
      const kept = told ? null : this.keptState();
      if (!told) this.assumed = kept?.state ?? (state === 'asleep' ? state : 'exited');
      const since = kept?.state === state ? kept.since : this.sinceOf(state, now);
      this.told = { state, since, reason };
      this.keep();
      this.announceSoon();
    } else {
      told.reason = reason;
      // The question may come later than the state.
      if (state === 'blocked') this.keep();
    }
    this.publish();
    for (const onChange of [...this.watchers]) onChange();
  }

  /**
   * When the new state began. An agent without a process has exited or fallen asleep when its process ended.
   */
  private sinceOf(state: AgentStateName, now: number): number {
    return state === 'exited' || state === 'asleep' ? (this.options.life.snapshot().end?.at ?? now) : now;
  }

  /** What an earlier daemon published of the current run, or of the one whose end is being recorded. */
  private keptState(): ToldState | undefined {
    const { state } = this.options.life.snapshot();
    return 'run' in state ? state.run.metadata.told : undefined;
  }

  /**
   * The status for clients. Until the state of a run is determined again, it is the one that they know: if it
   * turns out to be the same, no event follows.
   */
  private shown(): AgentStatus {
    const kept = this.told || !this.evidence ? undefined : this.keptState();
    const status = this.status();
    return kept ? { ...status, reason: TAKEN_OVER, ...kept, isKept: true } : status;
  }

  /** Makes the host keep the published state for a later daemon. */
  private keep(): void {
    if (!this.evidence || !this.told) return;
    const { question } = this.status();
    const told: ToldState = { ...this.told, ...(question.length > 0 && { question }) };
    const { metadata } = this.evidence.run;
    if (JSON.stringify(metadata.told) === JSON.stringify(told)) return;
    metadata.told = told;
    this.note(this.evidence.run);
  }

  /** Makes the host keep the sizes of the terminal of `run`. */
  private keepSizes(run: string, sizes: readonly SizeMark[]): void {
    if (this.evidence?.run.id !== run) return;
    this.evidence.run.metadata.sizes = [...sizes];
    this.note(this.evidence.run);
  }

  /** Makes the host keep when a question was answered. */
  private keepAnswer(): void {
    if (this.evidence?.takeAnswer()) this.note(this.evidence.run);
  }

  private note(run: LiveRun): void {
    if (this.isUp) this.options.effects.note(run);
  }

  /** Whether the run is in a phase in which the host may be told of it. */
  private get isUp(): boolean {
    const { phase } = this.options.life.snapshot().state;
    return phase === 'checking' || phase === 'running';
  }

  private publish(): void {
    const status = this.shown();
    const text = JSON.stringify(status);
    if (text === this.lastPublished) return;
    this.lastPublished = text;
    this.options.effects.publishAgent(status);
  }

  /** Journals the state, but limits how often one agent is journaled. */
  private announceSoon(): void {
    if (this.isAnnouncing) return;
    this.isAnnouncing = true;
    this.announce().catch((error: unknown) => this.options.context.crash(error));
  }

  private async announce(): Promise<void> {
    const { context, effects, name } = this.options;
    this.announced ??= await this.readJournal();
    while (this.told && this.told.state !== this.announced) {
      const { state, reason } = this.told;
      const event = agentStateEvent(name, this.evidence?.run.id ?? null, state, this.announced, reason);
      this.announced = state;
      // A failing journal is reported elsewhere. The state itself is in the views.
      await tolerateFailure(
        effects.appendEvent(event).then(() => null),
        () => null,
      );
      await new Promise<void>((resolve) => context.clock.after(AGENT_STATE.eventIntervalMs, resolve));
    }
    this.isAnnouncing = false;
  }

  /** Resolves with the state that the last event of this agent named. */
  private async readJournal(): Promise<AgentStateName> {
    const { context, name } = this.options;
    const query = { types: ['agent.state', 'service.removed'], names: [name], since: null, limit: 1 };
    const asked = context.ref('events').ask('history', query);
    const { events } = await tolerateFailure(asked, () => ({ events: [] }));
    const [last] = events;
    if (!last) return this.assumed;
    // An earlier agent of this name: it was removed.
    if (last.type !== 'agent.state') return 'exited';
    const { state } = JSON.parse(last.data) as { state: AgentStateName };
    return state;
  }
}

/** The messages of an agent's state. */
export const agentStateHandlers = (context: Context, agent: AgentState): Handlers<AgentStateProtocol> => ({
  agentStatus: () => agent.status(),
  agentExplanation: () => agent.explain(),
  reportState: (message) => context.replyLater(agent.report(message)),
  terminalMoved: (message) => agent.onMoved(message),
});
