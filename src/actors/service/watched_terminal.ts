// The terminal output of one run, as the host sees it. A host of the previous version cannot report it, so
// the growth of the log is used instead.
import type { TerminalReading } from '../../protocol/agent_state.ts';
import { type Context, isFailure } from '../../runtime/actor.ts';
import { AGENT_STATE } from '../../settings/agent_limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { LiveRun } from './run.ts';
import type { ServiceLog } from './service_log.ts';

export interface WatchedTerminalOptions {
  context: Context;
  effects: Pick<ServiceEffects, 'watchTerminal'>;
  log: Pick<ServiceLog, 'watch'>;
  run: LiveRun;
  /** Called when the output has moved or paused. */
  onReading: () => void;
}

/** The reading of a terminal that has printed nothing. */
const NO_READING: TerminalReading = {
  lastOutputAt: null,
  isMoving: false,
  signals: { title: '', progress: null, notification: null },
};

export class WatchedTerminal {
  readonly run: LiveRun;
  reading: TerminalReading = NO_READING;
  /** Whether the host has reported the earlier output. */
  isKnown = false;
  private readonly options: WatchedTerminalOptions;
  private isOver = false;
  private cancelPause = (): void => {};
  private endLogWatch: (() => void) | null = null;

  constructor(options: WatchedTerminalOptions) {
    this.options = options;
    this.run = options.run;
    this.ask();
  }

  /** Asks the host, which may have restarted, for notifications and for what it knows. */
  ask(): void {
    const { context, effects, run } = this.options;
    effects.watchTerminal(run.id).then(
      (reading) => {
        this.close();
        this.take(reading);
      },
      (error: unknown) => {
        if (isFailure(error)) this.watchLog();
        else context.crash(error);
      },
    );
  }

  /** A notification from the host. */
  take(reading: TerminalReading): void {
    if (this.isOver) return;
    this.isKnown = true;
    this.reading = reading;
    this.options.onReading();
  }

  /** The run is over, or its state is not needed any more. */
  end(): void {
    this.isOver = true;
    this.close();
  }

  private close(): void {
    this.cancelPause();
    this.endLogWatch?.();
    this.endLogWatch = null;
  }

  private watchLog(): void {
    if (this.isOver || this.endLogWatch) return;
    const { clock } = this.options.context;
    this.endLogWatch = this.options.log.watch(() => {
      this.cancelPause();
      const moved = { ...this.reading, lastOutputAt: clock.now() };
      this.cancelPause = clock.after(AGENT_STATE.pauseMs, () => this.take({ ...moved, isMoving: false }));
      if (!this.reading.isMoving) this.take({ ...moved, isMoving: true });
    });
    this.take(this.reading);
  }
}
