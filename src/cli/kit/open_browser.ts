// The browser of the user, where there is one.
import { spawn } from 'node:child_process';

/** The program that opens a URL; undefined on a machine without a browser. */
export function browserOpener(): string | undefined {
  if (process.env['BROWSER']) return process.env['BROWSER'];
  if (process.platform === 'darwin') return 'open';
  return process.env['DISPLAY'] || process.env['WAYLAND_DISPLAY'] ? 'xdg-open' : undefined;
}

/** Resolves with whether `program` could be run. It goes on by itself. */
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
