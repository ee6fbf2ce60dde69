// Every command on a real daemon with real processes: its output and its exit code.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { limitsTrouble } from '../../../src/cli/commands/doctor_limits.ts';
import { type Daemon, eventually, isAlive } from '../../kit/daemon.ts';
import { freePort } from '../../kit/free_ports.ts';
import { exchangeKey, pageServer } from '../../kit/page_session.ts';
import { berth, cleanEnv, daemonOf, folder, type Ran, type RunOptions } from '../berth_process.ts';

const NODE = JSON.stringify(process.execPath);

/** A service that listens on $PORT after `delay` ms and prints a line. */
const server = (delay = 0): string =>
  `exec ${NODE} -e 'setTimeout(() => require("http").createServer((q, r) => r.end("hi")).listen(process.env.PORT, () => console.log("listening on", process.env.PORT)), ${delay})'`;

/** `berth` against one daemon. */
const against =
  (daemon: Daemon, env: Record<string, string> = {}) =>
  (line: string | readonly string[], options: RunOptions = {}): Promise<Ran> =>
    berth(typeof line === 'string' ? line.split(' ') : line, {
      ...options,
      env: cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile, ...env }),
    });

const register = async (daemon: Daemon, spec: object): Promise<void> => {
  const answer = await daemon.request('POST', '/v1/services', { port: freePort(), ...spec });
  expect(answer.status).toBe(201);
};

