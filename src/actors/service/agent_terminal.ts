// The terminal of an agent as its viewers see it, docs/reference.md "Terminals": one per run, made for the
// first viewer.
import type { KeptScreen } from '../../protocol/agent_sessions.ts';
import { fail } from '../../protocol/errors.ts';
import type { ScreenReading, SizeMark, TerminalProtocol } from '../../protocol/terminal.ts';
import { isCursorKey, keyBytes } from '../../protocol/terminal_keys.ts';
import type { Context, MessageOf, ReplyOf } from '../../runtime/actor.ts';
import { AGENT } from '../../settings/agent_limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { DrawableOutput, ScreenJobs } from './logged_screen.ts';
import type { ServiceLog } from './service_log.ts';
import { SharedTerminal, type SharedTerminalOptions, type TerminalExit } from './shared_terminal.ts';
import { TerminalInput } from './terminal_input.ts';
import type { TerminalSize } from './terminal_sizes.ts';

/** Shared by the terminals of all services of a thread. */
export interface TerminalConfig {
  screens: ScreenJobs;
  viewersInThread: { count: number };
}

/** The private terminal mode in which cursor keys send other sequences. */
const CURSOR_KEYS_MODE = 1;

interface CurrentTerminal {
  run: string;
  terminal: SharedTerminal;
  input: TerminalInput;
}

export class AgentTerminal {
  private readonly context: Context;
  private readonly config: TerminalConfig;
  private readonly log: ServiceLog;
  private readonly effects: ServiceEffects;
  private current: CurrentTerminal | null = null;
  /** Fulfilled once all attempts to open the terminal of a process that is being started are over. */
  private opening: Promise<unknown> | null = null;
  /** Whether the log is being followed for the terminal. */
  private isFollowingLog = false;
  /** Called when the last viewer of an ended run has left. */
  private onTold: () => void = () => {};
  /** Called after viewers have come or left. */
  onViewers: () => void = () => {};
  /** Called with the sizes that the terminal of a run has had. */
  onSizes: (run: string, marks: readonly SizeMark[]) => void = () => {};
  /** Called when somebody types. */
  onTyped: () => void = () => {};

  constructor(context: Context, config: TerminalConfig, log: ServiceLog, effects: ServiceEffects) {
    this.context = context;
    this.config = config;
    this.log = log;
    this.effects = effects;
    context.scope.defer(() => this.current?.terminal.close());
  }

  /** See `LoggedScreen.drawableOutput`. */
  drawableOutput(run: string, size: TerminalSize, from: number | null): DrawableOutput {
    return this.of(run, size).terminal.screen.drawableOutput(from);
  }

  /** See `LoggedScreen.pause`. */
  pauseDrawing(run: string, skipUpTo: number | null): void {
    if (this.current?.run === run) this.current.terminal.screen.pause(skipUpTo);
  }

  /** The number of viewers. */
  get viewerCount(): number {
    return this.current?.terminal.viewerCount ?? 0;
  }

  /** Returns `attempt`. What viewers do until it has settled waits for it: see `whenOpen`. */
  openWith<R>(attempt: Promise<R>): Promise<R> {
    const opening = Promise.allSettled([this.opening, attempt]);
    this.opening = opening;
    void opening.then(() => {
      if (this.opening === opening) this.opening = null;
    });
    return attempt;
  }

  /**
   * Calls `act` when nobody waits for the terminal. A viewer sends its size and keys as soon as its socket is
   * open, and may leave before its process has been started.
   */
  whenOpen(act: () => void): null {
    const { context, opening } = this;
    if (opening) opening.then(act).catch((error: unknown) => context.crash(error));
    else act();
    return null;
  }

  attach(viewer: string, run: string, size: TerminalSize, observes: boolean): void {
    this.of(run, size).terminal.attach(viewer, observes);
    this.followWhileWatched();
    this.onViewers();
  }

  /**
   * What a viewer of `run` would see now; `isWhole`: preceded by the scrollback. Fails daemon_busy when it
   * takes too long to draw.
   */
  screen(run: string, size: TerminalSize, ansi: boolean, isWhole = false): Promise<ScreenReading> {
    return this.of(run, size).terminal.screen.read(ansi, isWhole);
  }

  /**
   * The scrollback and the screen of the run whose terminal was used last, also after its end. Fails
   * not_running for another run.
   */
  async latestScreen(run: string): Promise<ScreenReading> {
    if (this.current?.run !== run) throw fail('not_running', 'another run has the terminal');
    return this.current.terminal.screen.read(false, true);
  }

  /** Types bytes as they are. Resolves when the program has room. Fails daemon_busy. */
  async typeBytes(run: string, size: TerminalSize, data: Uint8Array): Promise<void> {
    await this.of(run, size).input.type(data);
  }

