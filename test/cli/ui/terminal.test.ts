// `berth ui` as a person has it: the built program in a real pseudo-terminal, beside a real daemon.
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { Terminal } from '@xterm/headless';
import pty from 'node-pty';
import { afterEach, expect, it } from 'vitest';
import { BIN } from '../../kit/built_program.ts';
import { type Daemon, newFolder, startDaemon } from '../../kit/daemon.ts';
import { eventually } from '../../kit/eventually.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

interface Screen {
  /** The lines that the terminal shows. */
  lines(): string[];
  /** Resolves once a line fits; fails with the screen. */
  until(fits: RegExp): Promise<string>;
  type(keys: string): void;
  resize(columns: number, rows: number): void;
  /** All that was written, with control sequences. */
  raw(): string;
  isAlternate(): boolean;
  kill(signal: NodeJS.Signals): void;
  ended: Promise<{ exitCode: number; signal?: number | undefined }>;
}

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** The interface of `daemon` in a terminal of its own. */
function openUi(daemon: Daemon, args: readonly string[] = [], env: Record<string, string> = {}): Screen {
  const emulator = new Terminal({ cols: 80, rows: 24, allowProposedApi: true });
  const named = ['--state-dir', daemon.stateDir, '--config', daemon.configFile];
  const child = pty.spawn(process.execPath, [BIN, 'ui', ...named, ...args], {
    cols: 80,
    rows: 24,
    cwd: folder(),
    encoding: null,
    env: cleanEnv(folder(), { TERM: 'xterm-256color', ...env }),
  });
  let raw = '';
  child.onData((bytes) => {
    raw += bytes.toString();
    emulator.write(bytes);
  });
  const ended = new Promise<{ exitCode: number; signal?: number | undefined }>((resolve) =>
    child.onExit(resolve),
  );
  open.push(() => {
    try {
      process.kill(child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
    return ended;
  });
  const lines = (): string[] =>
    Array.from(
      { length: emulator.rows },
      (_, at) =>
        emulator.buffer.active.getLine(emulator.buffer.active.baseY + at)?.translateToString(true) ?? '',
    );
  return {
    lines,
    ended,
    raw: () => raw,
    until: (fits) => eventually(() => lines().find((line) => fits.test(line)), lines),
    type: (keys) => void writeSync(child.fd, keys),
    resize: (columns, rows) => {
      emulator.resize(columns, rows);
      child.resize(columns, rows);
    },
    isAlternate: () => emulator.buffer.active.type === 'alternate',
    kill: (signal) => process.kill(child.pid, signal),
  };
}

const COUNTING = 'i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 1; done';

async function withServices(): Promise<Daemon> {
  const daemon = await daemonOf();
  for (const [name, cmd] of [
    ['worker', COUNTING],
    ['broken', 'echo oh no; exit 3'],
  ])
    await daemon.request('POST', '/v1/services', { name, cmd, port: null });
  return daemon;
}

/** What leaving must have written last: colours, wrapping, pastes, cursor and screen as they were. */
const LEFT = '\x1b[0m\x1b[?7h\x1b[?2004l\x1b[?25h\x1b[?1049l';

it('lists, starts, restarts, logs, stops, resizes, and leaves the terminal as it was', async () => {
  const daemon = await withServices();
  const screen = openUi(daemon);
  await screen.until(/^› ○ broken +stopped/);
  expect(screen.isAlternate()).toBe(true);
  screen.type('s');
  await screen.until(/^› ✗ broken +crashed exit 3/);
  await screen.until(/✗ 1 crashed/);
  screen.type('\r');
  await screen.until(/│ oh no/);
  screen.type('qjs');
  const started = await screen.until(/^› ● worker +running/);
  expect(started).not.toContain('\x1b');
  screen.type('l');
  await screen.until(/tick \d+$/);
  screen.type(' ');
  await screen.until(/‖ paused/);
  screen.type('r');
  screen.type('G');
  await screen.until(/── ended \(SIGTERM\) ──/);
  await screen.until(/● following/);
  screen.resize(120, 40);
  await screen.until(/ {20}\? help {2}q back/);
  screen.resize(40, 8);
  await screen.until(/^ Berth {2}✗ 1 crashed/);
  screen.resize(80, 24);
  screen.type('qx');
  await screen.until(/^› ○ worker +stopped/);
  screen.type('Xy');
  await eventually(() => screen.lines().every((line) => !line.includes('worker')), screen.lines);
  screen.type('q');
  expect(await screen.ended).toMatchObject({ exitCode: 0 });
  expect(screen.raw().endsWith(LEFT)).toBe(true);
  expect(screen.isAlternate()).toBe(false);
  expect(screen.lines().join('').trim()).toBe('');
});

it('attaches to an agent, comes back, and prompts it', async () => {
  const daemon = await daemonOf();
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec cat', cwd: newFolder() });
  const screen = openUi(daemon);
  await screen.until(/^› . bot /);
  screen.type('a');
  await eventually(() => !screen.lines().some((line) => line.includes('Berth')), screen.lines);
  screen.type('typed by hand\r');
  await screen.until(/^typed by hand/);
  screen.type('\x1d');
  await screen.until(/Left bot, which goes on/);
  await screen.until(/^› . bot /);
  await screen.until(/^› . bot +idle/);
  screen.type('p');
  await screen.until(/^ prompt for bot:/);
  screen.type('sent as a prompt\r');
  await screen.until(/bot has the prompt/);
  screen.type('l');
  await screen.until(/sent as a prompt/);
  screen.type('\x03');
  expect(await screen.ended).toMatchObject({ exitCode: 130 });
  expect(screen.raw().endsWith(LEFT)).toBe(true);
});

it('says that the daemon is gone, waits, and goes on with the next one', async () => {
  const daemon = await withServices();
  const screen = openUi(daemon, [], { NO_COLOR: '1' });
  await screen.until(/^› ○ broken/);
  daemon.signal('SIGKILL');
  await daemon.exited;
  await screen.until(/the daemon is gone, waiting/);
  expect(screen.lines().some((line) => line.includes('worker'))).toBe(true);
  screen.type('s');
  await screen.until(/The daemon is gone: nothing was done/);
  const next = await startDaemon({ stateDir: daemon.stateDir });
  await eventually(() => !screen.lines().some((line) => line.includes('gone, waiting')), screen.lines);
  await next.request('POST', '/v1/services', { name: 'newer', cmd: 'sleep 100', port: null });
  await screen.until(/newer/);
  expect(screen.raw()).not.toMatch(/\x1b\[[0-9;]*3\dm/);
  screen.kill('SIGTERM');
  expect(await screen.ended).toMatchObject({ exitCode: 143 });
  expect(screen.raw().endsWith(LEFT)).toBe(true);
});

it('needs a terminal, and says so', async () => {
  const env = cleanEnv(folder());
  const ran = await berth(['ui', '--state-dir', join(folder(), 'state')], { env });
  expect(ran).toMatchObject({ code: 2, stdout: '' });
  expect(ran.stderr).toContain('berth ui needs a terminal that it can draw on');
});