describe('a service without a port on the command line', () => {
  it('is added, started and listed without a URL', async () => {
    const run = against(await daemonOf());
    const line = ['add', 'worker', '--port', 'none', '--', 'exec sleep 1000'];
    expect(await run(line)).toMatchObject({
      code: 0,
      stdout: 'worker is registered; `berth start worker` starts it\n',
    });
    expect((await run('start worker')).stdout).toMatch(
      /^✓ worker started \(no ready-check\), pid \d+, [\d.]+m?s\n$/,
    );
    expect((await run('ps')).stdout).toMatch(/\nworker +running .*-\n$/);
    expect(await run('url worker')).toMatchObject({ code: 1, stdout: '' });
    expect(await run([...line.slice(0, 4), '--ready', '/', 'x'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("probes the service's own port"),
    });
  });
});

it('agents on the command line are put to sleep and woken, and what is no agent is refused as such', async () => {
  const run = against(await daemonOf());
  expect(await run('agent spinup bot --type shell -- exec sh')).toMatchObject({ code: 0 });
  expect(await run('agent wait bot --for idle')).toMatchObject({ code: 0 });
  expect((await run('agent sleep bot --force')).stdout).toBe('✓ bot is sleeping\n');
  expect((await run('agent sleep bot --force')).stdout).toBe('· bot is sleeping\n');
  expect((await run('agent wake bot --force')).stdout).toMatch(/^✓ bot is running \(pid \d+\)\n$/);
  for (const action of ['sleep', 'wake'])
    expect((await run(`agent ${action} nobody`)).stderr).toContain('there is no agent nobody');
});

describe('services on the command line', () => {
  it('are added, started, shown, stopped and removed', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    const empty = await run('ps');
    expect([empty.code, empty.stdout]).toEqual([0, '']);
    expect(empty.stderr).toContain('`berth add` registers one');

    const added = await run([
      'add',
      'web',
      '--ready',
      '/',
      '-e',
      'MODE=a b',
      '--',
      ...'sh -c'.split(' '),
      `echo "mode $MODE"; ${server()}`,
    ]);
    expect(added).toMatchObject({ code: 0, stderr: '' });
    expect(added.stdout).toMatch(
      /^web is registered at http:\/\/localhost:\d+; `berth start web` starts it\n$/,
    );
    const { body } = await daemon.request('GET', '/v1/services/web');
    expect(body.ready).toEqual({ http: '/' });

    const started = await run('start web');
    expect(started).toMatchObject({ code: 0, stderr: '' });
    expect(started.stdout).toMatch(/^✓ web is running at http:\/\/localhost:\d+ \(pid \d+, [\d.]+m?s\)\n$/);
    const again = await run('start web');
    expect(again).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^· web is already running at http/),
    });
    expect(await run('start web --strict')).toMatchObject({ code: 8, stdout: '' });

    const table = await run('ps');
    expect(table.stdout.split('\n')[0]?.split(/ +/)).toEqual([
      'NAME',
      'STATUS',
      'GROUP',
      'PID',
      'CPU',
      'MEMORY',
      'UP',
      'URL',
    ]);
    expect(table.stdout).toMatch(
      /\nweb +running +- +\d+ +[\d.]+% +(?:-|\d+ MB) +\S+ +http:\/\/localhost:\d+\n$/,
    );
    expect((await run('ps -q')).stdout).toBe('web\n');
    expect(JSON.parse((await run('ps --json')).stdout)).toMatchObject([{ name: 'web', status: 'running' }]);
    expect(JSON.parse((await run('-o jsonl ps')).stdout)).toMatchObject({ name: 'web' });
    expect(await run('ps --status crashed')).toMatchObject({ code: 0, stdout: '' });
    expect((await run('url web')).stdout).toBe(`${body.url}\n`);
    expect((await run('logs web')).stdout).toBe(`mode a b\nlistening on ${body.port}\n`);

    const restarted = await run('restart web --json');
    const [record] = JSON.parse(restarted.stdout);
    expect(record).toMatchObject({ name: 'web', status: 'running', url: body.url });
    const stopped = await run('stop web');
    expect(stopped).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^✓ web is stopped \(SIGTERM, .*\)\n$/),
    });
    expect((await run('stop web')).stdout).toBe('· web is stopped already\n');
    expect(await run('rm -A --stack shop web')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('-A covers all stacks: it does not go with --stack or --project'),
    });
    expect(await run('rm web')).toMatchObject({ code: 0, stdout: '✓ web is removed\n' });
    expect((await daemon.request('GET', '/v1/services/web')).status).toBe(404);
  });

  it('stop of a task names the next run of its schedule, which goes on', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    const spec = { name: 'nightly', kind: 'task', cmd: 'true', schedule: '0 3 1 1 *' };
    const { nextRunAt } = (await daemon.request('POST', '/v1/services', spec)).body;
    expect((await run('stop nightly')).stdout).toBe(
      `· nightly is stopped already\n    its schedule starts it again, next at ${nextRunAt}; it ends without \`schedule\`, or with \`berth rm\`\n`,
    );
    expect((await daemon.request('GET', '/v1/services/nightly')).body.nextRunAt).toBe(nextRunAt);
  });

  it('report why they do not start, with the exit code', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    await register(daemon, {
      name: 'late',
      cmd: `echo waking up; ${server(60_000)}`,
      ready: `http://localhost:${freePort()}/`,
    });
    await register(daemon, {
      name: 'broken',
      cmd: 'echo "cannot find the thing" >&2; exit 3',
      ready: `http://localhost:${freePort()}/`,
    });
    await register(daemon, { name: 'taken', cmd: 'exec sleep 100', port: daemon.port });

    const late = await run('start late --timeout 300ms');
    expect([late.code, late.stdout]).toEqual([7, '']);
    expect(late.stderr).toMatch(/^✗ late: /);
    expect(late.stderr).toContain('waking up');
    const broken = await run('start broken');
    expect([broken.code, broken.stdout]).toEqual([1, '']);
    expect(broken.stderr).toContain('exit code 3');
    expect(broken.stderr).toContain('cannot find the thing');
    const taken = await run('start taken');
    expect(taken.code).toBe(8);
    expect(taken.stderr).toContain(String(daemon.port));

    const data = await run('start broken --json');
    expect(JSON.parse(data.stdout)).toEqual([]);
    expect(data.stderr.trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(data.stderr)).toMatchObject({
      name: 'broken',
      code: 'start_failed',
      message: expect.any(String),
      hint: expect.any(String),
    });

    const both = await run('start broken unknown');
    expect(both.stderr).toContain('✗ broken: ');
    expect(both.stderr).toContain('✗ unknown: there is no service unknown');
  });

  it('have a status as exit code: 0 running, 3 not, 4 unknown', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    await register(daemon, { name: 'web', cmd: 'echo "last words"; exit 7', group: 'site' });
    await register(daemon, { name: 'idle', cmd: 'exec sleep 100' });
    await run('start web idle');
    await run('wait web --for stopped');
    const crashed = await run('explain web');
    expect(crashed.code).toBe(3);
    expect(crashed.stdout).toMatch(/^web is crashed \(exit 7\)\n/);
    expect(crashed.stdout).toContain('exit code 7');
    expect(crashed.stdout).toContain('| last words');
    expect((await run('status idle')).code).toBe(0);
    const unknown = await run('status nothing');
    expect(unknown).toMatchObject({
      code: 4,
      stdout: '',
      stderr: 'there is no service nothing; `berth ps` lists them\n',
    });
    const data = await run('status web --json');
    expect(JSON.parse(data.stdout)).toMatchObject({
      name: 'web',
      status: 'crashed',
      exit: { exitCode: 7 },
      lastLines: ['last words'],
    });
  });

  it('can be waited for', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    const port = freePort();
    await register(daemon, { name: 'slow', cmd: server(400), port, ready: `http://localhost:${port}/` });
    expect((await run('start slow --no-wait')).stdout).toMatch(/^✓ slow is starting at /);
    expect(await run('wait slow')).toMatchObject({ code: 0, stdout: '✓ slow is running\n' });
    const late = await run('wait slow --for stopped --timeout 200ms');
    expect(late.code).toBe(1);
    expect(late.stderr).toContain('is running, not stopped, after 200ms');
    await register(daemon, { name: 'idle', cmd: 'exec sleep 1' });
    expect((await run('wait idle --timeout 100ms')).code).toBe(7);
  });

  it('start and stop as a group', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    await register(daemon, { name: 'db', cmd: 'exec sleep 100', group: 'site' });
    await register(daemon, { name: 'web', cmd: 'exec sleep 100', group: 'site', dependsOn: ['db'] });
    const started = await run('group start site');
    expect(started.stdout).toMatch(/^(db|web) is running \(pid \d+\)\n(db|web) is running \(pid \d+\)\n$/);
    expect((await run('group ls')).stdout).toMatch(/\nsite +2 +2\n$/);
    const again = await run('restart --group site');
    expect(again.stdout).toMatch(/^(db|web) is running \(pid \d+\)\n(db|web) is running \(pid \d+\)\n$/);
    expect(again.stdout).not.toBe(started.stdout);
    const { body } = await daemon.request('GET', '/v1/events/history?types=service.stopped,service.started');
    const order = body.events.map(({ type, data }: any) => `${data.name} ${type.slice('service.'.length)}`);
    expect(order.slice(2)).toEqual(['web stopped', 'db stopped', 'db started', 'web started']);
    expect((await run('restart web --group site')).code).toBe(2);
    expect((await run('stop --group site')).stdout).toMatch(/✓ db is stopped.*\n|✓ web is stopped/);
    expect((await run('group stop site --json')).stdout).toContain('"name": "site"');
    expect(await run('start --group nothing')).toMatchObject({ code: 1, stdout: '' });
    expect((await run('group start nothing')).code).toBe(1);
  });
});

