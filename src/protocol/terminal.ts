// The terminal of an agent, docs/reference.md "Terminals": messages between the service that owns it and the
// viewers on the front, and the job that draws its screen.
import { AGENT } from '../settings/limits.ts';

/**
 * Handled by `service:<name>` of an agent. `viewer` is a name chosen by the front, unique over the front's
 * life.
 */
export interface TerminalProtocol {
  /**
   * From now on `viewers` gets the size, the screen and the output. `observes`: the program does not notice.
   * Fails not_running without a terminal.
   */
  attach(message: { viewer: string; observes?: boolean }): null;
  detach(message: { viewer: string }): null;
  /** Answered by `inputTaken` of `viewers` when the program has room for it. */
  input(message: { viewer: string; data: Uint8Array }): null;
  /** The last call wins; every viewer gets the new size. */
  resize(message: { cols: number; rows: number }): null;
  /** What a viewer would see now. Fails not_running, and daemon_busy when it takes too long to draw. */
  screen(message: { ansi: boolean }): ScreenReading;
  /**
   * Types for somebody who is not attached: `text`, then `keys`. Replies when the program has room for it.
   * Fails not_running, and daemon_busy when too much waits for the program.
   */
  type(message: { text: string; keys: string[] }): { bytes: number };
  /** The viewer has processed this many bytes of output. */
  ack(message: { viewer: string; bytes: number }): null;
}

/** Handled by the front. */
export interface TerminalViewersProtocol {
  /** First the current screen, then output as it arrives. */
  output(message: { viewer: string; bytes: Uint8Array }): null;
  /** The last `input` of the viewer has reached the terminal, or is lost with it. */
  inputTaken(message: { viewer: string }): null;
  size(message: { viewer: string; cols: number; rows: number }): null;
  /** The terminal dropped the viewer, through no fault of its own: it may attach again. */
  detached(message: { viewer: string }): null;
  /** The process has ended; nothing follows. */
  exit(message: { viewer: string; exitCode: number | null; signal: string | null }): null;
}

/**
 * What a viewer may do: docs/reference.md "Writers and observers". `shared`: it has not said, and types
 * beside all others.
 */
export type ViewerMode = 'shared' | 'write' | 'observe';

/** The close code of a viewer from which another one has taken over. */
export const TAKEN_OVER_CODE = 4001;

/**
 * The bytes that each of `viewers` viewers may leave unacknowledged, and the same for input that its program
 * has not read: docs/reference.md "Attach".
 */
export const viewerShare = (viewers: number): number =>
  Math.min(AGENT.maxUnacknowledgedBytes, Math.floor(AGENT.maxViewerBytes / Math.max(1, viewers)));

/** The size that a terminal has from the byte `at` on: of its log, or of the output that is drawn. */
export interface SizeMark {
  at: number;
  cols: number;
  rows: number;
}

/** The job that draws output on an empty screen. Plain data. */
export interface ScreenTask {
  /** At the first byte. */
  cols: number;
  rows: number;
  /** Later sizes, by the byte of `bytes` before which they begin; ascending. */
  resizes: readonly SizeMark[];
  /** Sequences that come before the output and count for nothing. */
  modes: Uint8Array;
  bytes: Uint8Array;
  /** The longest screen to return; scrollback that does not fit is left out. */
  maxBytes: number;
  /** Time after which the rest of the output is left to the viewers' own terminals. */
  budgetMs: number;
}

/** The job that reads a screen as text. */
export interface ReadScreenTask extends ScreenTask {
  /** Whether lines keep their colours, as SGR sequences. */
  ansi: boolean;
  /** Whether the lines that have left the screen upwards come first, as far as they are kept. */
  isWhole: boolean;
}

export interface ScreenReading {
  cols: number;
  rows: number;
  /** Column and row, from 0. */
  cursor: { x: number; y: number };
  /** Whether a full-screen program has the screen. */
  altScreen: boolean;
  /** What the program has last set as the title of its window; empty: nothing. */
  title: string;
  /** One for each row, without blanks at the end. */
  lines: string[];
}

export interface DrawnScreen {
  /** Makes a terminal of that size show the same; null: it would be too long. */
  screen: Uint8Array | null;
  /** How many of the bytes it shows. */
  drawnBytes: number;
}
