// `berth ui` as a person has it: the built program in a real pseudo-terminal, beside a real daemon.
import { closeSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { Terminal } from '@xterm/headless';
import pty from 'node-pty';
import { afterEach, expect, it } from 'vitest';
import { BIN } from '../../kit/built_program.ts';
import { type Daemon, newFolder, startDaemon } from '../../kit/daemon.ts';
import { eventually } from '../../kit/eventually.ts';
import { kubeDouble, statusOf, workload } from '../../kit/kube_double.ts';
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
  /** Column and row, from 0. */
  cursor(): [x: number, y: number];
  kill(signal: NodeJS.Signals): void;
  /** Closes the terminal, as closing its window does. */
  close(): void;
  /** Of the program. */
  pid: number;
  ended: Promise<{ exitCode: number; signal?: number | undefined }>;
}

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** The call that opens the interface of `daemon`. */
const uiCall = (daemon: Daemon, args: readonly string[] = []): string[] => [
  ...[process.execPath, BIN, 'ui', '--state-dir', daemon.stateDir, '--config', daemon.configFile],
  ...args,
];

/** The interface of `daemon` in a terminal of its own. */
const openUi = (daemon: Daemon, args: readonly string[] = [], env: Record<string, string> = {}): Screen =>
  openTerminal(uiCall(daemon, args), env);