describe('logs and events', () => {
  it('are merged by time, and escaped unless raw', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    const gates = folder();
    const passes = (gate: string): string => `while [ ! -e ${gates}/${gate} ]; do sleep 0.02; done`;
    await register(daemon, {
      name: 'a',
      cmd: `printf "1 \\033[31mred\\033[0m\\n"; ${passes('third')}; echo 3; sleep 100`,
    });
    await register(daemon, {
      name: 'bb',
      cmd: `${passes('second')}; printf "2 \\342\\200\\256txt\\n"; sleep 100`,
    });
    expect((await run('start a bb')).code).toBe(0);
    const shown = (count: number) =>
      eventually(async () => (await run('logs')).stdout.split('\n').length === count + 1);
    await shown(1);
    writeFileSync(join(gates, 'second'), '');
    await shown(2);
    writeFileSync(join(gates, 'third'), '');
    await shown(3);
    const { stdout } = await run('logs');
    expect(stdout.split('\n').slice(0, 3)).toEqual(['a  | 1 red', 'bb | 2 \ufffdtxt', 'a  | 3']);
    expect((await run('logs --no-prefix a')).stdout).toBe('1 red\n3\n');
    expect((await run('logs a -n 1')).stdout).toBe('3\n');
    expect((await run('logs a --raw')).stdout).toBe('1 \x1b[31mred\x1b[0m\n3\n');
    expect((await run('logs a -t')).stdout).toMatch(/^\d{4}-\d\d-\d\dT\S+ 1 red\n/);
    for (const line of ['logs --json', 'logs --json --raw']) {
      const data = (await run(line)).stdout;
      const rows = data
        .trim()
        .split('\n')
        .map((row) => JSON.parse(row));
      expect(rows.map(({ name, line: text }) => [name, text])).toContainEqual(['bb', '2 \u202etxt']);
      // JSON is often printed on a terminal.
      expect(data).toContain('2 \\u202etxt');
    }
  });

  it('show the context of found lines, as grep does', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    const isFound = [3, 4, 9, 16];
    const lines = Array.from({ length: 20 }, (_, at) => (isFound.includes(at) ? `ERR ${at}` : `line ${at}`));
    const input = `${lines.join('\n')}\n`;
    await register(daemon, { name: 'a', cmd: `printf '${lines.join('\\n')}\\n'; sleep 100` });
    expect((await run('start a')).code).toBe(0);
    await eventually(async () => (await run('logs a')).stdout === input);
    for (const count of ['1', '2', '3'])
      expect((await run(`logs a --grep ERR -C ${count}`)).stdout).toBe(
        execFileSync('grep', ['-C', count, 'ERR'], { input, encoding: 'utf8' }),
      );
  });

  it('are followed until Ctrl-C, and end silently when the reader has exited', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    const gate = join(folder(), 'gate');
    await register(daemon, {
      name: 'count',
      cmd: `i=0; while :; do i=$((i+1)); echo line $i; while [ ! -e ${gate} ]; do sleep 0.02; done; sleep 0.02; done`,
    });
    await run('start count');
    let again: NodeJS.Timeout | undefined;
    const followed = await run('logs count -f', {
      onStdout: (text, kill) => {
        // The service prints only once somebody follows: of the past only the last lines are shown.
        if (text.includes('line 1\n')) writeFileSync(gate, '');
        // A second signal during the end changes nothing, as when a terminal and npm both pass Ctrl-C on.
        if (text.includes('line 20\n')) again ??= setInterval(() => kill('SIGINT'), 1);
      },
    });
    clearInterval(again);
    expect(followed).toMatchObject({ code: 130, signal: null, stderr: '' });
    const numbers = [...followed.stdout.matchAll(/line (\d+)\n/g)].map(([, number]) => Number(number));
    expect(numbers.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));

    const { execFile } = await import('node:child_process');
    const piped = await new Promise<string>((resolve, reject) => {
      const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
      const line = `${NODE} dist/bin.cjs logs count -f | head -n 2; echo "codes \${PIPESTATUS[*]}"`;
      execFile('bash', ['-c', line], { env }, (error, stdout, stderr) =>
        error ? reject(error) : resolve(stdout + stderr),
      );
    });
    expect(piped).toMatch(/^line \d+\nline \d+\ncodes 0 0\n$/);
  });

  it('continue when the daemon is killed and comes back on another port', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    await register(daemon, {
      name: 'count',
      cmd: 'i=0; while :; do i=$((i+1)); echo line $i; sleep 0.02; done',
    });
    await run('start count');
    let isBack = false;
    const logs = run('logs count -f -n 1000', {
      onStdout: (text, kill) => {
        const last = Number(/line (\d+)\n$/.exec(text)?.[1] ?? 0);
        if (isBack && last > backAt) kill('SIGINT');
        reached = last;
      },
    });
    let reached = 0;
    let backAt = Number.POSITIVE_INFINITY;
    let happened = '';
    const events = run('events --json', {
      onStdout: (text, kill) => {
        happened = text;
        if (text.includes('service.stopped')) kill('SIGINT');
      },
    });
    // Both are connected before the daemon is killed.
    await eventually(async () => {
      await register(daemon, { name: 'again', cmd: 'exec sleep 1' });
      return happened !== '' && reached > 5;
    });
    daemon.signal('SIGKILL');
    await daemon.exited;
    const again = await daemonOf({ stateDir: daemon.stateDir });
    backAt = reached + 50;
    isBack = true;
    const { stdout, stderr } = await logs;
    const numbers = [...stdout.matchAll(/line (\d+)\n/g)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
    expect(stderr).toMatch(/waiting for it to come back\nThe daemon is back\.\n/);
    await again.request('POST', '/v1/services/count/stop');
    expect((await events).stdout).toContain('"service.stopped"');
  });

  it('are shown as they happen, and past ones on request', async () => {
    const daemon = await daemonOf();
    const run = against(daemon);
    // Before the command follows, which may be at once or only later.
    await register(daemon, { name: 'probe', cmd: 'exec sleep 100' });
    await register(daemon, { name: 'web', cmd: 'exec sleep 100' });
    let seen = '';
    const following = run('events --json', {
      onStdout: (text, kill) => {
        seen = text;
        if (/"service\.stopped".*"web"|"web".*"service\.stopped"/.test(text)) kill('SIGTERM');
      },
    });
    // The command prints nothing when it has connected: events come until it shows one.
    await eventually(async () => {
      await run('restart probe');
      return seen !== '';
    });
    await run('start web');
    await run('stop web');
    const followed = await following;
    expect(followed.code).toBe(143);
    const events = followed.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const ofWeb = events.filter(({ data }) => data.name === 'web').map(({ type }) => type);
    expect(ofWeb).toEqual(['service.started', 'service.stopped']);
    const past = await run('events --past web --type started');
    expect(past.stdout).toMatch(
      /^\d\d:\d\d:\d\d {2}service\.started {3,}web started at http:\/\/localhost:\d+, pid \d+\n$/,
    );
    await register(daemon, { name: 'db', cmd: 'exec sleep 60', protocol: 'tcp' });
    await run('start db');
    const ofDb = await run('events --past db --type started');
    expect(ofDb.stdout).toMatch(/ db started at tcp:\/\/localhost:\d+, pid \d+\n$/);
    expect(await run('events --type exploded')).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('a call that fails', () => {
  it.each([
    ['pss', "unknown command 'pss' (Did you mean ps?)"],
    ['k8s slep', "unknown command 'slep' (Did you mean sleep?)"],
    ['agent nothing', '`berth agent` has '],
    ['k8s policy list', 'list is none of ls, set, rm, preview'],
    ['k8s tokens list', 'list is none of ls, create, revoke'],
    ['k8s grants list', 'list is none of ls, add, rm'],
    ['ps --jsn', "unknown option '--jsn' (Did you mean --json?)"],
    ['start web --timeout soon', 'It must be a duration such as 30s or 500ms'],
    ['logs -n 100001', 'It must be all, or a number from 0 to 100000'],
    ['ps -o yaml', '-o must be one of table, wide, json, jsonl'],
    ['ps --status gone', 'It must be one of running'],
    ['url', "missing required argument 'name'"],
    ['url a b', 'too many arguments'],
    ['start', 'no service is named'],
    ['completion tcsh', 'there is no completion for tcsh'],
    ['up', 'there is no berth.yaml in this folder or above it'],
    ['--url ftp://x ps', 'is not the URL of a daemon'],
  ])('berth %s ends with 2', async (line, message) => {
    const ran = await berth(line.split(' '), { env: cleanEnv(folder()), cwd: folder() });
    expect([ran.code, ran.stdout]).toEqual([2, '']);
    expect(ran.stderr).toContain(message);
  });

  it('exits with 5 when no daemon runs, and prints how to start one', async () => {
    const env = cleanEnv(folder());
    const ran = await berth(['ps'], { env });
    expect(ran).toMatchObject({ code: 5, stdout: '' });
    expect(ran.stderr).toContain('berth daemon start');
    const data = await berth(['ps', '--json'], { env });
    expect(data).toMatchObject({ code: 5, stdout: '' });
    expect(JSON.parse(data.stderr)).toMatchObject({ code: 'unreachable', hint: expect.any(String) });
    expect((await berth(['daemon', 'status'], { env })).code).toBe(5);
  });

  it('means the daemon of --state-dir, although BERTH_URL names another', async () => {
    const daemon = await daemonOf();
    await register(daemon, { name: 'kept', cmd: 'exec sleep 100' });
    const other = await daemonOf();
    const env = cleanEnv(folder(), { BERTH_URL: `http://127.0.0.1:${daemon.port}` });
    const removal = await berth(['rm', 'kept', '--state-dir', other.stateDir], { env });
    expect(removal.stderr).toContain('no service');
    const none = await berth(['ps', '--state-dir', folder()], { env });
    expect(none).toMatchObject({ code: 5, stdout: '' });
    expect((await berth(['ps'], { env })).stdout).toContain('kept');
  });

  it('exits with 6 when the token is wrong, and finds it in the configuration', async () => {
    const daemon = await daemonOf({ config: '[auth]\ntoken = "right"\n' });
    expect((await against(daemon)('ps')).code).toBe(0);
    const wrong = await against(daemon, { BERTH_AUTH_TOKEN: 'wrong' })('ps');
    expect(wrong).toMatchObject({ code: 6, stdout: '' });
    const none = await berth(['ps'], {
      env: cleanEnv(folder(), { BERTH_URL: `http://127.0.0.1:${daemon.port}` }),
    });
    expect(none.code).toBe(6);
  });

  it('names file, key and value of a wrong configuration, and exits with 2', async () => {
    const config = join(folder(), 'config.toml');
    writeFileSync(config, 'prot = 1\n');
    const ran = await berth(['ps', '--config', config], { env: cleanEnv(folder()) });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain(`${config}: unknown key prot = 1`);
  });
});

it('berth top shows the use of the machine', async () => {
  const daemon = await daemonOf();
  await register(daemon, { name: 'idle', cmd: 'exec sleep 100' });
  await daemon.request('POST', '/v1/services/idle/start');
  // Memory is measured two seconds after the start.
  const line = /^NAME +STATUS +CPU +MEMORY +UP +RESTARTS +URL\nidle +running +0\.0% +\d+ MB +\S+ +0 +http/;
  await eventually(async () => line.test((await against(daemon)('top --no-stream')).stdout));
});

it('berth --help prints help on stdout, with a summary of every command', async () => {
  const env = cleanEnv(folder());
  const help = await berth(['--help'], { env });
  expect(help).toMatchObject({ code: 0, stderr: '' });
  for (const word of ['up', 'ps|ls', 'status|explain', 'agent', 'k8s', 'doctor'])
    expect(help.stdout).toContain(word);
  const one = await berth(['start', '--help'], { env });
  expect(one.stdout).toContain('--timeout <time>');
  expect(one.stdout).toContain('berth start web --timeout 2m');
  const version = await berth(['-V', '--json'], { env });
  expect(JSON.parse(version.stdout)).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    node: process.version,
    daemon: null,
  });
});

