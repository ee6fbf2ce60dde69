// What the viewers of one agent's terminal see. The log is the source: output is read from it by offset, so that nobody who
// looks can slow the program, and a viewer that falls behind skips to the screen as it is now.
import type { Screen } from '../../adapters/screen.ts';
import { AGENT } from '../../limits.ts';
import type { ViewersProtocol } from '../../protocol/terminal.ts';
import type { Clock, Ref } from '../../runtime/actor.ts';

const READ_BYTES = 64 * 1024;
/** A viewer that has fallen behind is sent a fresh screen once it has taken all but this much. */
const RESUME_BYTES = AGENT.viewerBytes / 4;
/** Between the two sizes that make a full-screen program paint anew. */
const REPAINT_MS = 40;

export interface TerminalIo {
  cols: number;
  rows: number;
  /** Bytes of this run's log from `offset` on. */
  read(offset: number, limit: number): { start: number; end: number; bytes: Uint8Array };
  /** The logical offset of the end of the log. */
  end(): number;
  write(data: Uint8Array): void;
  resize(cols: number, rows: number): void;
  open(cols: number, rows: number): Promise<Screen>;
  viewers: Ref<ViewersProtocol>;
  clock: Clock;
  /** Told of what the emulator threw: the terminal is of no use then. */
  onDefect(error: unknown): void;
}

interface Viewer {
  unacknowledged: number;
  /** It has everything up to `position`; false: it needs a fresh screen. */
  current: boolean;
}

export interface Exit {
  exitCode: number | null;
  signal: string | null;
}

/** Where a line begins after `offset`, so that what is read does not start inside a sequence or a character. */
function lineStart(span: { start: number; end: number; bytes: Uint8Array }): number {
  const newline = span.bytes.indexOf(0x0a);
  return newline < 0 ? span.start : span.start + newline + 1;
}

export class Terminal {
  private readonly io: TerminalIo;
  private readonly viewers = new Map<string, Viewer>();
  private screen: Screen | undefined;
  private opening = false;
  /** The emulator has taken the log up to here. */
  private position = 0;
  private pumping = false;
  /** Something has changed since the step under way has looked. */
  private again = false;
  private exit: Exit | undefined;
  private cols: number;
  private rows: number;

  constructor(io: TerminalIo) {
    this.io = io;
    this.cols = io.cols;
    this.rows = io.rows;
  }

  /** Somebody looks: the log must be followed. */
  get watched(): boolean {
    return this.viewers.size > 0;
  }

  attach(viewer: string): void {
    this.viewers.set(viewer, { unacknowledged: 0, current: false });
    this.io.viewers.tell('size', { viewer, cols: this.cols, rows: this.rows });
    this.repaint();
    if (this.screen) void this.pump();
    else if (!this.opening) void this.open();
  }

  detach(viewer: string): void {
    this.viewers.delete(viewer);
    if (this.viewers.size === 0) this.close();
  }

  input(data: Uint8Array): void {
    this.io.write(data);
  }

  resize(cols: number, rows: number): void {
    this.cols = cols;
    this.rows = rows;
    this.io.resize(cols, rows);
    this.screen?.resize(cols, rows);
    for (const viewer of this.viewers.keys()) this.io.viewers.tell('size', { viewer, cols, rows });
  }

  acknowledge(viewer: string, bytes: number): void {
    const seen = this.viewers.get(viewer);
    if (!seen) return;
    seen.unacknowledged = Math.max(0, seen.unacknowledged - bytes);
    if (!seen.current && seen.unacknowledged <= RESUME_BYTES) void this.pump();
  }

  /** The process has ended: what it printed last is shown, then the viewers are told. */
  end(exit: Exit): void {
    this.exit = exit;
    if (this.screen) void this.pump();
    else if (!this.opening) this.farewell();
  }

  /** Forgets the screen; it is built anew from the log when somebody looks again. Who looks now has to come again. */
  close(): void {
    for (const viewer of this.viewers.keys()) this.io.viewers.tell('gone', { viewer });
    this.viewers.clear();
    this.screen?.close();
    this.screen = undefined;
  }

  /** Reads on from the log, shows it, and brings viewers up to date that can take it. One at a time; nobody's call is lost. */
  async pump(): Promise<void> {
    this.again = true;
    if (this.pumping || !this.screen) return;
    this.pumping = true;
    try {
      for (let more = true; (more || this.again) && this.screen; ) {
        this.again = false;
        more = await this.step(this.screen);
      }
    } catch (error) {
      this.io.onDefect(error);
    } finally {
      this.pumping = false;
    }
  }

  private async open(): Promise<void> {
    this.opening = true;
    try {
      const screen = await this.io.open(this.cols, this.rows);
      this.opening = false;
      if (!this.watched) {
        screen.close();
        return;
      }
      this.screen = screen;
      this.skipTo(this.io.end());
      await this.pump();
    } catch (error) {
      this.opening = false;
      this.io.onDefect(error);
    }
  }

  /** The emulator begins with the last `screenBytes` before `end`, at the start of a line. */
  private skipTo(end: number): void {
    const from = end - AGENT.screenBytes;
    this.position = from <= 0 ? 0 : lineStart(this.io.read(from, READ_BYTES));
  }

  private async step(screen: Screen): Promise<boolean> {
    const end = this.io.end();
    if (end - this.position > 2 * AGENT.screenBytes) {
      // The program prints faster than it can be emulated: the latest screen is worth more than all of them, late.
      this.skipTo(end);
      for (const viewer of this.viewers.values()) viewer.current = false;
    }
    const before = this.position;
    const span = this.io.read(before, READ_BYTES);
    if (span.bytes.length > 0) await screen.write(span.bytes);
    if (screen !== this.screen) return false;
    this.position = span.end;
    let fresh: Uint8Array | undefined;
    for (const [name, viewer] of this.viewers) {
      if (viewer.current && viewer.unacknowledged + span.bytes.length > AGENT.viewerBytes)
        viewer.current = false;
      if (viewer.current) this.show(name, viewer, span.bytes);
      else if (viewer.unacknowledged <= RESUME_BYTES) {
        fresh ??= screen.draw();
        viewer.current = true;
        this.show(name, viewer, fresh);
      }
    }
    // A step that got nowhere is the last one: what comes later is told as growth.
    const more = this.position > before && this.position < this.io.end();
    if (!more && this.exit) this.farewell();
    return more;
  }

  private show(viewer: string, state: Viewer, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    state.unacknowledged += bytes.length;
    this.io.viewers.tell('output', { viewer, bytes });
  }

  private farewell(): void {
    const exit = this.exit ?? { exitCode: null, signal: null };
    for (const viewer of this.viewers.keys()) this.io.viewers.tell('exit', { viewer, ...exit });
    this.viewers.clear();
    this.close();
  }

  /** A full-screen program paints its screen when the size changes: so it changes for a moment. */
  private repaint(): void {
    if (this.rows < 2) return;
    this.io.resize(this.cols, this.rows - 1);
    this.io.clock.after(REPAINT_MS, () => this.io.resize(this.cols, this.rows));
  }
}