/** A program in a terminal of its own. */
function openTerminal([file = '', ...args]: readonly string[], env: Record<string, string> = {}): Screen {
  const emulator = new Terminal({ cols: 80, rows: 24, allowProposedApi: true });
  const child = pty.spawn(file, args, {
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
  // The emulator reads what is written to it in a later turn: an end counts once it has read everything.
  const ended = new Promise<{ exitCode: number; signal?: number | undefined }>((resolve) =>
    child.onExit((end) => emulator.write('', () => resolve(end))),
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
    cursor: () => [emulator.buffer.active.cursorX, emulator.buffer.active.cursorY],
    isAlternate: () => emulator.buffer.active.type === 'alternate',
    kill: (signal) => process.kill(child.pid, signal),
    close: () => closeSync(child.fd),
    pid: child.pid,
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

it('berth ui lists, starts, restarts and stops services, shows logs, resizes, and restores the terminal', async () => {
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
  screen.type('q');
  // A stop during the restart would end it with a notice that names the service.
  await screen.until(/^› ● worker +running/);
  screen.type('x');
  await screen.until(/^› ○ worker +stopped/);
  screen.type('Xy');
  await eventually(() => screen.lines().every((line) => !line.includes('worker')), screen.lines);
  screen.type('q');
  expect(await screen.ended).toMatchObject({ exitCode: 0 });
  expect(screen.raw().endsWith(LEFT)).toBe(true);
  expect(screen.isAlternate()).toBe(false);
  expect(screen.lines().join('').trim()).toBe('');
});

it('berth ui attaches to an agent, comes back, and prompts it', async () => {
  const daemon = await daemonOf();
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec cat', cwd: newFolder() });
  const screen = openUi(daemon);
  await screen.until(/^› . bot /);
  screen.type('a');
  await eventually(() => !screen.lines().some((line) => line.includes('Berth')), screen.lines);
  screen.type('typed by hand\r');
  await screen.until(/^typed by hand/);
  // A stop from elsewhere gives the terminal back; nobody stops this session's first process, so it goes on.
  process.kill(screen.pid, 'SIGTSTP');
  await eventually(() => screen.raw().split('Ctrl-] leaves').length > 2, screen.lines);
  await screen.until(/^typed by hand/);
  screen.type('\x1d');
  await screen.until(/Detached from bot, which keeps running/);
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

it('berth ui reports that the daemon is gone, waits, and continues with the next one', async () => {
  const daemon = await withServices();
  const screen = openUi(daemon, [], { NO_COLOR: '1' });
  await screen.until(/^› ○ broken/);
  daemon.signal('SIGKILL');
  await daemon.exited;
  await screen.until(/the daemon is gone, waiting/);
  expect(screen.lines().some((line) => line.includes('worker'))).toBe(true);
  screen.type('s');
  await screen.until(/Nothing was done: the daemon is gone/);
  const next = await startDaemon({ stateDir: daemon.stateDir });
  await eventually(() => !screen.lines().some((line) => line.includes('gone, waiting')), screen.lines);
  await next.request('POST', '/v1/services', { name: 'newer', cmd: 'sleep 100', port: null });
  await screen.until(/newer/);
  expect(screen.raw()).not.toMatch(/\x1b\[[0-9;]*3\dm/);
  screen.kill('SIGTERM');
  expect(await screen.ended).toMatchObject({ exitCode: 143 });
  expect(screen.raw().endsWith(LEFT)).toBe(true);
});

/** The numbers in the lines of a screen, from the top. */
const numbersOf = (screen: Screen, pattern: RegExp): number[] =>
  screen
    .lines()
    .flatMap((line) => pattern.exec(line)?.[1] ?? [])
    .map(Number);

/** Whether each number is the one before it and one. A screen that is half drawn may show others. */
const areInOrder = (numbers: readonly number[]): boolean =>
  numbers.every((number, at) => number === (numbers[0] ?? 0) + at);

it('berth ui shows each line of a log once, however the daemon ends', async () => {
  const daemon = await withServices();
  await daemon.request('POST', '/v1/services/worker/start');
  const screen = openUi(daemon, ['worker']);
  await screen.until(/^› ● worker/);
  screen.type('l');
  await screen.until(/tick \d+$/);
  daemon.signal('SIGKILL');
  await daemon.exited;
  await startDaemon({ stateDir: daemon.stateDir });
  const ticks = (): number[] => numbersOf(screen, /tick (\d+)$/);
  await eventually(() => (ticks().at(-1) ?? 0) >= 5, screen.lines);
  await eventually(() => areInOrder(ticks()), screen.lines);
  screen.type('q');
  // Removed by somebody else while it is selected.
  await berth(['rm', 'worker', '--state-dir', daemon.stateDir, '--config', daemon.configFile]);
  await screen.until(/Nothing matches worker/);
});

it('berth ui searches a log, and pages back beyond the lines that it holds', async () => {
  const daemon = await daemonOf();
  // A burst: thousands of lines are of the same millisecond.
  const cmd = 'seq -f "row %g" 1 8000; echo "ERROR: at the end"; exec sleep 1000';
  await daemon.request('POST', '/v1/services', { name: 'burst', cmd, port: null });
  await daemon.request('POST', '/v1/services/burst/start');
  const screen = openUi(daemon);
  await screen.until(/^› ● burst/);
  const rows = (): number[] => numbersOf(screen, /row (\d+)$/);
  screen.type('l');
  await screen.until(/ERROR: at the end/);
  screen.type('/row 612\r');
  // The newest match that is older than the last 1,000 lines.
  await screen.until(/^› {2}row 6129$/);
  await eventually(() => rows()[0] === 6124 && areInOrder(rows()), screen.lines);
  screen.type('N');
  await screen.until(/^› {2}row 6128$/);
  // Held are 500 lines before it: then it reads on, a page at a time.
  await eventually(() => {
    screen.type('g');
    return (rows()[0] ?? 8_000) < 5_000;
  }, screen.lines);
  await eventually(() => areInOrder(rows()), screen.lines);
  screen.type('e');
  await eventually(() => rows().length === 0, screen.lines);
  await screen.until(/ERROR: at the end/);
  await screen.until(/● following warn and worse/);
});

it('berth ui reports that a token is not accepted, and continues once one is', async () => {
  const config = (token: string): string => `[auth]\ntoken = "${token}"\n`;
  const daemon = await daemonOf({ config: config('a-token-of-before') });
  const wrong = openUi(daemon, [], { BERTH_AUTH_TOKEN: 'a-wrong-token' });
  await wrong.until(/the token is not accepted, waiting/);
  wrong.type('q');
  expect(await wrong.ended).toMatchObject({ exitCode: 0 });
  const screen = openUi(daemon);
  await screen.until(/No service is registered/);
  daemon.signal('SIGKILL');
  await daemon.exited;
  await screen.until(/the daemon is gone, waiting/);
  const settings = readFileSync(daemon.configFile, 'utf8').replace('a-token-of-before', 'a-token-of-now');
  writeFileSync(daemon.configFile, settings);
  const { port } = await startDaemon({ stateDir: daemon.stateDir, config: config('a-token-of-now') });
  // Its line has room for the address of the daemon.
  screen.resize(120, 24);
  await screen.until(new RegExp(`:${port} `));
});

/** An interactive shell with a program as its job. */
function openShell(call: readonly string[]): Screen {
  const shell = openTerminal(['bash', '--norc', '--noprofile', '-i'], { PS1: '@@', HISTFILE: '' });
  shell.type(`${call.join(' ')}\r`);
  return shell;
}

const childOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());

it('berth ui goes to the shell and back, however it is suspended, and adapts to a resize meanwhile', async () => {
  const daemon = await withServices();
  const screen = openShell(uiCall(daemon));
  const isSettled = (): boolean => !screen.isAlternate() && screen.lines().some((line) => /^@@$/.test(line));
  await screen.until(/^› ○ broken/);
  screen.type('\x1a');
  await eventually(isSettled, screen.lines);
  expect(screen.lines().join('\n')).not.toMatch(/○ broken|Berth {2}/);
  screen.resize(60, 12);
  screen.type('fg\r');
  await screen.until(/^› ○ broken/);
  await screen.until(/^ \/ filter {2}s start {2}x stop {2}r restart {8}\? help {2}q quit/);
  expect(screen.lines()).toHaveLength(12);
  // As `kill -TSTP` from elsewhere, to the interface alone.
  process.kill(childOf(screen.pid), 'SIGTSTP');
  await eventually(isSettled, screen.lines);
  screen.type('fg\r');
  await screen.until(/^› ○ broken/);
  screen.type('q');
  await eventually(isSettled, screen.lines);
  screen.type('stty -a | grep -c " icanon.* echo "\r');
  await screen.until(/^1$/);
});

it('an agent gets the size that the window has when its viewer is back from the shell', async () => {
  const daemon = await daemonOf();
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec cat', cwd: newFolder() });
  const screen = openShell([process.execPath, BIN, 'agent', 'attach', 'bot', '--state-dir', daemon.stateDir]);
  const sizeOf = async (): Promise<string> => {
    const { cols, rows } = (await daemon.request('GET', '/v1/agents/bot/screen')).body;
    return `${cols}x${rows}`;
  };
  await eventually(async () => (await sizeOf()) === '80x24');
  process.kill(childOf(screen.pid), 'SIGTSTP');
  await eventually(() => screen.lines().some((line) => line === '@@'), screen.lines);
  // Only the shell is told.
  screen.resize(60, 12);
  screen.type('fg\r');
  await eventually(async () => (await sizeOf()) === '60x12', sizeOf);
});

it('berth ui follows workloads, shows one with its policy, and copies with a single key', async () => {
  const cluster = await kubeDouble();
  open.push(() => cluster.stop());
  cluster.put('Deployment', workload('shop', 'web', 2));
  const daemon = await daemonOf({ config: '[cloud]\ntoken = "cloud-token-of-the-test"' });
  const ask = async (method: string, path: string, body?: unknown): Promise<any> => {
    const headers = { authorization: 'Bearer cloud-token-of-the-test' };
    const answer = await daemon.request(method, path, body, headers);
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
    return answer.body;
  };
  const screen = openUi(daemon);
  await screen.until(/No service is registered/);
  const { id } = await ask('POST', '/k8s/clusters', { name: 'test', kubeconfig: cluster.kubeconfig });
  await ask('POST', `/k8s/clusters/${id}/sync`);
  await ask('PUT', '/k8s/policies/unused', { selector: { namespaces: ['shop'] }, idle_timeout_minutes: 500 });
  // The first event of services finds that there are clusters.
  await ask('POST', '/v1/services', { name: 'other', cmd: 'sleep 600', port: null });
  await screen.until(/● web +awake 2\/2/);
  // What others change is no event: it is seen all the same.
  cluster.change('Deployment', 'shop', 'web', (object) => {
    object.spec.replicas = 3;
    object.status = statusOf(3);
  });
  await screen.until(/● web +awake 3\/3/);
  const [{ id: web }] = await ask('GET', '/k8s/workloads');
  await ask('POST', `/k8s/workloads/${web}/sleep`);
  // Its status counts for the generation that the sleep has made.
  await eventually(() => cluster.get('Deployment', 'shop', 'web').spec.replicas === 0);
  cluster.change('Deployment', 'shop', 'web', (object) => {
    object.status = { replicas: 0, observedGeneration: object.metadata.generation };
  });
  await screen.until(/☾ web +asleep/);
  screen.type('G\r');
  await screen.until(/shop\/web +asleep/);
  await screen.until(/decides +policy:unused/);
  screen.type('y');
  await screen.until(/copied: shop\/web/);
  expect(screen.raw().split('\x1b]52;')).toHaveLength(2);
  expect(screen.raw()).toContain(`\x1b]52;c;${Buffer.from('shop/web').toString('base64')}\x07`);
  screen.type('qP');
  await screen.until(/^ unused$/);
  await screen.until(/selects +namespaces shop/);
  screen.type('qq');
  expect(await screen.ended).toMatchObject({ exitCode: 0 });
});

it('berth ui ends when its terminal is closed, and fits every size', async () => {
  const daemon = await withServices();
  const screen = openUi(daemon);
  await screen.until(/^› ○ broken/);
  screen.resize(250, 70);
  await screen.until(/URL OR TITLE/);
  screen.resize(20, 5);
  await eventually(() => screen.lines().length === 5 && !/URL/.test(screen.lines().join()), screen.lines);
  await screen.until(/^› ○ broken {0,12}$/);
  screen.kill('SIGHUP');
  expect(await screen.ended).toMatchObject({ signal: constants.signals.SIGHUP });
  expect(screen.raw().endsWith(LEFT)).toBe(true);
  const closed = openUi(daemon);
  await closed.until(/^› ○ broken/);
  closed.close();
  // Not SIGABRT or SIGSEGV, with a core dump.
  expect(await closed.ended).toMatchObject({ signal: constants.signals.SIGHUP });
});

it('berth agent attach attaches again by itself after kill -9 of the daemon', async () => {
  const daemon = await daemonOf();
  const { stateDir, configFile } = daemon;
  const cmd = 'stty -echo; while read -r line; do echo "[$line]"; [ "$line" != bye ] || exit 4; done';
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd, cwd: newFolder() });
  const call = [process.execPath, BIN, 'agent', 'attach', 'bot', '--state-dir', stateDir];
  const screen = openTerminal([...call, '--config', configFile]);
  const leaving = openTerminal([...call, '--config', configFile, '--observe']);
  screen.type('first\r');
  await screen.until(/^\[first\]$/);
  await leaving.until(/^\[first\]$/);
  daemon.signal('SIGKILL');
  await daemon.exited;
  await screen.until(/The connection to bot is lost; attaching again\. Ctrl-\] leaves\./);
  expect(screen.isAlternate()).toBe(false);
  await leaving.until(/The connection to bot is lost/);
  screen.type('dropped\r');
  leaving.type('\x1d');
  expect(await leaving.ended).toMatchObject({ exitCode: 0 });
  const next = await startDaemon({ stateDir });
  await screen.until(/^\[first\]$/);
  expect(screen.isAlternate()).toBe(true);
  screen.type('second\r');
  await screen.until(/^\[second\]$/);
  const { text } = await next
    .request('GET', '/v1/agents/bot/logs')
    .then(({ body }) => ({ text: body.lines }));
  expect(text).toEqual(['[first]', '[second]']);
  screen.type('bye\r');
  expect(await screen.ended).toMatchObject({ exitCode: 4 });
});

it('berth agent attach in a window that is larger than a terminal can be gives it the largest size', async () => {
  const daemon = await daemonOf();
  const cmd = 'until [ "$(stty size)" = "30 1000" ]; do sleep 0.1; done; echo wide; read -r line';
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd, cwd: newFolder() });
  const call = [process.execPath, BIN, 'agent', 'attach', 'bot', '--state-dir', daemon.stateDir];
  const screen = openTerminal([...call, '--config', daemon.configFile]);
  screen.resize(1_200, 30);
  await screen.until(/^wide$/);
  screen.type('\x1d');
  expect(await screen.ended).toMatchObject({ exitCode: 0 });
});

it('an observer sees the terminal at its own size, whichever size the window has', async () => {
  const daemon = await daemonOf();
  const { stateDir, configFile } = daemon;
  // Scrolls, wraps a line at its own width, and then addresses rows on the main screen.
  const cmd = [
    'i=1; while [ $i -le 40 ]; do echo "scrolled $i"; i=$((i+1)); done',
    'printf "%0110d" 0; i=1; while [ $i -le 28 ]; do printf "\\033[%d;1H\\033[2Krow %d" $i $i; i=$((i+1)); done',
    'read -r line; printf "\\033]2;about rows\\007\\033[3;1Hrow three \\033[10;5H"; exec sleep 60',
  ].join('; ');
  const size = { cols: 100, rows: 30 };
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd, cwd: newFolder(), ...size });
  const call = [process.execPath, BIN, 'agent', 'attach', 'bot', '--observe', '--state-dir', stateDir];
  const screen = openTerminal([...call, '--config', configFile]);
  const rows = Array.from({ length: 28 }, (_, at) => `row ${at + 1}`);
  const all = [...rows, '0'.repeat(100), '0'.repeat(10)];
  const shows = (lines: string[]) =>
    eventually(() => screen.lines().slice(0, lines.length).join('\n') === lines.join('\n'), screen.lines);
  await screen.until(/^row 28$/);
  for (const [cols, height] of [
    [120, 40],
    [100, 30],
    [101, 31],
  ] as const) {
    screen.resize(cols, height);
    await shows([...all, ...Array<string>(height - 30).fill('')]);
  }
  // Rows that end with the cursor's, and the left part of each.
  screen.resize(50, 10);
  await shows(rows.slice(18));
  await daemon.request('POST', '/v1/agents/bot/keys', { keys: ['Enter'] });
  await shows(['row 1', 'row 2', 'row three']);
  await eventually(() => screen.cursor().join() === '4,9', screen.cursor);
  expect(screen.raw()).toContain('\x1b]0;about rows\x07');
  expect(screen.raw()).toMatch(/^Watching bot/);
  expect(screen.isAlternate()).toBe(true);
  screen.type('\x1d');
  expect(await screen.ended).toMatchObject({ exitCode: 0 });
  expect(screen.raw().match(/Watching bot/g)).toHaveLength(1);
});

