// A terminal emulator that keeps what a screen shows (@xterm/headless), loaded for the first viewer.
const SCROLLBACK_LINES = 1_000;
/** Resets a viewer's terminal, so that nothing of its earlier content remains. */
const RESET_SEQUENCE = '\x1bc';

/** The screen of a terminal after the bytes that it was given. */
export interface TerminalScreen {
  /** Resolves when the screen shows `bytes`. */
  write(bytes: Uint8Array): Promise<void>;
  resize(cols: number, rows: number): void;
  /** The bytes that make a terminal of this size show the same, with scrollback and modes. */
  snapshot(): Uint8Array;
  close(): void;
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
  });
  const serializer = new serialize.default.SerializeAddon();
  // The addon is typed for the browser's terminal, but needs only what both have.
  terminal.loadAddon(serializer as unknown as Parameters<typeof terminal.loadAddon>[0]);
  return {
    write: (bytes) => new Promise((resolve) => terminal.write(bytes, resolve)),
    resize: (width, height) => terminal.resize(width, height),
    snapshot: () => Buffer.from(RESET_SEQUENCE + serializer.serialize({ scrollback: SCROLLBACK_LINES })),
    close: () => terminal.dispose(),
  };
}
