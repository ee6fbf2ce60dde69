// The first five minutes of a new user, in a real terminal: from a Procfile to running services, their logs,
// an explained failure, and everything down. Also what only a terminal shows: progress, colours, Ctrl-C,
// attaching.
import { existsSync, mkdirSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import pty from 'node-pty';
import { afterEach, expect, it } from 'vitest';
import { eventually } from '../kit/eventually.ts';
import { SERVICE_PORTS } from '../kit/free_ports.ts';
import { berth, binFolder, cleanEnv, daemonOf, folder } from './berth_process.ts';

const NODE = JSON.stringify(process.execPath);

interface Shell {
  /** Types a line and resolves with the output until the next prompt, without control sequences. */
  run(line: string): Promise<string>;
  type(text: string): void;
  /** Types text that is longer than what the terminal takes at once. */
  typeMuch(text: string): Promise<void>;
  /** Resolves once the output since the last command fits. */
  until(fits: RegExp): Promise<string>;
  /** All output since the last command, with control sequences. */
  raw(): string;
}

const open: { kill: () => void; ended: Promise<void> }[] = [];
afterEach(async () => {
  for (const { kill, ended } of open.splice(0)) {
    kill();
    await ended;
  }
});

/** An interactive shell in a real terminal, with `berth` in its PATH. */
function shell(cwd: string, env: Record<string, string>): Shell {
  const terminal = pty.spawn('bash', ['--norc', '--noprofile', '-i'], {
    cols: 120,
    rows: 40,
    cwd,
    encoding: null,
    env: { ...env, PATH: `${binFolder()}:${process.env['PATH']}`, PS1: 'READY> ', TERM: 'xterm-256color' },
  });
  let raw = '';
  let waiting: (() => void) | undefined;
  const decoder = new TextDecoder();
  terminal.onData((bytes) => {
    raw += decoder.decode(bytes, { stream: true });
    waiting?.();
  });
  const type = (keys: string): void => void writeSync(terminal.fd, keys);
  const typeMuch = async (keys: string): Promise<void> => {
    let rest = Buffer.from(keys);
    await eventually(() => {
      try {
        rest = rest.subarray(writeSync(terminal.fd, rest));
      } catch (error) {
        if (!String(error).includes('EAGAIN')) throw error;
      }
      return rest.length === 0;
    });
  };
  const ended = new Promise<void>((resolve) => terminal.onExit(() => resolve()));
  open.push({ kill: () => process.kill(terminal.pid, 'SIGKILL'), ended });
  const text = (): string => stripVTControlCharacters(raw).replaceAll('\r', '');
  const until = async (fits: RegExp): Promise<string> => {
    while (!fits.test(text())) {
      await new Promise<void>((resolve) => {
        waiting = resolve;
      });
    }
    return text();
  };
  return {
    until,
    type,
    typeMuch,
    raw: () => raw,
    run: async (line) => {
      await until(/READY> $/);
      raw = '';
      type(`${line}\r`);
      return until(/\nREADY> $/);
    },
  };
}

it('five commands lead from a Procfile to running services, logs, an explanation, and a stop', async () => {
  const home = folder();
  const app = join(home, 'app');
  mkdirSync(app);
  const server = (text: string): string =>
    `${NODE} -e 'require("http").createServer((q, r) => r.end("${text}")).listen(process.env.PORT, () => console.log("${text} listens on", process.env.PORT))'`;
  writeFileSync(
    join(app, 'Procfile'),
    `web: ${server('web')}\nworker: while :; do echo working; sleep 0.2; done\napi: echo 'Error: no database'; exit 1\n`,
  );
  writeFileSync(join(home, 'config.toml'), `[gateway]\nport = 0\n${SERVICE_PORTS}`);
  const env = cleanEnv(home, { BERTH_PORT: '0', BERTH_CONFIG: join(home, 'config.toml') });
  const user = shell(app, env);
  try {
    expect(await user.run('berth import -w')).toMatch(
      /^berth\.yaml has 3 services from the Procfile; `berth up` brings them up$/m,
    );

    const up = await user.run('berth up');
    expect(up).toMatch(/Started the daemon in the background \(pid \d+, http:\/\/127\.0\.0\.1:\d+\)/);
    expect(up).toMatch(/✓ web is running at http:\/\/localhost:\d+ \(pid \d+, /);
    expect(up).toMatch(/✓ worker started \(no ready-check\), pid \d+, /);
    expect(up).toMatch(/✗ api: .*exit (code )?1/);
    expect(up).toMatch(/worker: still there after 2 s\./);
    // Colour on a terminal; the progress display has been removed.
    expect(user.raw()).toContain('\x1b[32m✓\x1b[39m');
    expect(stripVTControlCharacters(user.raw().split('\x1b[J').at(-1) ?? '')).not.toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/);

    let logs = '';
    await eventually(async () => {
      logs = await user.run('berth logs -n 3');
      return logs.includes('web listens');
    });
    expect(logs).toMatch(/\nweb {4}\| web listens on \d+\n/);
    expect(logs).toMatch(/\nworker \| working\n/);

    const status = await user.run('berth status api');
    expect(status).toContain('api is crashed (exit 1)');
    expect(status).toContain('exit code 1');
    expect(status).toContain('| Error: no database');

    const down = await user.run('berth down');
    for (const name of ['web', 'worker', 'api'])
      expect(down).toMatch(new RegExp(`[✓] ${name} is stopped and removed`));
    expect(await user.run('berth ps')).toContain('No service is registered');
    expect(existsSync(join(app, 'berth.yaml'))).toBe(true);
  } finally {
    await berth(['daemon', 'stop'], { env });
  }
});

it('berth init sets a token while a daemon runs in a terminal, and does not end it', async () => {
  const home = folder();
  writeFileSync(join(home, 'config.toml'), `[gateway]\nport = 0\n${SERVICE_PORTS}`);
  const env = cleanEnv(home, { BERTH_PORT: '0', BERTH_CONFIG: join(home, 'config.toml') });
  const user = shell(home, env);
  await user.until(/READY> $/);
  user.type('berth daemon\r');
  await user.until(/listening on http/);
  const init = await berth(['init'], { env, cwd: home });
  expect(init.stdout).toContain('your daemon: start that one again, it runs in a terminal');
  expect((await berth(['ps'], { env, cwd: home })).code).toBe(0);
  user.type('\x03');
  expect(await user.until(/READY> $/)).not.toMatch(/hangup/i);
});

it('berth logs marks stderr and runs on a terminal and keeps colours, and leaves out agents', async () => {
  const daemon = await daemonOf();
  const home = folder();
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const cmd = "printf '\\033[32mfine\\033[0m\\n'; echo broken >&2; exit 3";
  await daemon.request('POST', '/v1/services', { name: 'api', port: null, cmd });
  await daemon.request('POST', '/v1/services/api/start');
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'echo I am bot; exec sleep 600' });
  const user = shell(home, env);
  await eventually(async () => (await user.run('berth logs bot')).includes('I am bot'));
  const shown = await eventually(async () => {
    const text = await user.run('berth logs');
    return text.includes('-- ended') && text;
  });
  const lines = shown.split('\n').slice(1, -1);
  expect(lines[0]).toMatch(/^-- started, pid \d+ --$/);
  expect(lines.slice(1, -1).sort()).toEqual(['! broken', 'fine']);
  expect(lines.at(-1)).toBe('-- ended with exit code 3 --');
  expect(user.raw()).toContain('\x1b[32mfine');
  // Programs get the lines alone.
  const piped = await user.run('berth logs | sort');
  expect(piped.split('\n').slice(1, -1)).toEqual(['broken', 'fine']);
});

