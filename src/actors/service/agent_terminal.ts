// The terminal of an agent as its viewers see it, docs/reference.md "Terminals": one per run, made for the
// first viewer.
import type { Context } from '../../runtime/actor.ts';
import { AGENT } from '../../settings/limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLog } from './service_log.ts';
import { type DrawScreen, SharedTerminal, type TerminalExit } from './shared_terminal.ts';
import { TerminalInput } from './terminal_input.ts';

/** Shared by the terminals of all services of a thread. */
export interface TerminalConfig {
  drawScreen: DrawScreen;
  viewersInThread: { count: number };
}

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
  /** Whether the log is being followed for the terminal. */
  private isFollowingLog = false;
  /** The last viewer of a run that has ended has left. */
  private onTold: () => void = () => {};

  constructor(context: Context, config: TerminalConfig, log: ServiceLog, effects: ServiceEffects) {
    this.context = context;
    this.config = config;
    this.log = log;
    this.effects = effects;
    context.scope.defer(() => this.current?.terminal.close());
  }

  /** `size` is the size of a terminal that nobody has resized. */
  attach(viewer: string, run: string, size: { cols: number; rows: number }): void {
    if (this.current?.run !== run) this.current = this.open(run, size);
    this.current.terminal.attach(viewer);
    this.followWhileWatched();
  }

  /** As `attach`, for the one viewer of a run that begins: it gets all output and no screen. */
  attachAll(viewer: string, run: string, size: { cols: number; rows: number }): void {
    this.current = this.open(run, size, true);
    this.current.terminal.attach(viewer);
    this.followWhileWatched();
  }

  detach(viewer: string): null {
    this.current?.input.leave(viewer);
    this.current?.terminal.detach(viewer);
    return null;
  }

  input(viewer: string, data: Uint8Array): null {
    this.current?.input.add(viewer, data);
    return null;
  }

  resize(cols: number, rows: number): null {
    this.current?.terminal.resize(cols, rows);
    return null;
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

  /** The run has ended. Viewers get its last output, then the exit; `onTold` is called after that. */
  onRunEnded(run: string, exit: TerminalExit, onTold: () => void = () => {}): void {
    this.onTold = onTold;
    if (this.current?.run === run) this.current.terminal.onExit(exit);
    if (!this.isFollowingLog) onTold();
  }

  private open(
    run: string,
    { cols, rows }: { cols: number; rows: number },
    isWhole = false,
  ): CurrentTerminal {
    const { config, context, log, effects } = this;
    const viewers = context.ref('viewers');
    const terminal = new SharedTerminal({
      ...config,
      cols,
      rows,
      read: (offset, limit) => log.read(offset, limit, run),
      end: () => log.end(),
      resize: (width, height) => effects.resize(run, width, height),
      viewers,
      clock: context.clock,
      onUnwatched: () => this.followWhileWatched(),
      isWhole,
      onDefect: (error) => context.crash(error),
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
