// docs/reference.md "Commands": `berth run` as a program, with pipes and in a real terminal.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync, writeSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pty from 'node-pty';
import { expect, it, onTestFinished } from 'vitest';
import { isAlive, processRow } from '../../../src/adapters/process/process_table.ts';
import { quoteShellWord } from '../../../src/protocol/shell_word.ts';
import { BIN } from '../../kit/built_program.ts';
import { type Daemon, eventually, hostPid } from '../../kit/daemon.ts';
import { must } from '../../kit/must.ts';
import { berth, cleanEnv, daemonOf, folder } from '../berth_process.ts';

const SECRET = 'only-the-daemon-knows-it';

async function setting() {
  const daemon = await daemonOf();
  const cwd = folder();
  const home = folder();
  const temporary = folder();
  const env = cleanEnv(home, {
    BERTH_STATE_DIR: daemon.stateDir,
    TMPDIR: temporary,
    MINE: 'of the shell',
  });
  await daemon.request('POST', '/v1/services', { name: 'db', port: null, cmd: 'x', cwd, env: { SECRET } });
  const run = (args: string[], input?: string) =>
    berth(['run', ...args], { cwd: home, env, ...(input === undefined ? {} : { input }) });
  return { daemon, cwd, home, env, run, left: () => readdirSync(temporary) };
}

async function isQuiet(daemon: Daemon): Promise<void> {
  const logs = join(daemon.stateDir, 'logs');
  await eventually(() => readdirSync(logs).every((name) => !name.startsWith('run-')));
}

