// A terminal emulator (@xterm/headless) that tracks what a screen shows. Program output may keep it busy for
// long, so it only runs on job threads: docs/reference.md "Terminal repaint".
import type { Terminal } from '@xterm/headless';
import type { DrawnScreen, ReadScreenTask, ScreenReading, ScreenTask } from '../protocol/terminal.ts';
import { guardTerminal } from '../protocol/terminal_guards.ts';
import { KIB } from '../settings/limits.ts';
import { coreOf } from './emulator.ts';
import { drawingOf } from './screen_drawing.ts';
import { resizeScreen } from './screen_rows.ts';
import { type LinesShown, screenLines } from './screen_text.ts';

const SCROLLBACK_LINES = 1_000;
/**
 * How much output to process between two checks of the time. On the largest screen, 7 bytes take up to 100
 * ms.
 */
const SLICE_BYTES = 128;
const MAX_TITLE_LENGTH = 256;
const NEWLINE = 0x0a;
const ESCAPE = 0x1b;
/** A sequence longer than this is shown unfinished. */
const MAX_SEQUENCE_BYTES = 4 * KIB;
/** A control sequence, or a string such as a title, that lacks its end. */
const UNFINISHED_SEQUENCE = /^\x1b(?:[ -/]*|\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*)$/;
/** A UTF-8 character that lacks its end. */
const UNFINISHED_CHARACTER = /(?:[\xc0-\xf7]|[\xe0-\xf7][\x80-\xbf]|[\xf0-\xf7][\x80-\xbf]{2})$/;

/** Output, and the size changes of its terminal along the way. */
export type SizedOutput = Pick<ScreenTask, 'bytes' | 'resizes'>;

/** The screen of a terminal after the bytes written to it. */
export interface TerminalScreen {
  /** Resolves when the screen shows `bytes`. */
  write(bytes: Uint8Array): Promise<void>;
  /**
   * Shows the complete lines of `output`, until `isOver` says that time is up. Resolves with the number of
   * bytes shown; the rest may be sent to a terminal unchanged. null: time was up before the last change of
   * size, so the rest would be shown at a size that is not its own.
   */
  writeLines(output: SizedOutput, isOver: () => boolean): Promise<number | null>;
  /**
   * Like `writeLines`, but includes an unfinished line unless time is up, which is then `isCut`. A sequence
   * that has not arrived whole is left out.
   */
  writeRest(output: SizedOutput, isOver: () => boolean): Promise<{ drawnBytes: number; isCut: boolean }>;
  /** The bytes that restore this screen in another terminal, with modes and up to `lines` of scrollback. */
  snapshot(lines?: number): Uint8Array;
  /** The screen as text; `isWhole`: preceded by the scrollback. */
  read(ansi: boolean, isWhole?: boolean): ScreenReading;
  /** What a window of `cols` columns and `rows` rows shows of the screen. */
  part(cols: number, rows: number): ScreenPart;
  resize(cols: number, rows: number): void;
  /** Calls `listener` when the program rings the bell. */
  onBell(listener: () => void): void;
  close(): void;
}

/** The upper left part of a screen, or the rows that end with the cursor's if that is further down. */
export interface ScreenPart {
  /** With colours, without trailing blanks. */
  lines: string[];
  /** Column and row within the part, from 0; null: hidden, or outside. */
  cursor: { x: number; y: number } | null;
  title: string;
}

/**
 * `output` without a sequence or character that has not arrived whole. A snapshot cannot contain a part of
 * one, so a viewer gets it unchanged, with its end.
 */
function withoutUnfinished({ bytes, resizes }: SizedOutput): SizedOutput {
  const text = (from: number): string =>
    Buffer.from(bytes.buffer, bytes.byteOffset + from, bytes.length - from).toString('latin1');
  const begin = bytes.lastIndexOf(ESCAPE);
  const isNear = begin >= 0 && bytes.length - begin <= MAX_SEQUENCE_BYTES;
  if (isNear && UNFINISHED_SEQUENCE.test(text(begin))) return { bytes: bytes.subarray(0, begin), resizes };
  const [unfinished = ''] = UNFINISHED_CHARACTER.exec(text(Math.max(0, bytes.length - 3))) ?? [];
  return { bytes: bytes.subarray(0, bytes.length - unfinished.length), resizes };
}

