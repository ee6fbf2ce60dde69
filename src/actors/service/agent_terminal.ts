// The terminal of an agent as its viewers see it, docs/reference.md "Terminals": one per run, made for the
// first viewer.
import { openTerminalScreen } from '../../adapters/terminal_screen.ts';
import type { Context } from '../../runtime/actor.ts';
import { AGENT } from '../../settings/limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLog } from './service_log.ts';
import { SharedTerminal, type TerminalExit } from './shared_terminal.ts';

export class AgentTerminal {
  private readonly context: Context;
  private readonly log: ServiceLog;
  private readonly effects: ServiceEffects;
  private current: { run: string; terminal: SharedTerminal } | null = null;
  /** Whether the log is being followed for the terminal. */
  private isFollowingLog = false;

  constructor(context: Context, log: ServiceLog, effects: ServiceEffects) {
    this.context = context;
    this.log = log;
    this.effects = effects;
    context.scope.defer(() => this.current?.terminal.close());
  }

  /** `size` is the size of a terminal that nobody has resized. */
  attach(viewer: string, run: string, size: { cols: number; rows: number }): void {
    if (this.current?.run !== run) this.current = { run, terminal: this.open(run, size) };
    this.current.terminal.attach(viewer);
    this.followWhileWatched();
  }

  detach(viewer: string): null {
    this.current?.terminal.detach(viewer);
    this.followWhileWatched();
    return null;
  }

  input(data: Uint8Array): null {
    this.current?.terminal.input(data);
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

  /** The run has ended. Viewers get its last output, then the exit. */
  onRunEnded(run: string, exit: TerminalExit): void {
    if (this.current?.run !== run) return;
    this.current.terminal.onExit(exit);
    this.followWhileWatched();
  }

  private open(run: string, { cols, rows }: { cols: number; rows: number }): SharedTerminal {
    const { context, log, effects } = this;
    return new SharedTerminal({
      cols,
      rows,
      read: (offset, limit) => log.read(offset, limit, run),
      end: () => log.end(),
      write: (data) => effects.writeInput(run, data),
      resize: (width, height) => effects.resize(run, width, height),
      openScreen: openTerminalScreen,
      viewers: context.ref('viewers'),
      clock: context.clock,
      onDefect: (error) => context.crash(error),
    });
  }

  private followWhileWatched(): void {
    const watched = this.current?.terminal.hasViewers ?? false;
    if (watched === this.isFollowingLog) return;
    this.isFollowingLog = watched;
    this.log.follow(watched);
  }
}

/** The size of a terminal when the agent's spec gives none. */
export const DEFAULT_TERMINAL_SIZE = { cols: AGENT.defaultCols, rows: AGENT.defaultRows };
