// berth open
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { statePaths } from '../../settings/state_paths.ts';
import { defineCommand, flagOption } from '../kit/command.ts';

/** The program that opens a URL; undefined on a machine without a browser. */
function browserOpener(): string | undefined {
  if (process.env['BROWSER']) return process.env['BROWSER'];
  if (process.platform === 'darwin') return 'open';
  return process.env['DISPLAY'] || process.env['WAYLAND_DISPLAY'] ? 'xdg-open' : undefined;
}

/** Resolves with whether `program` could be run. */
function spawnOpener(program: string, url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, [url], { detached: true, stdio: 'ignore' });
    child.on('error', () => resolve(false));
    child.on('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}

/**
 * Writes a page that redirects to `address`, and returns its path. The address holds the token, and every
 * user of the machine can read the arguments of the browser's process.
 */
function writeRedirectPage(stateDir: string, address: string): string {
  const path = statePaths(stateDir).redirectPage;
  const page = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${address}"><title>Berth</title>\n`;
  rmSync(path, { force: true });
  writeFileSync(path, page, { mode: 0o600, flag: 'wx' });
  return path;
}

export const openCommand = defineCommand({
  about:
    'Without a name, opens the dashboard. Its URL carries the token after the #, which browsers never ' +
    'send. Without a browser, prints the URL; --print does so in any case, as for a browser that cannot ' +
    'read the state directory.',
  args: [{ syntax: '[name]', about: 'the service', completes: 'running' }],
  options: { print: flagOption('--print', 'print the URL, open nothing') },
  run: async (context, [name], { print }) => {
    const { client, url, settings, stateDir } = await context.local();
    const { token } = settings.auth;
    const dashboard = (): string => `${url()}/${token ? `#token=${encodeURIComponent(token)}` : ''}`;
    const address = name === undefined ? dashboard() : (await client.resolve(name)).url;
    const program = print ? undefined : browserOpener();
    const target = name === undefined && token ? writeRedirectPage : () => address;
    const opened = program !== undefined && (await spawnOpener(program, target(stateDir, address)));
    if (!opened || context.out.isData) context.out.record({ url: address, opened }, () => address);
  },
});
