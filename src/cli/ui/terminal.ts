// The terminal of the interface: raw mode, the alternate screen, its size, and how to restore it.
import { stdout, terminalSize } from '../kit/standard_streams.ts';
import { stopUntilContinued } from '../kit/stop_process.ts';
import { KeyReader, type TypedInput } from './keys.ts';
import type { Size } from './model.ts';

/** The alternate screen without a cursor, with bracketed paste and without line wrapping. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?7l\x1b[0m\x1b[2J';
const LEAVE = '\x1b[0m\x1b[?7h\x1b[?2004l\x1b[?25h\x1b[?1049l';
/** An escape that nothing follows within this time is the Escape key. */
const ESCAPE_MS = 50;
const FALLBACK: Size = { columns: 80, rows: 24 };

/** Makes Node measure the terminal: a stopped or background process gets no signal when the size changes. */
const measure = (): boolean => process.kill(process.pid, 'SIGWINCH');

export interface TerminalEvents {
  typed: (typed: readonly TypedInput[]) => void;
  /** Everything must be drawn again: the size has changed, or another program has used the screen. */
  resized: (size: Size) => void;
  /** The input has ended. */
  closed: () => void;
}

/** The user's terminal. stdin and stdout must both be terminals. */
export class UserTerminal {
  private readonly events: TerminalEvents;
  private readonly reader = new KeyReader();
  private escapeTimer: NodeJS.Timeout | undefined;
  private isEntered = false;
  private waiting: (() => void) | null = null;
  private readonly onData = (bytes: Buffer): void => this.read(bytes);
  private readonly onResize = (): void => this.events.resized(this.size);
  private readonly onEnd = (): void => this.events.closed();
  private readonly onStop = (): void => this.stopItself(process.pid);
  private readonly onContinue = (): void => this.redraw();

  constructor(events: TerminalEvents) {
    this.events = events;
  }

  get size(): Size {
    return terminalSize(stdout()) ?? FALLBACK;
  }

  /** Whether stdout still buffers earlier output. */
  get isBusy(): boolean {
    return stdout().writableNeedDrain;
  }

  /** Calls `go` once stdout accepts more; a later `go` replaces an earlier one. */
  whenReady(go: () => void): void {
    if (this.waiting === null) stdout().once('drain', () => this.drained());
    this.waiting = go;
  }

  private drained(): void {
    const go = this.waiting;
    this.waiting = null;
    go?.();
  }

  write(text: string): void {
    stdout().write(text);
  }

  /** Puts `text` on the terminal's clipboard, if the terminal allows that (OSC 52). */
  copy(text: string): void {
    this.write(`\x1b]52;c;${Buffer.from(text).toString('base64')}\x07`);
  }

  /** Takes over the screen and the keyboard. */
  enter(): void {
    if (this.isEntered) return;
    this.isEntered = true;
    const { stdin } = process;
    stdin.setRawMode(true);
    stdin.on('data', this.onData);
    stdin.on('end', this.onEnd);
    stdin.on('error', this.onEnd);
    stdin.resume();
    stdout().on('resize', this.onResize);
    process.on('SIGTSTP', this.onStop);
    process.on('SIGCONT', this.onContinue);
    this.write(ENTER);
    this.events.resized(this.size);
    measure();
  }

  /** Releases the keyboard; leaves the screen unchanged. */
  release(): void {
    clearTimeout(this.escapeTimer);
    const { stdin } = process;
    stdin.off('data', this.onData);
    stdin.off('end', this.onEnd);
    stdin.off('error', this.onEnd);
    stdout().off('resize', this.onResize);
    process.off('SIGTSTP', this.onStop);
    process.off('SIGCONT', this.onContinue);
    stdin.pause();
    this.isEntered = false;
  }

  /** Restores the terminal. */
  leave(): void {
    const { isEntered } = this;
    if (!isEntered) return;
    this.release();
    process.stdin.setRawMode(false);
    this.write(LEAVE);
  }

  /** Stops the whole job as Ctrl-Z does: a program that started this one stops too. */
  suspend(): void {
    this.stopItself(0);
  }

  /** Restores the terminal, stops `target` (0: the job), and takes the terminal again when it continues. */
  private stopItself(target: number): void {
    this.leave();
    void stopUntilContinued(target).then(() => this.enter());
  }

  /** Draws everything again. A shell may have changed the modes while this process was stopped. */
  redraw(): void {
    process.stdin.setRawMode(false);
    process.stdin.setRawMode(true);
    this.write(ENTER);
    this.events.resized(this.size);
    measure();
  }

  private read(bytes: Uint8Array): void {
    clearTimeout(this.escapeTimer);
    const typed = this.reader.read(bytes);
    if (typed.length > 0) this.events.typed(typed);
    if (!this.reader.isWaiting) return;
    this.escapeTimer = setTimeout(() => {
      const late = this.reader.flush();
      if (late.length > 0) this.events.typed(late);
    }, ESCAPE_MS);
  }
}
