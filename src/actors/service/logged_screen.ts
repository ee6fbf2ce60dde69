// The screen of a terminal, drawn by a job from the end of its log. docs/reference.md "Terminal repaint".
import { fail } from '../../protocol/errors.ts';
import type { DrawnScreen, ReadScreenTask, ScreenReading, ScreenTask } from '../../protocol/terminal.ts';
import { type Clock, type Failure, isFailure, tolerateFailure } from '../../runtime/actor.ts';
import { AGENT, AGENT_STATE } from '../../settings/agent_limits.ts';
import type { LogChunk } from './service_log.ts';
import { TerminalModes } from './terminal_modes.ts';
import type { StretchSizes, TerminalSizes } from './terminal_sizes.ts';

/** A line begins within this many bytes, or none does. */
const LINE_SEARCH_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const RESET_SEQUENCE = Buffer.from('\x1bc');
/** Shown instead of a screen that could not be drawn. */
const UNDRAWN = Buffer.from('[berth: earlier output took too long to draw and is not shown]\r\n');

/**
 * Draws screens. `prepare` is called when the job's turn comes. Resolves with null when drawing takes longer
 * than its time limit allows. Fails `deadline` or `crashed` when it takes too much time or memory.
 */
export interface ScreenJobs {
  draw(prepare: () => ScreenTask): Promise<DrawnScreen | null>;
  read(prepare: () => ReadScreenTask): Promise<ScreenReading | null>;
}

/** The output from which a screen is drawn. `isWhole`: nothing of the run is older. */
type Output = Pick<LogChunk, 'bytes' | 'end'> & { isWhole: boolean };

/** Output to draw, with the sizes of its terminal and the mode sequences that precede it. */
export interface DrawableOutput extends Pick<LogChunk, 'bytes' | 'end'>, StretchSizes {
  modes: Uint8Array;
}

/**
 * A screen, and the log offset up to which it includes output. `isWhole`: it lacks nothing older. `hasRest`:
 * it lacks what follows the last line that has been drawn.
 */
interface FreshScreen {
  bytes: Uint8Array;
  position: number;
  isWhole: boolean;
  hasRest: boolean;
}

export interface LoggedScreenConfig {
  sizes: TerminalSizes;
  /** Reads this run's log from `offset` on. */
  read(offset: number, limit: number): LogChunk;
  /** The logical end offset of the log. */
  end(): number;
  screens: ScreenJobs;
  /** The most bytes that a viewer may receive at once. */
  maxBytes(): number;
  clock: Clock;
}

export class LoggedScreen {
  readonly modes = new TerminalModes();
  private readonly config: LoggedScreenConfig;
  /** Output before this log offset is not drawn again, because that took too long. */
  private drawableFrom = 0;
  /** Nothing is drawn before this monotonic time. */
  private drawableAt = 0;

  constructor(config: LoggedScreenConfig) {
    this.config = config;
  }

  /**
   * What a viewer would see now; `isWhole`: preceded by the scrollback. Fails daemon_busy when drawing takes
   * too long.
   */
  async read(ansi: boolean, isWhole = false): Promise<ScreenReading> {
    const tooLong = (): Failure => fail('daemon_busy', 'the screen takes too long to draw');
    if (!this.isDrawable()) throw tooLong();
    let { drawableFrom: end } = this;
    const { screens } = this.config;
    const prepare = (): ReadScreenTask => {
      const output = this.replay();
      end = output.end;
      return { ...this.taskFor(output), budgetMs: AGENT.readBudgetMs, ansi, isWhole };
    };
    const reading = await tolerateFailure(screens.read(prepare), () => {
      this.pause(end);
      return null;
    });
    if (!reading) throw tooLong();
    return reading;
  }

  /** Whether the program has set the private mode `mode`. */
  hasMode(mode: number): boolean {
    const { bytes, end } = this.replay();
    this.modes.note(bytes, end);
    return this.modes.has(mode);
  }

  /** The current screen, or a placeholder. Rejects only for defects. */
  async fresh(): Promise<FreshScreen> {
    const { screens } = this.config;
    let output: Output = { bytes: new Uint8Array(), end: this.config.end(), isWhole: false };
    const undrawn = (): FreshScreen => {
      const position = output.end;
      const bytes = Buffer.concat([RESET_SEQUENCE, this.modes.before(position), UNDRAWN]);
      return { bytes, position, isWhole: false, hasRest: false };
    };
    if (!this.isDrawable()) return undrawn();
    try {
      const drawn = await screens.draw(() => {
        output = this.replay();
        return this.taskFor(output);
      });
      if (!drawn) this.pause(output.end);
      if (!drawn?.screen) return undrawn();
      const position = output.end - (output.bytes.length - drawn.drawnBytes);
      return { bytes: drawn.screen, position, isWhole: output.isWhole, hasRest: position < output.end };
    } catch (error) {
      if (!isFailure(error)) throw error;
      this.pause(output.end);
      return undrawn();
    }
  }

  /**
   * The output since the log offset `from`, as far as a state depends on it; null: everything a screen is
   * drawn from. Fails daemon_busy after drawing has taken too long.
   */
  drawableOutput(from: number | null): DrawableOutput {
    if (!this.isDrawable()) throw fail('daemon_busy', 'the screen takes too long to draw');
    if (from === null) {
      const output = this.replay();
      return { ...this.taskFor(output), end: output.end };
    }
    const start = Math.max(from, this.drawableFrom, this.config.end() - AGENT_STATE.maxDrawnBytes);
    const { bytes, end } = this.config.read(start, AGENT_STATE.maxDrawnBytes);
    return { ...this.config.sizes.between(end - bytes.length, end), modes: new Uint8Array(), bytes, end };
  }

  private isDrawable(): boolean {
    return this.config.clock.monotonic() >= this.drawableAt;
  }

  /**
   * Drawing took too long: nothing is drawn for a while, and output before the log offset `skipUpTo` never
   * again; null: it may be.
   */
  pause(skipUpTo: number | null): void {
    this.drawableFrom = skipUpTo ?? this.drawableFrom;
    this.drawableAt = this.config.clock.monotonic() + AGENT.overrunPauseMs;
  }

  private taskFor({ bytes, end }: Pick<Output, 'bytes' | 'end'>): ScreenTask {
    this.modes.note(bytes, end);
    const start = end - bytes.length;
    const modes = this.modes.before(start);
    const sizes = this.config.sizes.between(start, end);
    // Output before a change of size cannot be left over: a viewer would show it at the later size.
    const budgetMs = sizes.resizes.length > 0 ? AGENT.readBudgetMs : AGENT.drawBudgetMs;
    return { ...sizes, modes, bytes, maxBytes: this.config.maxBytes(), budgetMs };
  }

  /**
   * The last `AGENT.replayBytes` of the output, from the start of a line, so that it does not begin within a
   * sequence or a character.
   */
  private replay(): Output {
    const end = this.config.end();
    const from = Math.max(this.drawableFrom, end - AGENT.replayBytes);
    const { bytes, start, end: readEnd } = this.config.read(from, AGENT.replayBytes);
    // Less than was read: the rest is of earlier runs, so this one begins here.
    const isWhole = start === 0 || bytes.length < readEnd - start;
    if (isWhole || from === this.drawableFrom) return { bytes, end: readEnd, isWhole };
    const newline = bytes.subarray(0, LINE_SEARCH_BYTES).indexOf(NEWLINE);
    return { bytes: bytes.subarray(newline + 1), end: readEnd, isWhole };
  }
}
