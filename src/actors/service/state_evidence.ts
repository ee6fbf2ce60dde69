// All evidence of what the agent of one run is doing: its terminal, its screen, its hook, and typed input.

import type { AuthorityView, HookWord, StateExplanation } from '../../protocol/agent_state.ts';
import { type AgentType, codingAgent } from '../../protocol/agent_types.ts';
import type { Context } from '../../runtime/actor.ts';
import type { AgentTerminal } from './agent_terminal.ts';
import type { ServiceEffects } from './effects.ts';
import type { LiveRun } from './run.ts';
import type { ServiceLog } from './service_log.ts';
import { StateScreen, type StateScreens } from './state_screen.ts';
import { type DecidedState, decideState, SPEAKERS, type StateFacts, wordsOf } from './state_words.ts';
import type { TerminalSize } from './terminal_sizes.ts';
import { WatchedTerminal } from './watched_terminal.ts';

export interface StateEvidenceOptions {
  context: Context;
  effects: ServiceEffects;
  log: ServiceLog;
  terminal: AgentTerminal;
  screens: StateScreens;
  agentType: AgentType | null;
  size: TerminalSize;
  run: LiveRun;
  /** Called when there is something new. */
  onChanged: () => void;
}

export class StateEvidence {
  readonly run: LiveRun;
  readonly watched: WatchedTerminal;
  private readonly options: StateEvidenceOptions;
  private readonly screen: StateScreen;
  private typedAt: number | null;
  private hasShown = false;

  constructor(options: StateEvidenceOptions) {
    const { agentType, context, effects, log, onChanged, run, screens, size, terminal } = options;
    this.options = options;
    this.run = run;
    this.typedAt = run.metadata.typedAt ?? null;
    this.screen = new StateScreen({
      ...{ context, screens, agentType },
      output: (from) => terminal.drawableOutput(run.id, size, from),
      pause: (skipUpTo) => terminal.pauseDrawing(run.id, skipUpTo),
      beside: () => {
        const { notification, title } = this.watched.reading.signals;
        return { title, notification: notification?.text ?? '' };
      },
      titleMovedAt: () => this.watched.reading.signals.titleMovedAt ?? null,
      onRead: () => {
        this.hasShown ||= this.screen.drawn?.reading.isBlank === false;
        onChanged();
      },
    });
    const onReading = (): void => {
      const { isMoving, lastOutputAt } = this.watched.reading;
      if (lastOutputAt !== null) this.screen.request(isMoving);
      onChanged();
    };
    this.watched = new WatchedTerminal({ context, effects, log, run, onReading });
  }

  /** Whether enough is known to tell a state. A screen that was never drawn might show a question. */
  get isKnown(): boolean {
    const { isKnown, reading } = this.watched;
    return isKnown && (reading.lastOutputAt === null || this.screen.isTried);
  }

  /** The lines of the question that its screen shows. */
  get question(): string[] {
    const { hook } = this.run.metadata;
    const shown = this.screen.drawn?.reading.question ?? [];
    if (shown.length > 0) return shown;
    return hook?.state === 'blocked' && hook.message !== null ? [hook.message] : [];
  }

  /** Empty: none. */
  get title(): string {
    return this.watched.reading.signals.title || (this.screen.drawn?.reading.title ?? '');
  }

  /** Someone has typed into the terminal. */
  onTyped(): void {
    this.typedAt = this.options.context.clock.now();
  }

  /**
   * Keeps in the metadata of the run when somebody has typed, if that may be an answer. Returns whether it
   * did, so that a later daemon must be told. The host may report the question only after the answer.
   */
  takeAnswer(): boolean {
    const { metadata } = this.run;
    const { typedAt } = this;
    const { hook, typedAt: kept = 0 } = metadata;
    const asked = [this.watched.reading.signals.notification, hook?.state === 'blocked' ? hook : null];
    if (
      typedAt === null ||
      !asked.some((question) => question && question.at > kept && typedAt >= question.at)
    )
      return false;
    metadata.typedAt = typedAt;
    return true;
  }

  /** Its own hook has reported its state. */
  onHook(hook: HookWord): void {
    this.run.metadata.hook = hook;
  }

  decide(isStarting: boolean): DecidedState {
    return decideState(this.facts(isStarting));
  }

  /** What each source says, and on what basis. */
  explain(isStarting: boolean): Omit<StateExplanation, 'status'> {
    const facts = this.facts(isStarting);
    const words = wordsOf(facts);
    const { hook, terminal } = facts;
    const { at = null, reading = null } = this.screen.drawn ?? {};
    const said = {
      hook: hook && { at: hook.at, file: null, lines: hook.message === null ? [] : [hook.message] },
      osc: reading?.beside && { at, ...reading.beside },
      screen: reading?.screen && { at, ...reading.screen },
    };
    const authorities = SPEAKERS.map((authority): AuthorityView => {
      const { state = null, rule = null, at: toldAt = null } = words[authority] ?? {};
      const { at: saidAt = toldAt, file = null, lines = [] } = said[authority] ?? {};
      return { authority, state, rule, at: saidAt, file, lines };
    });
    const { state, reason } = decideState({ ...facts, hook: null, drawn: null });
    const isSaid = reason.authority === 'output';
    const output = { state: isSaid ? state : null, rule: isSaid ? reason.rule : null };
    const last: AuthorityView = {
      ...{ authority: 'output', ...output, at: terminal.lastOutputAt },
      ...{ file: null, lines: [] },
    };
    return { authorities: [...authorities, last], drawnAt: at };
  }

  end(): void {
    this.watched.end();
    this.screen.end();
  }

  private facts(isStarting: boolean): StateFacts {
    return {
      ...{ now: this.options.context.clock.now(), isStarting, startedAt: this.run.startedAt },
      ...{ terminal: this.watched.reading, typedAt: this.typedAt, drawn: this.screen.drawn },
      hasRecordedRules: codingAgent(this.options.agentType)?.rules === 'recorded',
      hasShown: this.hasShown,
      hook: this.run.metadata.hook ?? null,
    };
  }
}
