// Opens the user's browser, if there is one.
import { spawn } from 'node:child_process';

/** The program that opens a URL; undefined on a machine without a browser. */
export function browserOpener(): string | undefined {
  if (process.env['BROWSER']) return process.env['BROWSER'];
  if (process.platform === 'darwin') return 'open';
  return process.env['DISPLAY'] || process.env['WAYLAND_DISPLAY'] ? 'xdg-open' : undefined;
}

/** A program that still runs after this time is taken for the browser itself. */
const FAILURE_MS = 1_500;

/**
 * Runs `program` detached from this process. Resolves with whether it opens `url`: false if it cannot be
 * started or fails at once, as xdg-open does without a browser.
 */
export function spawnOpener(program: string, url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, [url], { detached: true, stdio: 'ignore' });
    const timer = setTimeout(() => {
      child.unref();
      resolve(true);
    }, FAILURE_MS);
    const settle = (isOpened: boolean): void => {
      clearTimeout(timer);
      resolve(isOpened);
    };
    child.on('error', () => settle(false));
    child.on('exit', (code) => settle(code === 0));
  });
}
