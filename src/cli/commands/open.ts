// berth open
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineCommand, flagOption } from '../kit/command.ts';

/** The program that opens a URL; undefined where there is none to be expected. */
function browserOpener(): string | undefined {
  if (process.env['BROWSER']) return process.env['BROWSER'];
  if (process.platform === 'darwin') return 'open';
  return process.env['DISPLAY'] || process.env['WAYLAND_DISPLAY'] ? 'xdg-open' : undefined;
}

/** Resolves whether the browser's opener could be run. */
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
 * A page of ours that leads to `address`, for the browser to open: the arguments of a program are for every user of the machine
 * to see, and the address has the token.
 */
function writeRedirectPage(stateDir: string, address: string): string {
  const path = join(stateDir, 'open.html');
  const page = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${address}"><title>Berth</title>\n`;
  rmSync(path, { force: true });
  writeFileSync(path, page, { mode: 0o600, flag: 'wx' });
  return path;
}

export const openCommand = defineCommand({
  about:
    'Without a name the dashboard is opened; its token goes along in the part of the URL that is never sent. Where there is no browser the URL is printed; --print does that for a browser that may not read the state directory.',
  args: [{ syntax: '[name]', about: 'the service', completes: 'running' }],
  options: { print: flagOption('--print', 'only print the URL') },
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
