// A terminal emulator that remembers what a screen shows (@xterm/headless), loaded when somebody first looks.
const SCROLLBACK_LINES = 1_000;
/** Back to the state a terminal has when it is switched on: what a viewer had before does not shine through. */
const RESET_SEQUENCE = '\x1bc';

/** What a terminal shows after the bytes it was given. */
export interface TerminalScreen {
  /** Resolves when `bytes` are part of what is shown. */
  write(bytes: Uint8Array): Promise<void>;
  resize(cols: number, rows: number): void;
  /** The bytes that make an empty terminal of this size show the same, scrollback and modes included. */
  snapshot(): Uint8Array;
  close(): void;
}

/** An empty screen of this many columns and rows. Rejects where the emulator does not load. */
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
  // The addon's types ask for the browser's terminal; it needs only what both have.
  terminal.loadAddon(serializer as unknown as Parameters<typeof terminal.loadAddon>[0]);
  return {
    write: (bytes) => new Promise((resolve) => terminal.write(bytes, resolve)),
    resize: (width, height) => terminal.resize(width, height),
    snapshot: () => Buffer.from(RESET_SEQUENCE + serializer.serialize({ scrollback: SCROLLBACK_LINES })),
    close: () => terminal.dispose(),
  };
}