it('berth agent attach attaches again by itself after a change of auth.token', async () => {
  const config = (token: string): string => `[auth]\ntoken = "${token}"\n`;
  const [old, changed] = ['an-old-token-of-berth', 'a-new-token-of-berth'];
  const daemon = await daemonOf({ config: config(old) });
  const { stateDir, configFile } = daemon;
  const cmd = 'stty -echo; while read -r line; do echo "[$line]"; [ "$line" != bye ] || exit 4; done';
  const headers = { authorization: `Bearer ${old}` };
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd, cwd: newFolder() }, headers);
  const call = [process.execPath, BIN, 'agent', 'attach', 'bot', '--state-dir', stateDir];
  const screen = openTerminal([...call, '--config', configFile]);
  screen.type('first\r');
  await screen.until(/^\[first\]$/);
  writeFileSync(configFile, readFileSync(configFile, 'utf8').replace(old, changed));
  daemon.signal('SIGHUP');
  await screen.until(/The connection to bot is lost; attaching again/);
  await screen.until(/^\[first\]$/);
  screen.type('bye\r');
  expect(await screen.ended).toMatchObject({ exitCode: 4 });
});

it('berth agent attach restores the terminal when it gets SIGHUP', async () => {
  const daemon = await withServices();
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'printf ready; exec sleep 1000' });
  const { stateDir, configFile } = daemon;
  const call = [process.execPath, BIN, 'agent', 'attach', 'bot', '--state-dir', stateDir];
  const script = `${[...call, '--config', configFile].join(' ')}; stty -a | grep -c 'icanon.* echo '`;
  const screen = openTerminal(['sh', '-c', script]);
  await screen.until(/^ready$/);
  const attach = Number(readFileSync(`/proc/${screen.pid}/task/${screen.pid}/children`, 'utf8').trim());
  process.kill(attach, 'SIGHUP');
  await screen.until(/^1$/);
  expect(screen.isAlternate()).toBe(false);
});

it('berth ui requires a terminal with cursor control, and says so', async () => {
  const state = ['--state-dir', join(folder(), 'state')];
  const ran = await berth(['ui', ...state], { env: cleanEnv(folder()) });
  expect(ran).toMatchObject({ code: 2, stdout: '' });
  expect(ran.stderr).toContain('berth ui needs a terminal that it can draw on');
  const dumb = openTerminal([process.execPath, BIN, 'ui', ...state], { TERM: 'dumb' });
  expect(await dumb.ended).toMatchObject({ exitCode: 2 });
  expect(dumb.raw()).toContain('berth ui needs a terminal that it can draw on');
  expect(dumb.raw()).not.toContain('\x1b[?1049h');
});
