// The terminal of one agent as its viewers see it. Output is read from the log by offset, so no viewer can
// slow the program down, and a viewer that falls behind skips to the current screen.
import type { TerminalScreen } from '../../adapters/terminal_screen.ts';
import type { TerminalViewersProtocol } from '../../protocol/terminal.ts';
import type { Clock, Ref } from '../../runtime/actor.ts';
import { AGENT } from '../../settings/limits.ts';

const READ_BYTES = 64 * 1024;
/** A viewer that has fallen behind gets a fresh screen once its unacknowledged bytes drop to this. */
const RESUME_BYTES = AGENT.maxUnacknowledgedBytes / 4;
/** Pause between the two size changes that make a full-screen program repaint. */
const REPAINT_MS = 40;

export interface SharedTerminalOptions {
  cols: number;
  rows: number;
  /** Reads this run's log from `offset` on. */
  read(offset: number, limit: number): { start: number; end: number; bytes: Uint8Array };
  /** The logical end offset of the log. */
  end(): number;
  write(data: Uint8Array): void;
  resize(cols: number, rows: number): void;
  openScreen(cols: number, rows: number): Promise<TerminalScreen>;
  viewers: Ref<TerminalViewersProtocol>;
  clock: Clock;
  /** Called with an exception of the emulator, after which the terminal is unusable. */
  onDefect(error: unknown): void;
}

interface Viewer {
  unacknowledged: number;
  /** True: it has everything up to `position`. False: it needs a fresh screen. */
  isCurrent: boolean;
}

export interface TerminalExit {
  exitCode: number | null;
  signal: string | null;
}

/** The start of the next line in `span`, so that a read does not begin inside a sequence or a character. */
function lineStart(span: { start: number; end: number; bytes: Uint8Array }): number {
  const newline = span.bytes.indexOf(0x0a);
  return newline < 0 ? span.start : span.start + newline + 1;
}

export class SharedTerminal {
  private readonly options: SharedTerminalOptions;
  private readonly viewers = new Map<string, Viewer>();
  private screen: TerminalScreen | undefined;
  private opening = false;
  /** Log offset up to which the emulator has been fed. */
  private position = 0;
  private pumping = false;
  /** Something has changed since the current step began. */
  private isPumpDue = false;
  private exit: TerminalExit | undefined;
  private cols: number;
  private rows: number;

  constructor(options: SharedTerminalOptions) {
    this.options = options;
    this.cols = options.cols;
    this.rows = options.rows;
  }

  /** Whether anyone is attached, so that the log must be followed. */
  get hasViewers(): boolean {
    return this.viewers.size > 0;
  }

  attach(viewer: string): void {
    this.viewers.set(viewer, { unacknowledged: 0, isCurrent: false });
    this.options.viewers.tell('size', { viewer, cols: this.cols, rows: this.rows });
    this.repaint();
    if (this.screen) void this.pump();
    else if (!this.opening) void this.open();
  }

  detach(viewer: string): void {
    this.viewers.delete(viewer);
    if (this.viewers.size === 0) this.close();
  }

  input(data: Uint8Array): void {
    this.options.write(data);
  }

  resize(cols: number, rows: number): void {
    this.cols = cols;
    this.rows = rows;
    this.options.resize(cols, rows);
    this.screen?.resize(cols, rows);
    for (const viewer of this.viewers.keys()) this.options.viewers.tell('size', { viewer, cols, rows });
  }

  acknowledge(viewer: string, bytes: number): void {
    const seen = this.viewers.get(viewer);
    if (!seen) return;
    seen.unacknowledged = Math.max(0, seen.unacknowledged - bytes);
    if (!seen.isCurrent && seen.unacknowledged <= RESUME_BYTES) void this.pump();
  }

  /** The process has ended. Viewers get its last output, then the exit. */
  onExit(exit: TerminalExit): void {
    this.exit = exit;
    if (this.screen) void this.pump();
    else if (!this.opening) this.sendExit();
  }

  /** Drops the screen and detaches all viewers. The next viewer gets a screen rebuilt from the log. */
  close(): void {
    for (const viewer of this.viewers.keys()) this.options.viewers.tell('detached', { viewer });
    this.viewers.clear();
    this.screen?.close();
    this.screen = undefined;
  }

  /** Sends new output to every viewer that can accept it. One pass at a time; no call is lost. */
  async pump(): Promise<void> {
    this.isPumpDue = true;
    if (this.pumping || !this.screen) return;
    this.pumping = true;
    try {
      for (let more = true; (more || this.isPumpDue) && this.screen; ) {
        this.isPumpDue = false;
        more = await this.step(this.screen);
      }
    } catch (error) {
      this.options.onDefect(error);
    } finally {
      this.pumping = false;
    }
  }

  private async open(): Promise<void> {
    this.opening = true;
    try {
      const screen = await this.options.openScreen(this.cols, this.rows);
      this.opening = false;
      if (!this.hasViewers) {
        screen.close();
        return;
      }
      this.screen = screen;
      this.skipTo(this.options.end());
      await this.pump();
    } catch (error) {
      this.opening = false;
      this.options.onDefect(error);
    }
  }

  /** Starts the emulator at the last `AGENT.replayBytes` before `end`, at the start of a line. */
  private skipTo(end: number): void {
    const from = end - AGENT.replayBytes;
    this.position = from <= 0 ? 0 : lineStart(this.options.read(from, READ_BYTES));
  }

  private async step(screen: TerminalScreen): Promise<boolean> {
    const end = this.options.end();
    if (end - this.position > 2 * AGENT.replayBytes) {
      // The program prints faster than the emulator can follow: skip to the latest screen.
      this.skipTo(end);
      for (const viewer of this.viewers.values()) viewer.isCurrent = false;
    }
    const before = this.position;
    const span = this.options.read(before, READ_BYTES);
    if (span.bytes.length > 0) await screen.write(span.bytes);
    if (screen !== this.screen) return false;
    this.position = span.end;
    let fresh: Uint8Array | undefined;
    for (const [name, viewer] of this.viewers) {
      if (viewer.isCurrent && viewer.unacknowledged + span.bytes.length > AGENT.maxUnacknowledgedBytes)
        viewer.isCurrent = false;
      if (viewer.isCurrent) this.send(name, viewer, span.bytes);
      else if (viewer.unacknowledged <= RESUME_BYTES) {
        fresh ??= screen.snapshot();
        viewer.isCurrent = true;
        this.send(name, viewer, fresh);
      }
    }
    // A step without progress is the last one: later output arrives as a growth notice.
    const more = this.position > before && this.position < this.options.end();
    if (!more && this.exit) this.sendExit();
    return more;
  }

  private send(viewer: string, state: Viewer, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    state.unacknowledged += bytes.length;
    this.options.viewers.tell('output', { viewer, bytes });
  }

  private sendExit(): void {
    const exit = this.exit ?? { exitCode: null, signal: null };
    for (const viewer of this.viewers.keys()) this.options.viewers.tell('exit', { viewer, ...exit });
    this.viewers.clear();
    this.close();
  }

  /** Changes the size for a moment, because a full-screen program repaints when its size changes. */
  private repaint(): void {
    if (this.rows < 2) return;
    this.options.resize(this.cols, this.rows - 1);
    this.options.clock.after(REPAINT_MS, () => this.options.resize(this.cols, this.rows));
  }
}
