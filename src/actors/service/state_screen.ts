// What the screen of one run says by the rules of its agent. Each drawing begins where the last one ended: a
// few kilobytes represent the screen, and nothing follows the terminal in between.
import type { ReadStateTask, RuleSet, StateReading } from '../../protocol/screen_rules.ts';
import { type Context, tolerateFailure } from '../../runtime/actor.ts';
import { AGENT, AGENT_STATE } from '../../settings/agent_limits.ts';
import type { DrawableOutput } from './logged_screen.ts';
import type { ReadState, StateDrawings } from './state_drawings.ts';

/** Shared by the agents of a thread. */
export interface StateScreens {
  read: ReadState;
  drawings: StateDrawings;
  /** The rules for agents of a type; null: for those without one. They are read again when a run begins. */
  rules(type: string | null): Promise<RuleSet>;
}

export interface StateScreenOptions {
  context: Context;
  screens: StateScreens;
  agentType: string | null;
  /** The output since the logical offset `from`; null: everything a screen is drawn from. */
  output: (from: number | null) => DrawableOutput;
  /** See `LoggedScreen.pause`. */
  pause: (skipUpTo: number | null) => void;
  /** The title and notification, which are not part of the screen. */
  beside: () => { title: string; notification: string };
  /** See `TerminalSignals.titleMovedAt`. */
  titleMovedAt: () => number | null;
  onRead: () => void;
}

/** The last drawing of a screen. */
interface Drawn {
  reading: StateReading;
  /** Epoch milliseconds. */
  at: number;
  /** When the title that was examined had last moved. */
  titleMovedAt: number | null;
  /** Logical offset up to which it shows the output. */
  end: number;
}

export class StateScreen {
  /** The last drawing that shows what there was when the first one began; null: none does yet. */
  drawn: Drawn | null = null;
  /** The last drawing, from which the next one goes on. */
  private last: Drawn | null = null;
  /** The end of the output when the first drawing began. */
  private firstEnd: number | null = null;
  /** The rules of its agent, once they have been read. */
  rules: RuleSet | null = null;
  private readonly options: StateScreenOptions;
  /** Whether its screen has been drawn, or took too long. */
  isTried = false;
  private isOver = false;
  /** What is being drawn; `end`: up to which there was output. */
  private begun: Omit<Drawn, 'reading'> | null = null;
  /** Whether the last drawing failed, so that the next one is the second try. */
  private hasFailed = false;
  /** Cancels the next try after a failure; null: none is due. */
  private cancelRetry: (() => void) | null = null;

  constructor(options: StateScreenOptions) {
    this.options = options;
  }

  /** The output has moved or paused: the screen is drawn when its turn comes. */
  request(isMoving: boolean): void {
    if (!this.isOver) this.options.screens.drawings.request(this, isMoving, () => this.draw());
  }

  end(): void {
    this.isOver = true;
    this.cancelRetry?.();
    this.options.screens.drawings.cancel(this);
  }

  /** Resolves with the milliseconds it took. */
  private async draw(): Promise<number> {
    const { agentType, context, onRead, screens } = this.options;
    const { clock } = context;
    const began = clock.monotonic();
    try {
      this.rules ??= await screens.rules(agentType);
      const { rules } = this;
      if (this.isOver) return 0;
      const ms = await tolerateFailure(this.read(rules), () => clock.monotonic() - began);
      if (!this.isOver) onRead();
      return ms;
    } catch (error) {
      context.crash(error);
      return 0;
    }
  }

  /**
   * Resolves with the milliseconds it took. Fails when drawing takes too long, or did so shortly before. It
   * is then tried again later, because the program may print nothing more.
   */
  private async read(rules: RuleSet): Promise<number> {
    const { context, screens } = this.options;
    try {
      const reading = await screens.read(() => this.task(rules));
      this.take(reading);
      return reading.ms;
    } catch (error) {
      this.giveUp();
      this.cancelRetry ??= context.clock.after(AGENT.overrunPauseMs, () => {
        this.cancelRetry = null;
        this.request(false);
      });
      throw error;
    }
  }

  /** Fails daemon_busy while nothing is drawn, because drawing took too long. */
  private task(rules: RuleSet): ReadStateTask {
    const { last } = this;
    const { beside, context, output, titleMovedAt } = this.options;
    const snapshot = last?.reading.snapshot ?? null;
    let shown = output(last && snapshot ? last.end : null);
    // The snapshot does not fit a terminal of another size.
    const isSame = shown.cols === last?.reading.cols && shown.rows === last.reading.rows;
    if (snapshot && !isSame) shown = output(null);
    const { bytes, cols, end, modes, resizes, rows } = shown;
    this.begun = { at: context.clock.now(), titleMovedAt: titleMovedAt(), end };
    return {
      ...{ cols, rows, resizes, bytes, rules },
      ...{ maxBytes: AGENT.maxUnacknowledgedBytes, budgetMs: AGENT_STATE.drawBudgetMs },
      modes: snapshot && isSame ? snapshot : modes,
      ...beside(),
    };
  }

  private take(reading: StateReading): void {
    const { begun } = this;
    if (!begun) return;
    const { end } = begun;
    this.begun = null;
    this.hasFailed = false;
    this.last = { ...begun, reading, end: end - reading.undrawnBytes };
    this.firstEnd ??= end;
    const goesOn = reading.isCut && reading.snapshot !== null;
    // Until the first output is drawn, as after a restart, the screen is one of long ago.
    if (!goesOn || this.last.end >= this.firstEnd) {
      this.drawn = this.last;
      this.isTried = true;
    }
    if (goesOn) this.request(true);
  }

  /**
   * The drawing under way has failed. The same output gets a second try, as the machine may have stood still:
   * programs repaint only what changes, so what is skipped may never be shown.
   */
  private giveUp(): void {
    this.isTried = true;
    const { begun } = this;
    if (!begun) return;
    this.begun = null;
    this.options.pause(this.hasFailed ? begun.end : null);
    this.last = null;
    if (this.hasFailed) this.drawn = null;
    this.hasFailed = !this.hasFailed;
  }
}