it('berth start shows what it is waiting for, and reports on Ctrl-C that the start continues', async () => {
  const daemon = await daemonOf();
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const port = 1;
  await daemon.request('POST', '/v1/services', {
    name: 'late',
    port: 0,
    cmd: 'exec sleep 100',
    ready: `http://localhost:${port}/health`,
  });
  const user = shell(folder(), env);
  await user.until(/READY> $/);
  user.type('berth start late\r');
  await user.until(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] late {2}[\d.]+m?s {2}waiting for .*http:\/\/localhost:1\/health/);
  user.type('\x03');
  const text = await user.until(/READY> $/);
  expect(text).toContain('the start continues in the background; `berth stop late` ends it.');
  expect(await user.run('echo "code $?"')).toContain('code 130');
  expect((await daemon.request('GET', '/v1/services/late')).body.status).toBe('starting');
});

it('berth agent attach passes keys and size to an agent, and leaves it running', async () => {
  const daemon = await daemonOf();
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const user = shell(folder(), env);
  expect(await user.run('berth agent spinup sh -- bash --norc --noprofile')).toMatch(
    /sh is up at http:\/\/sh\.agents\.localhost:\d+\/ \(port \d+, pid \d+\)/,
  );
  user.type('berth agent attach sh\r');
  await user.until(/Attached to sh; Ctrl-\] leaves\./);
  user.type('echo "sum $((40 + 2))"; stty size\r');
  await user.until(/sum 42\n(.*\n)*?40 120\n/);
  // A program that has switched its own output processing off.
  user.type("stty -opost; printf 'ab''c\\ndef\\n'; stty opost\r");
  await user.until(/def\n/);
  expect(user.raw()).toContain('abc\ndef\n');
  // The agent sets modes, the clipboard and the keys; only what can be undone arrives.
  user.type("printf '\\033[4h\\033[?1005h\\033[?7l\\033]52;c;ZXZpbA==\\007\\033[21t'; echo do''ne\r");
  await user.until(/done\n/);
  expect(user.raw()).toContain('\x1b[4h\x1b[?1005h\x1b[?7l');
  expect(user.raw()).not.toContain('\x1b]52;c');
  expect(user.raw()).not.toContain('\x1b[21t');
  user.type('\x1d');
  await user.until(/Detached from sh, which keeps running\.\n/);
  expect(user.raw()).toMatch(/\x1b\[\?1005l[\s\S]*\x1b\[\?7h[\s\S]*\x1b\[4l[\s\S]*\x1b\[\?1049l/);
  expect(await user.run('berth agent ls')).toMatch(
    /\nsh +yes +(?:idle|working) +- +\d+ +\d+ +sh\.agents\.localhost\n/,
  );
  expect(await user.run('berth agent logs sh')).toContain('sum 42');
  // The terminal is restored: typed text is echoed.
  expect(await user.run('echo typed')).toContain('echo typed\ntyped\n');

  await user.until(/READY> $/);
  user.type('berth agent attach sh --detach-keys ctrl-p,q\r');
  await user.until(/Attached to sh; Ctrl-P q leaves\.[\s\S]*sum 42/);
  user.type('exit 3\r');
  await user.until(/sh has ended \(exit 3\)\.\n/);
  expect(await user.run('echo "code $?"')).toContain('code 3');
  const gone = await user.run('berth agent attach sh');
  expect(gone).toContain('not');
  expect(await user.run('berth agent rm sh')).toContain('✓ sh is removed');
});

it('berth agent attach reports how much of the input a program has not taken', async () => {
  const daemon = await daemonOf();
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const cmd = 'stty raw -echo; echo ready; exec sleep 600';
  await daemon.request('POST', '/v1/agents/spinup', { name: 'deaf', cmd });
  const user = shell(folder(), env);
  user.type('berth agent attach deaf\r');
  await user.until(/Attached to deaf; Ctrl-\] leaves\.[\s\S]*ready/);
  await user.typeMuch(`${'x'.repeat(600_000)}\x1d`);
  await user.until(/the last \d+ KiB of the input did not reach deaf/);
  await user.until(/Detached from deaf, which keeps running\.\n/);
});

it('berth top uses the alternate screen and restores the old one', async () => {
  const daemon = await daemonOf();
  const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  await daemon.request('POST', '/v1/services', { name: 'idle', port: 0, cmd: 'exec sleep 100' });
  const user = shell(folder(), env);
  await user.until(/READY> $/);
  user.type('berth top\r');
  await user.until(/1 services?, 0 with a process[\s\S]*idle +stopped/);
  user.type('\x03');
  await user.until(/READY> $/);
  expect(user.raw()).toMatch(/\x1b\[\?1049h[\s\S]*\x1b\[\?1049l/);
  expect(await user.run('echo "code $?"')).toContain('code 130');
});
