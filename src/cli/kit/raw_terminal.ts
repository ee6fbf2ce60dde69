// The user's terminal while it shows the output of another one.
import { spawnSync } from 'node:child_process';

/**
 * Passes keys and output on unchanged: stdin is raw, and a line feed does not return the cursor to the first
 * column. Returns a function that restores the terminal. Stdin and the output must be a terminal.
 */
export function openRawTerminal(): () => void {
  const { stdin } = process;
  stdin.setRawMode(true);
  // Node's raw mode adds a carriage return to each line feed, and has no option against it.
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  return () => void stdin.setRawMode(false);
}