  /** The current screen of `run`, in a form that can be drawn later. */
  keptScreen(run: string, size: TerminalSize): KeptScreen {
    const { terminal } = this.of(run, size);
    return { ...terminal.size, sizes: terminal.sizeMarks, end: this.log.end() };
  }

  /** What a viewer of `run` saw at the end of `screen`. Fails daemon_busy when it takes too long to draw. */
  screenThen(run: string, screen: KeptScreen, ansi: boolean): Promise<ScreenReading> {
    const { cols, rows, end, sizes: marks } = screen;
    const read: SharedTerminalOptions['read'] = (offset, limit) =>
      this.log.read(offset, Math.min(limit, Math.max(0, end - offset)), run);
    return this.open(run, { cols, rows, marks }, { end: () => end, read }).terminal.screen.read(ansi);
  }

  /** Types `text`, then `keys`. Resolves when the program has room. Fails daemon_busy, and invalid_spec. */
  async type(
    run: string,
    size: TerminalSize,
    { text, keys }: MessageOf<TerminalProtocol, 'type'>,
  ): Promise<ReplyOf<TerminalProtocol, 'type'>> {
    const { terminal, input } = this.of(run, size);
    const isApplication = keys.some(isCursorKey) && terminal.screen.hasMode(CURSOR_KEYS_MODE);
    const typed = keys.map((key) => keyBytes(key, isApplication));
    if (typed.includes(null)) throw fail('invalid_spec', `unknown key ${keys[typed.indexOf(null)]}`);
    const data = Buffer.from(text + typed.join(''));
    this.onTyped();
    await input.type(data);
    return { bytes: data.length };
  }

  /** Like `attach`, for the only viewer of a run that is about to begin: it gets all output and no screen. */
  attachAll(viewer: string, run: string, size: TerminalSize): void {
    this.current = this.open(run, size, { isWhole: true });
    this.current.terminal.attach(viewer);
    this.followWhileWatched();
  }

  detach(viewer: string): null {
    this.current?.input.leave(viewer);
    this.current?.terminal.detach(viewer);
    this.onViewers();
    return null;
  }

  input(viewer: string, data: Uint8Array): null {
    // A copy, because the frame does not belong to us.
    const typed = Uint8Array.from(data);
    return this.whenOpen(() => {
      this.current?.input.add(viewer, typed);
      this.onTyped();
    });
  }

  resize(cols: number, rows: number): null {
    return this.whenOpen(() => this.current?.terminal.resize(cols, rows));
  }

  acknowledge(viewer: string, bytes: number): null {
    this.current?.terminal.acknowledge(viewer, bytes);
    return null;
  }

  /** The log has grown. */
  onLogGrowth(): null {
    void this.current?.terminal.pump();
    return null;
  }

  /** The run has ended. Viewers get its last output, then the exit; `onTold` is called afterwards. */
  onRunEnded(run: string, exit: TerminalExit, onTold: () => void = () => {}): void {
    this.onTold = onTold;
    if (this.current?.run === run) this.current.terminal.onExit(exit);
    if (!this.isFollowingLog) onTold();
  }

  private of(run: string, size: TerminalSize): CurrentTerminal {
    if (this.current?.run !== run) this.current = this.open(run, size);
    return this.current;
  }

  private open(
    run: string,
    size: TerminalSize,
    special: Partial<Pick<SharedTerminalOptions, 'end' | 'isWhole' | 'read'>> = {},
  ): CurrentTerminal {
    const { config, context, log, effects } = this;
    const viewers = context.ref('viewers');
    const terminal = new SharedTerminal({
      ...config,
      size,
      read: (offset, limit) => log.read(offset, limit, run),
      end: () => log.end(),
      resize: (width, height) => effects.resize(run, width, height),
      onSizes: (marks) => this.onSizes(run, marks),
      viewers,
      clock: context.clock,
      onUnwatched: () => this.followWhileWatched(),
      onDefect: (error) => context.crash(error),
      ...special,
    });
    const input = new TerminalInput({
      write: (data) => effects.writeInput(run, data),
      onTaken: (viewer) => viewers.tell('inputTaken', { viewer }),
    });
    return { run, terminal, input };
  }

  private followWhileWatched(): void {
    const watched = this.current?.terminal.hasViewers ?? false;
    if (watched === this.isFollowingLog) return;
    this.isFollowingLog = watched;
    this.log.follow(watched);
    if (!watched) this.onTold();
  }
}

/** The size of a terminal when the agent's spec gives none. */
export const DEFAULT_TERMINAL_SIZE = { cols: AGENT.defaultCols, rows: AGENT.defaultRows };