it('berth run runs in the environment and folder of a service, and passes on output and exit code', async () => {
  const { cwd, daemon, home, run, left } = await setting();
  const told = await run(['-s', 'db', '--', 'echo "$SECRET $BERTH_SERVICE $PWD"; echo no >&2; exit 7']);
  expect(told).toMatchObject({ code: 7, stdout: `${SECRET} db ${cwd}\n`, stderr: 'no\n' });
  // Without a service: the folder and the environment of the shell.
  expect(await run(['--', 'echo "$MINE $PWD ${SECRET-none}"'])).toMatchObject({
    code: 0,
    stdout: `of the shell ${home} none\n`,
  });
  expect((await run(['--', 'kill -9 $$'])).code).toBe(137);
  expect(await run(['-s', 'nope', '--', 'true'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no service nope'),
  });
  expect(await run(['--cwd', '/no/such', '--', 'true'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('its working directory /no/such does not exist'),
  });
  // It is no service: nothing of it is listed, told or left.
  expect((await daemon.request('GET', '/v1/services')).body.services).toHaveLength(1);
  const { body } = await daemon.request('GET', '/v1/events/history');
  expect(JSON.stringify(body)).not.toContain('run-');
  await isQuiet(daemon);
  expect(left()).toEqual([]);
});

it('berth run passes on redirected input and output unchanged, with their end', async () => {
  const { env, home } = await setting();
  const bytes = randomBytes(1_000_000);
  writeFileSync(join(home, 'in'), bytes);
  const shell = spawn(
    'sh',
    ['-c', `'${process.execPath}' '${BIN}' run -- 'cat; echo end >&2' < in > out 2> err`],
    {
      cwd: home,
      env,
    },
  );
  await new Promise((resolve) => shell.on('close', resolve));
  expect(readFileSync(join(home, 'out')).equals(bytes)).toBe(true);
  expect(readFileSync(join(home, 'err'), 'utf8')).toBe('end\n');
});

it('berth run ends when its input is not read, and when its output is not', async () => {
  const { env, home } = await setting();
  const berthRun = `'${process.execPath}' '${BIN}' run`;
  const pipes = `yes | ${berthRun} -- true; echo "code $?"; ${berthRun} -- 'while :; do echo y; done' | head -1`;
  const shell = spawn('sh', ['-c', pipes], { cwd: home, env });
  let text = '';
  shell.stdout.on('data', (chunk) => (text += chunk));
  await new Promise((resolve) => shell.on('close', resolve));
  expect(text).toBe('code 0\ny\n');
});

it('berth run in a terminal without a size has the default one for its command', async () => {
  const { env, home } = await setting();
  const script = `stty rows 0 cols 0; exec '${process.execPath}' '${BIN}' run -- 'stty size'`;
  const terminal = pty.spawn('sh', ['-c', script], {
    cwd: home,
    env: { ...env, TERM: 'xterm' },
    encoding: null,
    cols: 80,
    rows: 24,
  });
  let screen = '';
  terminal.onData((bytes) => (screen += bytes.toString()));
  const exit = await new Promise<{ exitCode: number }>((resolve) => terminal.onExit(resolve));
  expect([exit.exitCode, screen.trim()]).toEqual([0, '32 120']);
});

it('berth run in a window that is larger than a terminal can be has the largest one, also after a resize', async () => {
  const { env, home } = await setting();
  const command = 'stty size; until [ "$(stty size)" = "40 1000" ]; do sleep 0.1; done; stty size';
  const terminal = pty.spawn(process.execPath, [BIN, 'run', '--', command], {
    cwd: home,
    env: { ...env, TERM: 'xterm' },
    encoding: null,
    cols: 1_001,
    rows: 1_200,
  });
  let screen = '';
  terminal.onData((bytes) => {
    screen += bytes.toString();
    if (screen === '1000 1000\r\n') terminal.resize(2_000, 40);
  });
  const exit = await new Promise<{ exitCode: number }>((resolve) => terminal.onExit(resolve));
  expect([exit.exitCode, screen.trim()]).toEqual([0, '1000 1000\r\n40 1000']);
});

/** A port that leads to the daemon. It holds back the start of each WebSocket until `release` resolves. */
async function heldHandshakes({ port }: Daemon, release: () => Promise<void>): Promise<number> {
  const way = createServer((client) => {
    const there = connect(port, '127.0.0.1');
    for (const socket of [client, there]) socket.on('error', () => undefined);
    // The daemon accepts its own address only.
    client.on('data', (chunk) =>
      there.write(chunk.toString('latin1').replace(/^(Host: .*:)\d+/im, `$1${port}`), 'latin1'),
    );
    there.on('close', () => client.destroy());
    let passed = Promise.resolve();
    there.on('data', (chunk) => {
      if (chunk.includes('101 Switching Protocols')) passed = release();
      passed = passed.then(() => void client.write(chunk));
    });
  });
  onTestFinished(() => void way.close());
  await once(way.listen(0, '127.0.0.1'), 'listening');
  return (way.address() as AddressInfo).port;
}

it('berth run notices that its window has changed while the command was being started', async () => {
  const { daemon, env, home } = await setting();
  const program = 'until [ "$(stty size)" = "40 90" ]; do sleep 0.05; done; echo seen';
  const port = await heldHandshakes(daemon, async () => {
    terminal.resize(90, 40);
    // The signal of the new size arrives before the answer.
    await pause(300);
  });
  const args = [BIN, '--url', `http://127.0.0.1:${port}`, 'run', '--', program];
  const terminal = pty.spawn(process.execPath, args, { cwd: home, env, encoding: null, cols: 80, rows: 30 });
  let screen = '';
  terminal.onData((bytes) => (screen += bytes.toString()));
  await eventually(
    () => screen.includes('seen'),
    () => screen,
  );
});

it('berth run has a terminal if its caller has one: size, keys, signals, and no extra echo', async () => {
  const { env, home } = await setting();
  const program =
    'stty size; trap "echo got INT" INT; trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done';
  const terminal = pty.spawn(process.execPath, [BIN, 'run', '-s', 'db', '--', program], {
    cwd: home,
    env: { ...env, TERM: 'xterm' },
    encoding: null,
    cols: 100,
    rows: 30,
  });
  let screen = '';
  terminal.onData((bytes) => (screen += bytes.toString()));
  const ended = new Promise<{ exitCode: number }>((resolve) => terminal.onExit(resolve));
  await eventually(
    () => screen.includes('ready'),
    () => screen,
  );
  expect(screen).toContain('30 100');
  terminal.resize(90, 20);
  await eventually(
    () => screen.includes('20 90'),
    () => screen,
  );
  writeSync(terminal.fd, '\x03');
  await eventually(
    () => screen.includes('got INT'),
    () => screen,
  );
  writeSync(terminal.fd, '\x1c');
  expect((await ended).exitCode).toBe(131);
});

it.each(['sh', 'bash'])(
  'berth run ends with the exit code of a %s that has handled Ctrl-C',
  async (shell) => {
    const { env, home, run } = await setting();
    const program = 'trap "exit 5" INT; echo ready; while :; do sleep 0.05; done';
    const terminal = pty.spawn(process.execPath, [BIN, 'run', '--', shell, '-c', program], {
      cwd: home,
      env: { ...env, TERM: 'xterm' },
      encoding: null,
      cols: 80,
      rows: 24,
    });
    let screen = '';
    terminal.onData((bytes) => (screen += bytes.toString()));
    const ended = new Promise<{ exitCode: number }>((resolve) => terminal.onExit(resolve));
    await eventually(
      () => screen.includes('ready'),
      () => screen,
    );
    writeSync(terminal.fd, '\x03');
    expect((await ended).exitCode).toBe(5);
    // What only a shell can do is left to it.
    expect(await run(['--', 'exit', '3'])).toMatchObject({ code: 3 });
    expect(await run(['--', 'A=b c', shell, '-c', 'echo "$A"'])).toMatchObject({ code: 127 });
    expect(await run(['--', 'A=b', shell, '-c', 'echo "$A"'])).toMatchObject({ code: 0, stdout: 'b\n' });
    expect(await run(['--', './no such', 'x'])).toMatchObject({ code: 127 });
  },
);

it('berth run ends with its caller', async () => {
  const { daemon, env, home } = await setting();
  const child = spawn(process.execPath, [BIN, 'run', '--', 'echo $$; exec sleep 1000'], { cwd: home, env });
  let text = '';
  child.stdout.on('data', (chunk) => (text += chunk));
  await eventually(() => text.includes('\n'));
  const pid = Number(text);
  const { startTicks } = must(processRow(pid));
  child.kill('SIGKILL');
  await eventually(() => !isAlive(pid, startTicks));
  await isQuiet(daemon);
});

it('an unattached command starts no process, and only one client can attach to it', async () => {
  const { daemon } = await setting();
  expect(await daemon.request('POST', '/v1/commands', { cmd: 'true', service: 'nope' })).toMatchObject({
    status: 404,
    body: { code: 'unknown_service' },
  });
  expect(await daemon.request('POST', '/v1/commands', { cmd: '', cols: 0, foo: 1 })).toMatchObject({
    status: 400,
    body: { code: 'invalid_spec' },
  });
  const { status, body } = await daemon.request('POST', '/v1/commands', { cmd: 'true' });
  expect([status, body]).toEqual([201, { id: expect.stringMatching(/^run-[0-9a-f]{16}$/) }]);
  expect((await daemon.request('GET', '/v1/commands/web/attach')).status).toBeGreaterThanOrEqual(400);
});

it('berth run leaves nothing when it is killed', async () => {
  const { env, home } = await setting();
  const own = folder();
  let kill = (_signal: NodeJS.Signals): void => {};
  let said = '';
  const ended = berth(['run', '--', 'echo up; exec sleep 100'], {
    cwd: home,
    env: { ...env, TMPDIR: own },
    onStart: (end) => {
      kill = end;
    },
    onStdout: (text) => {
      said = text;
    },
  });
  await eventually(() => said === 'up\n' && readdirSync(own).length === 0);
  kill('SIGKILL');
  expect((await ended).signal).toBe('SIGKILL');
  expect(readdirSync(own)).toEqual([]);
});

it('berth run removes what killed ones have left, and nothing else', async () => {
  const { daemon, env: own, home } = await setting();
  const temporary = folder();
  const env = { ...own, TMPDIR: temporary };
  const host = hostPid(daemon.stateDir);
  // While the process host is stopped, the command does not start, and the FIFOs are still there.
  process.kill(host, 'SIGSTOP');
  const child = spawn(process.execPath, [BIN, 'run', '--', 'true'], { cwd: home, env });
  const closed = new Promise((resolve) => child.on('close', resolve));
  const fifos = (): string[] => readdirSync(temporary).flatMap((name) => readdirSync(join(temporary, name)));
  await eventually(() => fifos().length === 3);
  child.kill('SIGKILL');
  await closed;
  process.kill(host, 'SIGCONT');
  expect(readdirSync(temporary)).toEqual([expect.stringMatching(`^berth-run-${child.pid}-`)]);
  const target = folder();
  writeFileSync(join(target, 'stdin'), '');
  symlinkSync(target, join(temporary, `berth-run-${child.pid}-link`));
  mkdirSync(join(temporary, `berth-run-${process.pid}-alive`));
  expect((await berth(['run', '--', 'true'], { cwd: home, env })).code).toBe(0);
  expect(readdirSync(temporary).toSorted()).toEqual(
    [`berth-run-${child.pid}-link`, `berth-run-${process.pid}-alive`].toSorted(),
  );
  expect(readdirSync(target)).toEqual(['stdin']);
});

it('berth run leaves line feeds as they are, unless another program may write to the terminal', async () => {
  const { env, home } = await setting();
  const program = `stty raw -echo; read -r _; printf 'abc\\ndef\\n'`;
  const outputOf = async (redirected: string): Promise<string> => {
    const script = `'${process.execPath}' '${BIN}' run -- sh -c ${quoteShellWord(program)} ${redirected}`;
    const options = { cwd: home, env: { ...env, TERM: 'xterm' }, encoding: null, cols: 80, rows: 24 };
    const terminal = pty.spawn('sh', ['-c', script], options);
    let screen = '';
    terminal.onData((bytes) => (screen += bytes.toString()));
    const ended = new Promise((resolve) => terminal.onExit(resolve));
    writeSync(terminal.fd, 'go\n');
    await ended;
    return screen;
  };
  expect(await outputOf('')).toContain('abc\ndef\n');
  expect(await outputOf('2>&1 | cat')).toContain('abc\r\ndef\r\n');
});
