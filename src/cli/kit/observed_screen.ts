// The screen of an agent for somebody who only watches: docs/reference.md "Attach on the command line". A
// window of another size than the agent's terminal would wrap lines and count rows differently, and cannot
// change that size. So the output is drawn by an emulator of the terminal's own size, of which the window
// shows a part.
import { openTerminalScreen, type TerminalScreen } from '../../adapters/terminal_screen.ts';
import { frameChanges } from './frame_changes.ts';
import { sanitizeLine } from './sanitize.ts';
import { stdout, terminalSize } from './standard_streams.ts';

/** How long output is gathered before the window shows it. */
const FRAME_MS = 20;
/** The size of a terminal before the daemon has said it, and of a window that has none. */
const DEFAULT_SIZE = { columns: 80, rows: 24 };
const ERASE_LINE = '\x1b[2K';
const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
/** A character that the window's terminal takes for wider than the emulator must not reach the next row. */
const NO_WRAP = '\x1b[?7l';

export class ObservedScreen {
  private readonly terminal: Promise<TerminalScreen>;
  /** What has to be done by the emulator, in the order in which it came. */
  private work: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private lines: readonly string[] = [];
  private title = '';
  /** Whether there is output: what is said before it belongs on the screen that the window had. */
  private isBegun = false;
  private isClosed = false;
  private readonly onDrain = (): void => this.paintLater();

  constructor() {
    this.terminal = openTerminalScreen(DEFAULT_SIZE.columns, DEFAULT_SIZE.rows);
    this.take((terminal) => terminal.onBell(() => stdout().write('\x07')));
    stdout().on('drain', this.onDrain);
  }

  /** The agent's terminal has another size for the output that follows. */
  resize(cols: number, rows: number): void {
    this.take((terminal) => terminal.resize(cols, rows));
  }

  /** Resolves when the emulator has taken `bytes`. */
  show(bytes: Uint8Array): Promise<void> {
    this.isBegun = true;
    return this.take((terminal) => terminal.write(bytes));
  }

  /** Draws everything again, as the window has another size. */
  redraw(): void {
    this.lines = [];
    this.paintLater();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    stdout().off('drain', this.onDrain);
    this.terminal.then(
      (terminal) => terminal.close(),
      // It was never there, which the output that was shown has reported.
      () => undefined,
    );
  }

  private take(step: (terminal: TerminalScreen) => void | Promise<void>): Promise<void> {
    const done = this.work.then(async () => {
      await step(await this.terminal);
      this.paintLater();
    });
    this.work = done;
    // A failure is reported by the output that follows, which fails with it.
    done.catch(() => {});
    return done;
  }

  private paintLater(): void {
    if (!this.isBegun || this.isClosed || this.timer) return;
    this.timer = setTimeout(() => void this.paint(), FRAME_MS);
  }

  private async paint(): Promise<void> {
    const terminal = await this.terminal;
    this.timer = undefined;
    // A window that is slow gets fewer frames; `drain` asks for the next one.
    if (this.isClosed || stdout().writableNeedDrain) return;
    const { columns, rows } = terminalSize(stdout()) ?? DEFAULT_SIZE;
    const { lines, cursor, title } = terminal.part(columns, rows);
    const shown = Array.from({ length: rows }, (_, row) => ERASE_LINE + (lines[row] ?? ''));
    const start = this.lines.length === 0 ? NO_WRAP : '';
    const changes = frameChanges(this.lines, shown);
    this.lines = shown;
    const place = cursor ? `\x1b[${cursor.y + 1};${cursor.x + 1}H${SHOW_CURSOR}` : '';
    const named = title === this.title ? '' : `\x1b]0;${sanitizeLine(title)}\x07`;
    this.title = title;
    stdout().write(HIDE_CURSOR + start + named + changes + place);
  }
}
