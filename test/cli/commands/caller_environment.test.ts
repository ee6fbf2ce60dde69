// docs/reference.md "Environment of a process": services start from the environment of the shell that registers
// them, whichever shell has started the daemon.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../../kit/eventually.ts';
import { SERVICE_PORTS } from '../../kit/free_ports.ts';
import { berth, cleanEnv, folder } from '../berth_process.ts';

const SECRET = 'prod-of-the-first-shell';

/** Every file below `path`, as one text. */
function filesBelow(path: string): string {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .map((name) => join(path, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('');
}

function makeProject(home: string, name: string, text: string): string {
  const path = join(home, name);
  mkdirSync(path);
  writeFileSync(join(path, 'berth.yaml'), text);
  return path;
}

it('the environment of a service is that of the shell of `up`, is kept secret, and changes with a restart only', async () => {
  const home = folder();
  const bin = join(home, 'venv', 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'mytool'), '#!/bin/sh\nprintf %s "$AWS_PROFILE" | cksum\nexec sleep 1000\n');
  chmodSync(join(bin, 'mytool'), 0o755);
  writeFileSync(join(home, 'config.toml'), `[gateway]\nport = 0\n${SERVICE_PORTS}`);
  const common = { BERTH_PORT: '0', BERTH_CONFIG: join(home, 'config.toml') };
  const first = cleanEnv(home, { ...common, PATH: `${bin}:${process.env['PATH']}`, AWS_PROFILE: SECRET });
  const second = cleanEnv(home, common);
  // `up` watches what has no ready-check for two seconds.
  const tool = 'services:\n  tool: { cmd: mytool, port: null, ready: { log: "^[0-9]+ [0-9]+$" } }\n';
  const shop = makeProject(home, 'shop', tool);
  const other = makeProject(home, 'other', tool);
  const show = '  show: { cmd: "env; echo all; exec sleep 1000", port: null, ready: { log: "^all$" } }\n';
  const opted = makeProject(home, 'opted', `environment: daemon\nservices:\n${show}`);
  const run = (cwd: string, env: Record<string, string>, line: string) =>
    berth(line.split(' '), { cwd, env });
  try {
    expect((await run(shop, first, 'up')).code).toBe(0);
    const sum = execFileSync('cksum', { input: SECRET, encoding: 'utf8' });
    await eventually(async () => (await run(shop, second, 'logs tool')).stdout === sum);

    // The first shell has started the daemon, and leaves nothing to the others.
    const missing = await run(other, second, 'up');
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain(`It was looked up in PATH=${second['PATH']}.`);
    expect(missing.stderr).not.toContain(SECRET);
    expect((await run(opted, first, 'up')).code).toBe(0);
    const shown = (await run(opted, second, 'logs show')).stdout;
    expect(shown).toContain('PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n');
    expect(shown).not.toContain(SECRET);

    // A change of it alone: the process stays, as often as `up` is called.
    const services = async () => JSON.parse((await run(shop, second, 'status tool --json')).stdout);
    const { pid } = await services();
    expect(await run(shop, second, 'up')).toMatchObject({
      code: 0,
      stdout: '✓ tool is already running\n',
      stderr: 'The environment of your shell has changed; `berth restart tool` applies it.\n',
    });
    expect(await services()).toMatchObject({ pid, stale: true });
    expect((await run(shop, second, 'up')).stderr).toBe('Everything is up to date.\n');
    expect((await run(shop, first, 'up')).code).toBe(0);
    expect(await services()).toMatchObject({ pid });

    const answers = await run(shop, second, 'ps -A --json');
    const events = await run(shop, second, 'events --past --json');
    expect(answers.stdout + JSON.stringify(await services()) + events.stdout).not.toContain(SECRET);
    expect(filesBelow(join(home, '.local/state/berth'))).not.toContain(SECRET);
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain(SECRET);
  } finally {
    await run(home, second, 'daemon stop');
  }
});