it('berth help prints the same help', async () => {
  const env = cleanEnv(folder());
  const run = (line: string) => berth(line.split(' '), { env });
  expect((await run('help')).stdout).toBe((await run('--help')).stdout);
  expect((await run('help')).stdout).toContain('Berth runs and supervises your local services and AI agents');
  expect(await run('help up')).toEqual(await run('up --help'));
  expect(await run('help group start')).toEqual(await run('group start --help'));
  expect((await run('help k8s')).stdout).toBe((await run('k8s')).stdout);
  const { stdout: help } = await run('up --help');
  for (const line of ['--json help up', 'help up -o json', 'up --help --json', 'up -o json --help'])
    expect(JSON.parse((await run(line)).stdout), line).toEqual({ help });
  expect(await run('help nothing')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: 'berth: there is no command nothing\n`berth help` lists the commands.\n',
  });
});

it('hints for people name commands, and programs get the hints of the daemon', async () => {
  const run = against(await daemonOf());
  expect((await run('url nothing')).stderr).toContain('`berth ps` lists the services.');
  expect(JSON.parse((await run('url nothing --json')).stderr)).toMatchObject({
    hint: 'GET /v1/services lists the registered services.',
  });
  expect((await run('start nothing')).stderr).toContain('`berth ps` lists the services.');
});

