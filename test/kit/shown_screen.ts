// What a terminal shows, for tests of output that steers one.
import { openTerminalScreen } from '../../src/adapters/terminal_screen.ts';

/** The screen of a terminal of `cols` and `rows` after `text`, as the sequences that draw it. */
export async function shownScreen(text: string | Uint8Array, cols: number, rows: number): Promise<string> {
  const screen = await openTerminalScreen(cols, rows);
  await screen.write(Buffer.from(text));
  const drawn = screen.snapshot().toString();
  screen.close();
  return drawn;
}
