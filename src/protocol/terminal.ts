// The terminal of an agent, docs/reference.md "Terminals": messages between the service that owns it and the
// viewers on the front, and the job that draws its screen.
import { AGENT } from '../settings/agent_limits.ts';

/** Handled by `service:<name>` of an agent. `viewer` is a name chosen by the front and never reused by it. */
export interface TerminalProtocol {
  /**
   * From now on `viewers` gets the size, the screen and the output. `observes`: the program must not notice.
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
   * Types for a client that is not attached: `text`, then `keys`. Replies when the program has room for it.
   * Fails not_running, and daemon_busy when too much input is already waiting.
   */
  type(message: { text: string; keys: string[] }): { bytes: number };
  /** The viewer has processed this many bytes of output. */
  ack(message: { viewer: string; bytes: number }): null;
}

/** Handled by the front. */
export interface TerminalViewersProtocol {
  /** First the current screen, then output as it arrives. */
  output(message: { viewer: string; bytes: Uint8Array }): null;
  /** An `input` of the viewer, in their order, has reached the terminal. */
  inputTaken(message: { viewer: string }): null;
  size(message: { viewer: string; cols: number; rows: number }): null;
  /** The terminal dropped the viewer through no fault of the viewer, which may attach again. */
  detached(message: { viewer: string }): null;
  /** The process has ended; nothing follows. */
  exit(message: { viewer: string; exitCode: number | null; signal: string | null }): null;
}

/**
 * What a viewer may do: docs/reference.md "Writers and observers". `shared`: it did not say, and types
 * alongside all others.
 */
export type ViewerMode = 'shared' | 'write' | 'observe';

/** The close code for a viewer whose place another one has taken. */
export const TAKEN_OVER_CODE = 4001;

/** How viewers are closed when `auth.token` changes. They may attach again with the new one. */
export const TOKEN_CHANGED = { code: 1008, reason: 'the token has changed' } as const;

/**
 * The number of bytes that each of `viewers` viewers may leave unacknowledged, and of input that its program
 * has not read yet: docs/reference.md "Attach".
 */
export const viewerShare = (viewers: number): number =>
  Math.min(AGENT.maxUnacknowledgedBytes, Math.floor(AGENT.maxViewerBytes / Math.max(1, viewers)));

/** The size for a terminal in a window of `size`, which may be larger than a terminal can be. */
export const sizeInWindow = ({ cols, rows }: { cols: number; rows: number }) => ({
  cols: Math.min(cols, AGENT.maxColsOrRows),
  rows: Math.min(rows, AGENT.maxColsOrRows),
});

/** A size of a terminal, and the offset from which it applies: in the log, or in the output being drawn. */
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
  /** Sequences that precede the output and do not count as part of it. */
  modes: Uint8Array;
  bytes: Uint8Array;
  /** The longest screen to return; scrollback that does not fit is left out. */
  maxBytes: number;
  /** Time limit in milliseconds. Output left over at the last size is drawn by the viewers' own terminals. */
  budgetMs: number;
}

/** The job that reads a screen as text. */
export interface ReadScreenTask extends ScreenTask {
  /** Whether lines keep their colours, as SGR sequences. */
  ansi: boolean;
  /** Whether to include the scrollback, as far as it is kept, before the lines on the screen. */
  isWhole: boolean;
}

export interface ScreenReading {
  cols: number;
  rows: number;
  /** Column and row, from 0. */
  cursor: { x: number; y: number };
  /** Whether a full-screen program is using the alternate screen. */
  altScreen: boolean;
  /** The window title last set by the program; empty if none. */
  title: string;
  /** One per row, without trailing blanks. */
  lines: string[];
}

export interface DrawnScreen {
  /** Restores a terminal of the same size to this screen; null: it would be too long. */
  screen: Uint8Array | null;
  /** The number of bytes it includes. */
  drawnBytes: number;
}