/**
 * The end of the slice of `bytes` that begins at `from`: after its last newline, if any. An unfinished line
 * is never part of a slice, so that nothing is sent from the middle of a sequence.
 */
function sliceEnd(bytes: Uint8Array, from: number): number {
  const to = Math.min(from + SLICE_BYTES, bytes.length);
  const newline = bytes.subarray(from, to).lastIndexOf(NEWLINE);
  if (newline >= 0) return from + newline + 1;
  const isLineStart = from === 0 || bytes[from - 1] === NEWLINE;
  return to === bytes.length && isLineStart ? from : to;
}

/** Writes all slices in one turn: a turn for each would cost more than the slice. */
function writeSlices(terminal: Terminal, bytes: Uint8Array, isOver: () => boolean): Promise<number> {
  return new Promise((resolve) => {
    const next = (from: number): void => {
      const to = isOver() ? from : sliceEnd(bytes, from);
      if (to === from) resolve(from);
      else terminal.write(bytes.subarray(from, to), () => next(to));
    };
    next(0);
  });
}

/** Like `writeSlices`, but includes an unfinished line unless time is up. */
async function writeWhole(terminal: Terminal, bytes: Uint8Array, isOver: () => boolean): Promise<number> {
  const drawn = await writeSlices(terminal, bytes, isOver);
  // The rest is the end of a line, less than a slice, unless time is up.
  if (bytes.length - drawn > SLICE_BYTES) return drawn;
  await new Promise<void>((resolve) => terminal.write(bytes.subarray(drawn), resolve));
  return bytes.length;
}

/**
 * Shows the output before the last change of size, each stretch at its own size. Resolves with the number of
 * bytes shown. `isCut`: time was up, and the terminal has the size at which the rest must be shown.
 */
async function writeResized(
  terminal: Terminal,
  { bytes, resizes }: SizedOutput,
  isOver: () => boolean,
): Promise<{ drawn: number; isCut: boolean }> {
  let drawn = 0;
  for (const { at, cols, rows } of resizes) {
    drawn += await writeWhole(terminal, bytes.subarray(drawn, at), isOver);
    if (drawn < Math.min(at, bytes.length)) return { drawn, isCut: true };
    resizeScreen(terminal, cols, rows);
  }
  return { drawn, isCut: false };
}

/** Writes `bytes`. Other work of this thread gets its turn between two slices that take long. */
function writeInTurns(terminal: Terminal, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    for (let from = 0; from < bytes.length; from += SLICE_BYTES)
      terminal.write(bytes.subarray(from, from + SLICE_BYTES));
    terminal.write('', resolve);
  });
}

/** All lines of the screen; `isWhole`: preceded by the scrollback. */
function shownLines({ buffer, cols, rows }: Terminal, isWhole: boolean): Omit<LinesShown, 'ansi'> {
  const first = isWhole ? 0 : buffer.active.baseY;
  return { first, count: buffer.active.baseY + rows - first, cols };
}

/** The part of `terminal` that a window shows. */
function partOf(terminal: Terminal, columns: number, rows: number): Omit<ScreenPart, 'title'> {
  const { baseY, cursorX, cursorY } = terminal.buffer.active;
  const above = Math.max(0, cursorY - rows + 1);
  const cols = Math.min(columns, terminal.cols);
  const cursor = { x: Math.min(cursorX, terminal.cols - 1), y: cursorY - above };
  const isSeen = !coreOf(terminal).coreService.isCursorHidden && cursor.x < cols;
  const shown: LinesShown = { first: baseY + above, count: Math.min(rows, terminal.rows), cols, ansi: true };
  return { lines: screenLines(terminal, shown), cursor: isSeen ? cursor : null };
}