it('berth doctor checks the machine', async () => {
  const daemon = await daemonOf();
  const ran = await against(daemon)('doctor --json');
  const states = new Map(
    JSON.parse(ran.stdout).map(({ about, state }: { about: string; state: string }) => [about, state]),
  );
  expect(
    [...states.keys()].some((about) => String(about).startsWith(`the daemon runs (pid ${daemon.pid}`)),
  ).toBe(true);
  expect([...states.values()]).not.toContain('wrong');
  expect(ran.code).toBe(0);
  // It says who holds the limits, and why it is not the other one; neither is wrong.
  const reason = /(no control groups of version 2|cannot limit .+|is not of Berth|is not delegated to it)$/;
  const [limits = '', ...others] = [...states.keys()]
    .map(String)
    .filter((about) => about.startsWith('limits '));
  expect([others, states.get(limits)]).toEqual([[], 'ok']);
  const isHeld = limitsTrouble(daemon.pid, daemon.stateDir) === null;
  if (isHeld) expect(limits).toBe('limits of services are enforced by control groups');
  else expect(limits).toMatch(reason);
  const bad = join(folder(), 'config.toml');
  writeFileSync(bad, 'port = "x"\n');
  const wrong = await berth(['doctor', '--config', bad], { env: cleanEnv(folder()) });
  expect(wrong.code).toBe(1);
  expect(wrong.stdout).toContain('port = "x"');
});

