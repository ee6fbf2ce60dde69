// Opens the user's browser, if there is one.
import { spawn } from 'node:child_process';

/** The program that opens a URL; undefined on a machine without a browser. */
export function browserOpener(): string | undefined {
  if (process.env['BROWSER']) return process.env['BROWSER'];
  if (process.platform === 'darwin') return 'open';
  return process.env['DISPLAY'] || process.env['WAYLAND_DISPLAY'] ? 'xdg-open' : undefined;
}

/** Runs `program` detached from this process. Resolves with whether it could be started. */
export function spawnOpener(program: string, url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, [url], { detached: true, stdio: 'ignore' });
    child.on('error', () => resolve(false));
    child.on('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}