/** An empty screen of `cols` columns and `rows` rows. Rejects when the emulator cannot be loaded. */
export async function openTerminalScreen(cols: number, rows: number): Promise<TerminalScreen> {
  const [headless, serialize] = await Promise.all([
    import('@xterm/headless'),
    import('@xterm/addon-serialize'),
  ]);
  const terminal = new headless.default.Terminal({
    cols,
    rows,
    scrollback: SCROLLBACK_LINES,
    allowProposedApi: true,
    // It would log its whole state for every invalid sequence.
    logLevel: 'off',
  });
  guardTerminal(terminal);
  // Each link slows down every later line. A snapshot has no links.
  terminal.parser.registerOscHandler(8, () => true);
  let title = '';
  terminal.onTitleChange((changed) => {
    title = changed.slice(0, MAX_TITLE_LENGTH);
  });
  const serializer = new serialize.default.SerializeAddon();
  // The addon is typed for the browser's terminal, but needs only what both have.
  terminal.loadAddon(serializer as unknown as Parameters<typeof terminal.loadAddon>[0]);
  return {
    write: (bytes) => writeInTurns(terminal, bytes),
    writeLines: async (output, isOver) => {
      const whole = withoutUnfinished(output);
      const { drawn, isCut } = await writeResized(terminal, whole, isOver);
      return isCut ? null : drawn + (await writeSlices(terminal, whole.bytes.subarray(drawn), isOver));
    },
    writeRest: async (output, isOver) => {
      const whole = withoutUnfinished(output);
      const { drawn, isCut } = await writeResized(terminal, whole, isOver);
      if (isCut) return { drawnBytes: drawn, isCut };
      const drawnBytes = drawn + (await writeWhole(terminal, whole.bytes.subarray(drawn), isOver));
      return { drawnBytes, isCut: drawnBytes < whole.bytes.length };
    },
    snapshot: (lines = SCROLLBACK_LINES) => Buffer.from(drawingOf(terminal, serializer, lines)),
    read: (ansi, isWhole = false) => ({
      ...{ cols: terminal.cols, rows: terminal.rows, title },
      lines: screenLines(terminal, { ...shownLines(terminal, isWhole), ansi }),
      cursor: {
        x: Math.min(terminal.buffer.active.cursorX, terminal.cols - 1),
        y: terminal.buffer.active.cursorY,
      },
      altScreen: terminal.buffer.active.type === 'alternate',
    }),
    part: (columns, height) => ({ ...partOf(terminal, columns, height), title }),
    resize: (columns, height) => resizeScreen(terminal, columns, height),
    onBell: (listener) => terminal.onBell(listener),
    close: () => terminal.dispose(),
  };
}

/**
 * The job of that name. Draws output on an empty screen; null: time was up before the last change of size.
 */
export async function drawScreen({
  cols,
  rows,
  modes,
  bytes,
  resizes,
  maxBytes,
  budgetMs,
}: ScreenTask): Promise<DrawnScreen | null> {
  const terminal = await openTerminalScreen(cols, rows);
  try {
    const until = performance.now() + budgetMs;
    await terminal.write(modes);
    const drawnBytes = await terminal.writeLines({ bytes, resizes }, () => performance.now() > until);
    if (drawnBytes === null) return null;
    // The bare screen comes first: a large one with scrollback may be too long for a string.
    let screen: Uint8Array | null = null;
    for (const lines of [0, SCROLLBACK_LINES]) {
      const shown = terminal.snapshot(lines);
      if (shown.length > maxBytes) break;
      screen = shown;
    }
    return { screen, drawnBytes };
  } finally {
    terminal.close();
  }
}

/**
 * The job of that name. Reads the screen that results from output, including an unfinished line; null: time
 * is up.
 */
export async function readScreen({
  cols,
  rows,
  modes,
  bytes,
  resizes,
  budgetMs,
  ansi,
  isWhole,
}: ReadScreenTask): Promise<ScreenReading | null> {
  const terminal = await openTerminalScreen(cols, rows);
  try {
    const until = performance.now() + budgetMs;
    await terminal.write(modes);
    const { isCut } = await terminal.writeRest({ bytes, resizes }, () => performance.now() > until);
    return isCut ? null : terminal.read(ansi, isWhole);
  } finally {
    terminal.close();
  }
}