describe('doctor', () => {
  const TOKEN = 'a-token-of-enough-characters';
  const findings = async (daemon: Daemon, env: Record<string, string>) => {
    const { stdout } = await against(daemon, env)('doctor --json');
    const all: { state: string; about: string }[] = JSON.parse(stdout);
    return all.filter(({ about }) => about.includes('token')).map(({ state, about }) => `${state}: ${about}`);
  };

  it('asks the daemon whether it requires a token', async () => {
    const open = await daemonOf();
    expect(await findings(open, { BERTH_AUTH_TOKEN: TOKEN })).toEqual([
      'wrong: the daemon asks for no token, although the configuration has one: anybody here can use it',
    ]);
    const closed = await daemonOf({ env: { BERTH_AUTH_TOKEN: TOKEN } });
    expect(await findings(closed, { BERTH_AUTH_TOKEN: TOKEN })).toEqual([
      'ok: a token is set: only those who have it can use the daemon',
    ]);
    expect(await findings(closed, {})).toContainEqual(
      'warning: the daemon asks for a token, which the configuration does not have',
    );
  });

  it('warns of a short token, or one that others can read, as the daemon does', async () => {
    const daemon = await daemonOf({ config: '[auth]\ntoken = "short"\n' });
    chmodSync(daemon.configFile, 0o644);
    const short = 'auth.token has fewer than 22 characters: others can find it by trying';
    const exposed = `others can read ${daemon.configFile}, which holds a token`;
    const found = await findings(daemon, {});
    expect(found.slice(1)).toEqual([`warning: ${short}`, `warning: ${exposed}`]);
    daemon.signal('SIGHUP');
    await eventually(() => daemon.stderr().includes(`berth: ${exposed}. chmod 600`));
    expect(daemon.stderr()).toContain(`berth: ${short}. Set a random one: `);
    // Another shell may have another token, and the daemon still has that of the file.
    expect(await findings(daemon, { BERTH_AUTH_TOKEN: TOKEN })).toContain(`warning: ${exposed}`);
    chmodSync(daemon.configFile, 0o600);
    expect((await findings(daemon, {})).slice(1)).toEqual([`warning: ${short}`]);
    // A file without a token, in which the text of another one stands by chance.
    writeFileSync(daemon.configFile, '# token = "on"\nport = 0\n[gateway]\nport = 0\n[auth]\ntoken = ""\n');
    chmodSync(daemon.configFile, 0o644);
    const chance = await findings(daemon, { BERTH_AUTH_TOKEN: 'gateway' });
    expect(chance).toContain(`warning: ${short}`);
    expect(chance).not.toContain(`warning: ${exposed}`);
  });
});

