// docs/reference.md "Stacks": one name is one stack for every command in a folder.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder, type Ran } from '../berth_process.ts';

type Run = (line: string, env?: Record<string, string>) => Promise<Ran>;

/** A daemon, and folders with a berth.yaml or another project file, each with one service. */
async function projects() {
  const daemon = await daemonOf();
  const home = folder();
  const base = { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile };
  const runIn =
    (at: string): Run =>
    (line, env = {}) =>
      berth(
        line.split(' ').map((word) => (word === '""' ? '' : word)),
        { cwd: at, env: cleanEnv(home, { ...base, ...env }) },
      );
  const make = (path: string, service: string): Run => {
    const at = join(home, path);
    mkdirSync(at, { recursive: true });
    const rows = 'cmd: exec sleep 1000, port: null, ready: { exec: "true" }';
    writeFileSync(join(at, 'berth.yaml'), `services:\n  ${service}: { ${rows} }\n`);
    return runIn(at);
  };
  const running = async (): Promise<string[]> => {
    const { body } = await daemon.request('GET', '/v1/services');
    return body.services.flatMap((one: { name: string; pid?: number }) => (one.pid ? [one.name] : []));
  };
  return { home, make, runIn, running };
}

const succeeds = async (ran: Promise<Ran>): Promise<string> => {
  const { code, stdout, stderr } = await ran;
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return stdout;
};

it.each([
  [' --stack api', {}],
  ['', { BERTH_STACK: 'api' }],
])(
  'what `up%s` brings up is what other commands show and end, beside a project of that name',
  async (option, env) => {
    const { make, running } = await projects();
    const inApi = make('api', 'server');
    const inShop = make('shopx', 'web');
    await succeeds(inApi('up'));
    // `up` would make a stack of this project.
    expect(await succeeds(inShop(`up --dry-run${option}`, env))).toBe('web would be registered\n');
    expect(await inShop(`down${option}`, env)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/api may be api of another project or shopx--api.*\n`-p api` chooses/),
    });
    await succeeds(inShop(`up${option}`, env));
    expect(await running()).toEqual(['api--server', 'shopx--api--web']);
    expect(await succeeds(inShop(`ps -q${option}`, env))).toBe('web\n');
    expect(await succeeds(inShop(`stop web${option}`, env))).toMatch(/^✓ web is stopped/);
    expect(await succeeds(inShop(`restart web${option}`, env))).toMatch(/^✓ web/);
    expect(await running()).toEqual(['api--server', 'shopx--api--web']);
    expect(await succeeds(inShop(`up --dry-run${option}`, env))).toContain('web would stay as it is');
    expect(await succeeds(inShop(`down${option}`, env))).toMatch(/^✓ web is stopped and removed/);
    expect(await succeeds(inShop('rm --stack api'))).toContain('shopx--api is removed');
    expect((await inShop('rm --stack api')).code).toBe(1);
    expect(await running()).toEqual(['api--server']);
    expect(await succeeds(inShop('down -p api'))).toMatch(/^✓ server is stopped and removed/);
  },
);

it('the project of a folder without a berth.yaml is that of another tool, also before it is up', async () => {
  const { home, make, runIn, running } = await projects();
  await succeeds(make('api', 'server')('up'));
  const at = join(home, 'shopx');
  mkdirSync(at);
  writeFileSync(join(at, 'Procfile'), 'web: exec sleep 1000\n');
  const inShop = runIn(at);
  for (const line of ['down --stack api', 'rm --stack api'])
    expect((await inShop(line)).stderr).toContain('api may be api of another project or shopx--api');
  await succeeds(inShop('up --stack api'));
  expect(await succeeds(inShop('ps -q --stack api'))).toBe('web\n');
  await succeeds(inShop('rm --stack api'));
  expect(await running()).toEqual(['api--server']);
});

it('the stack of a worktree is named without its hash, beside a project of that name', async () => {
  const { home, make, runIn, running } = await projects();
  await succeeds(make('api', 'server')('up'));
  const inShop = make('shopx', 'web');
  const git = (...args: string[]): void =>
    void execFileSync('git', ['-c', 'user.email=me@localhost', '-c', 'user.name=me', ...args], {
      cwd: join(home, 'shopx'),
    });
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-qm', 'shopx');
  git('worktree', 'add', '-q', '-b', 'api', join(home, 'tree'));
  await succeeds(runIn(join(home, 'tree'))('up'));
  const [, web = ''] = await running();
  expect(web).toMatch(/^shopx--api-[0-9a-f]{4}--web$/);
  // It belongs to another folder.
  expect(await inShop('up --stack api')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/shopx--api-[0-9a-f]{4} is the stack of the folder .*tree/),
  });
  expect(await succeeds(inShop('rm --stack api'))).toMatch(/^shopx--api-[0-9a-f]{4} is removed/);
  expect(await running()).toEqual(['api--server']);
});

it('of two folders with one project name, -p of that name is the stack of the current folder', async () => {
  const { make, running } = await projects();
  const inX = make('x/papi', 'one');
  const inY = make('y/papi', 'two');
  await succeeds(inX('up'));
  expect(await inY('down -p papi')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /papi is the stack of the folder .*\/x\/papi, and that of .*\/y\/papi is not up/,
    ),
  });
  await succeeds(inY('up -p papi'));
  const [one, two = ''] = await running();
  expect([one, two]).toEqual(['papi--one', expect.stringMatching(/^papi-[0-9a-f]{4}--two$/)]);
  // It is the stack of the folder, not one with a chosen name.
  expect(await succeeds(inY('ps -q'))).toBe('two\n');
  expect(await succeeds(inY('up -p papi --dry-run'))).toContain('two would stay as it is');
  expect((await inY('down --stack papi')).stderr).toContain(`papi may be papi or ${two.slice(0, -5)}`);
  expect((await inY('up --stack papi')).stderr).toContain(`papi may be papi or ${two.slice(0, -5)}`);
  expect(await succeeds(inY('down -p papi'))).toMatch(/^✓ two is stopped and removed/);
  expect(await succeeds(inX('down -p papi'))).toMatch(/^✓ one is stopped and removed/);
});

it.each(['down --stack ""', 'up --stack ""', 'rm --stack ""', 'ps -p ""', 'up -p shop/'])(
  'an empty name is refused: berth %s',
  async (line) => {
    const { make, running } = await projects();
    const inShop = make('shop', 'web');
    await succeeds(inShop('up'));
    expect(await inShop(line)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('must not be empty'),
    });
    expect(await running()).toEqual(['shop--web']);
  },
);
