// The parts of the terminal emulator (@xterm/headless) that are behind its public interface.
import type { IBufferCell, Terminal } from '@xterm/headless';

/** Characters that stand for others; undefined: each for itself. */
export type Charset = Readonly<Record<string, string>> | undefined;

/** The main or the alternate screen. */
export interface EmulatedScreen {
  /** Rows of the scrollback. */
  readonly ybase: number;
  /** Row of the cursor, from 0. */
  readonly y: number;
  /** The saved cursor; its row is counted from the beginning of the scrollback. */
  readonly savedX: number;
  readonly savedY: number;
  /** Has the methods of a cell that tell its style. */
  readonly savedCurAttrData: IBufferCell;
  readonly savedCharset: Charset;
  /** Rows of the scroll region, from 0. */
  readonly scrollTop: number;
  readonly scrollBottom: number;
  /** The columns that have a tab stop. */
  readonly tabs: Readonly<Record<number, boolean | undefined>>;
}

interface EmulatorCore {
  readonly coreService: { readonly isCursorHidden: boolean };
  readonly coreMouseService: { readonly activeEncoding: string };
  /** The screen that is shown. */
  readonly buffer: EmulatedScreen;
  readonly buffers: { readonly normal: EmulatedScreen };
  /** `glevel`: the index of the set that was shifted to. `charset`: the one in use. */
  readonly _charsetService: {
    readonly _charsets: readonly Charset[];
    readonly glevel: number;
    readonly charset: Charset;
  };
  /** The current style, as `savedCurAttrData`. */
  readonly _inputHandler: { readonly _curAttrData: IBufferCell };
}

export const coreOf = (terminal: Terminal): EmulatorCore =>
  (terminal as unknown as { _core: EmulatorCore })._core;