it('an address without http:// is accepted', async () => {
  const daemon = await daemonOf();
  const ran = await berth(['ps', '--url', `localhost:${daemon.port}`], { env: cleanEnv(folder()) });
  expect(ran).toMatchObject({ code: 0, stdout: '' });
  const wrong = await berth(['ps', '--url', 'ftp://localhost'], { env: cleanEnv(folder()) });
  expect(wrong.code).toBe(2);
});

it('a second daemon start reports the running daemon, not its port', async () => {
  const daemon = await daemonOf();
  const args = ['daemon', '--state-dir', daemon.stateDir, '--config', daemon.configFile];
  const second = await berth(args, { env: cleanEnv(folder(), { BERTH_PORT: String(daemon.port) }) });
  expect([second.code, second.stderr]).toEqual([
    1,
    `berth: a daemon runs already (pid ${daemon.pid}) with ${daemon.stateDir}\n`,
  ]);
});

it('berth open opens the dashboard with a single-use code, hidden from other users and servers', async () => {
  const daemon = await daemonOf({ config: '[auth]\ntoken = "se/cret"\n' });
  const address = new RegExp(`^http://127\\.0\\.0\\.1:${daemon.port}/#code=code-[\\w-]{16}\\.[\\w-]{43}\n$`);
  expect((await against(daemon)('open --print')).stdout).toMatch(address);
  const at = folder();
  const browser = join(at, 'browser');
  writeFileSync(browser, `#!/bin/sh\nprintf '%s' "$1" > ${at}/new && mv ${at}/new ${at}/opened\n`, {
    mode: 0o755,
  });
  const run = against(daemon, { BROWSER: browser });
  expect(await run('open')).toMatchObject({ code: 0, stdout: '' });
  await eventually(() => existsSync(join(at, 'opened')));
  const page = readFileSync(join(at, 'opened'), 'utf8');
  expect(dirname(page)).toBe(join(daemon.stateDir, 'open'));
  const [url = ''] = /http:[^"]*/.exec(readFileSync(page, 'utf8')) ?? [];
  expect(`${url}\n`).toMatch(address);
  expect(statSync(page).mode & 0o777).toBe(0o600);
  // The page on disk goes with its code.
  const exchange = () => exchangeKey(pageServer(daemon), url.split('#code=')[1] ?? '');
  const session = await exchange();
  expect([session.status, existsSync(page)]).toEqual([201, false]);
  expect((await exchange()).status).toBe(401);
  rmSync(join(at, 'opened'));
  await run('add web -p 4567 true');
  await run('open web');
  await eventually(() => existsSync(join(at, 'opened')));
  expect(readFileSync(join(at, 'opened'), 'utf8')).toBe('http://localhost:4567');
});

it('berth open prints the URL if the program that opens browsers fails, and leaves one that runs', async () => {
  const daemon = await daemonOf();
  const at = folder();
  const browser = join(at, 'browser');
  const run = against(daemon, { BROWSER: browser });
  await run('add web -p 4567 true');
  writeFileSync(browser, '#!/bin/sh\nexit 3\n', { mode: 0o755 });
  expect(await run('open web')).toMatchObject({ code: 0, stdout: 'http://localhost:4567\n' });
  writeFileSync(browser, `#!/bin/sh\necho $$ > ${at}/new && mv ${at}/new ${at}/pid\nexec sleep 1000\n`);
  expect(await run('open web')).toMatchObject({ code: 0, stdout: '' });
  await eventually(() => existsSync(join(at, 'pid')));
  const pid = Number(readFileSync(join(at, 'pid'), 'utf8'));
  expect(isAlive(pid)).toBe(true);
  process.kill(pid);
});

it('berth daemon install writes the unit of this platform, and uninstall removes it', async () => {
  const env = cleanEnv(folder());
  const printed = await berth(['service', 'install', '--print'], { env });
  expect(printed.stdout).toContain('KillMode=process');
  expect((await berth(['service', 'status'], { env })).code).toBe(3);
  const installed = await berth(['service', 'install', '--json'], { env });
  const { file } = JSON.parse(installed.stdout);
  expect(file).toBe(join(env['HOME'] ?? '', '.config/systemd/user/berth.service'));
  expect((await berth(['service', 'status'], { env })).code).toBe(0);
  expect((await berth(['service', 'uninstall'], { env })).stdout).toBe(`${file} is removed\n`);
  expect((await berth(['service', 'status'], { env })).code).toBe(3);
});
