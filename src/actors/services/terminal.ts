// The terminal of an agent as its viewers see it, docs/reference.md "Terminals": one for each run, made when
// somebody first looks.
import { openScreen } from '../../adapters/screen.ts';
import { AGENT } from '../../limits.ts';
import type { ViewersProtocol } from '../../protocol/terminal.ts';
import type { Context } from '../../runtime/actor.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLog } from './log.ts';
import { type Exit, Terminal } from './viewers.ts';

export class ServiceTerminal {
  private readonly context: Context;
  private readonly log: ServiceLog;
  private readonly effects: ServiceEffects;
  private shown: { run: string; terminal: Terminal } | null = null;
  /** Whether the log is followed for it. */
  private follows = false;

  constructor(context: Context, log: ServiceLog, effects: ServiceEffects) {
    this.context = context;
    this.log = log;
    this.effects = effects;
    context.scope.defer(() => this.shown?.terminal.close());
  }

  /** `size` is that of a run whose terminal nobody has resized. */
  attach(viewer: string, run: string, size: { cols: number; rows: number }): void {
    if (this.shown?.run !== run) this.shown = { run, terminal: this.open(run, size) };
    this.shown.terminal.attach(viewer);
    this.followWhileWatched();
  }

  detach(viewer: string): null {
    this.shown?.terminal.detach(viewer);
    this.followWhileWatched();
    return null;
  }

  input(data: Uint8Array): null {
    this.shown?.terminal.input(data);
    return null;
  }

  resize(cols: number, rows: number): null {
    this.shown?.terminal.resize(cols, rows);
    return null;
  }

  acknowledge(viewer: string, bytes: number): null {
    this.shown?.terminal.acknowledge(viewer, bytes);
    return null;
  }

  /** The log has grown. */
  grew(): null {
    void this.shown?.terminal.pump();
    return null;
  }

  /** The run has ended: viewers see what it printed last, and then how it ended. */
  end(run: string, exit: Exit): void {
    if (this.shown?.run !== run) return;
    this.shown.terminal.end(exit);
    this.followWhileWatched();
  }

  private open(run: string, { cols, rows }: { cols: number; rows: number }): Terminal {
    const { context, log, effects } = this;
    return new Terminal({
      cols,
      rows,
      read: (offset, limit) => log.read(offset, limit, run),
      end: () => log.end(),
      write: (data) => effects.write(run, data),
      resize: (width, height) => effects.resize(run, width, height),
      open: openScreen,
      viewers: context.ref<ViewersProtocol>('viewers'),
      clock: context.clock,
      onDefect: (error) => context.crash(error),
    });
  }

  private followWhileWatched(): void {
    const watched = this.shown?.terminal.watched ?? false;
    if (watched === this.follows) return;
    this.follows = watched;
    this.log.follow(watched);
  }
}

/** The size of a terminal whose agent says none. */
export const USUAL_SIZE = { cols: AGENT.cols, rows: AGENT.rows };
