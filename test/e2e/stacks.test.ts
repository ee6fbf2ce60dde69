// docs/reference.md "Stacks": two checkouts of one project, up at once from one project file.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { berth, cleanEnv, daemonOf, folder, type Ran } from '../cli/berth_process.ts';
import { BIN } from '../kit/built_program.ts';
import { hostPid } from '../kit/daemon.ts';
import { eventually } from '../kit/eventually.ts';
import { freePort } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';

const NODE = JSON.stringify(process.execPath);
/** Answers with the variables that it is asked for. */
const SERVER = `exec ${NODE} -e 'require("http").createServer((q, r) => r.end(String(process.env[q.url.slice(1)]))).listen(process.env.PORT)'`;

const fileOf = (port: number): string => `services:
  db:
    cmd: ${JSON.stringify(SERVER)}
    port: ${port}
    ready: http://localhost:${port}/
    env: { DATABASE: "\${slug}" }
  api:
    cmd: ${JSON.stringify(SERVER)}
    ready: /
    depends_on: [db]
    env: { DB: "\${url.db}", HOST_NAME: "\${host.web}" }
  web:
    cmd: ${JSON.stringify(SERVER)}
    ready: /
    depends_on: [api]
    group: front
`;

const git = (cwd: string, ...args: string[]): void =>
  void execFileSync('git', ['-c', 'user.email=me@localhost', '-c', 'user.name=me', ...args], { cwd });

/** A repository with a linked working tree, and the command line in each. */
async function twoCheckouts() {
  const daemon = await daemonOf();
  const home = folder();
  const main = join(home, 'shop');
  const linked = join(home, 'elsewhere');
  mkdirSync(main);
  const port = freePort();
  writeFileSync(join(main, 'berth.yaml'), fileOf(port));
  git(main, 'init', '-q', '-b', 'main');
  git(main, 'add', '-A');
  git(main, 'commit', '-qm', 'shop');
  git(main, 'worktree', 'add', '-q', '-b', 'feature/login', linked);
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const shell =
    (cwd: string) =>
    (line: string): Promise<Ran> =>
      berth(line.split(' '), { cwd, env });
  const listed = async (): Promise<any[]> => (await daemon.request('GET', '/v1/services')).body.services;
  return { daemon, main, linked, port, inMain: shell(main), inLinked: shell(linked), listed };
}

const namesIn = async (run: (line: string) => Promise<Ran>): Promise<string[]> =>
  (await run('ps -q')).stdout.trim().split('\n');
const urlIn = async (run: (line: string) => Promise<Ran>, name: string): Promise<string> =>
  (await run(`url ${name}`)).stdout.trim();
const variable = async (url: string, name: string): Promise<string> => (await fetch(`${url}/${name}`)).text();

describe('two checkouts of one project', () => {
  it('run at the same time, each with its own names, ports and agent, and end separately', async () => {
    const { daemon, main, linked, port, inMain, inLinked, listed } = await twoCheckouts();
    const [one, two] = await Promise.all([inMain('up'), inLinked('up')]);
    expect([one.code, one.stderr, two.code, two.stderr]).toEqual([0, '', 0, '']);
    expect(two.stdout.match(/^✓ (db|api|web) is running/gm)).toHaveLength(3);
    const agents = [inMain, inLinked].map((run) => run('agent spinup bot -- exec sleep 1000'));
    for (const { code } of await Promise.all(agents)) expect(code).toBe(0);

    const slug = 'feature-login';
    const stack = `shop--${slug}`;
    const own = ['api', 'bot', 'db', 'web'];
    expect((await listed()).map(({ name }) => name)).toEqual(
      [...own.map((name) => `shop--${name}`), ...own.map((name) => `${stack}--${name}`)].sort(),
    );
    expect(new Set((await listed()).map((service) => service.port)).size).toBe(8);
    expect([await namesIn(inMain), await namesIn(inLinked)]).toEqual([own, own]);
    const { body: api } = await daemon.request('GET', `/v1/services/${stack}--api`);
    const names = { project: 'shop', stack, service: 'api', group: stack, dependsOn: [`${stack}--db`] };
    expect(api).toMatchObject(names);
    const { body: web } = await daemon.request('GET', `/v1/services/${stack}--web`);
    expect(web.group).toBe(`${stack}--front`);

    // The number holds in the main working tree alone, and everything that names it is right in both.
    expect(await urlIn(inMain, 'db')).toBe(`http://localhost:${port}`);
    const leased = await urlIn(inLinked, 'db');
    expect(leased).not.toBe(`http://localhost:${port}`);
    expect(await variable(leased, 'DATABASE')).toBe(slug);
    expect(await variable(await urlIn(inMain, 'db'), 'DATABASE')).toBe('shop');
    expect(await variable(await urlIn(inLinked, 'api'), 'DB')).toBe(leased);
    expect(await variable(await urlIn(inLinked, 'web'), 'URL_DB')).toBe(leased);
    expect(await variable(await urlIn(inMain, 'web'), 'PORT_DB')).toBe(String(port));
    expect(await variable(await urlIn(inLinked, 'api'), 'HOST_NAME')).toBe(`web.${slug}.shop.localhost`);
    // At the gateway each has its own host name.
    for (const [name, host] of [
      ['shop--web', 'web.shop.localhost'],
      [`${stack}--web`, `web.${slug}.shop.localhost`],
    ] as const) {
      const gateway = new URL((await daemon.request('GET', `/v1/services/${name}`)).body.gatewayUrl);
      expect(gateway.hostname).toBe(host);
      const answer = await send(Number(gateway.port), 'GET', '/BERTH_SERVICE', {
        headers: { host: gateway.host },
      });
      expect([answer.status, answer.text]).toEqual([200, name]);
    }

    // What is done in one leaves the other as it is, also where a group of one could be called as the other.
    const groups = JSON.parse((await inMain('group ls --json')).stdout) as { name: string }[];
    expect(groups.map(({ name }) => name).sort()).toEqual(['shop', 'shop--front']);
    expect((await inMain(`group stop ${slug}`)).stderr).toContain(`there is no group ${slug}`);
    expect((await inLinked('stop web')).stdout).toMatch(/^✓ web is stopped/);
    expect((await inMain('status web')).code).toBe(0);
    expect((await inMain('up')).stderr).toBe('Everything is up to date.\n');
    expect((await inMain('down')).code).toBe(0);
    expect(await namesIn(inMain)).toEqual(['bot']);
    expect(await namesIn(inLinked)).toEqual(own);
    expect((await inMain('ps -A')).stdout).toContain(`${stack}--web`);

    git(main, 'worktree', 'remove', '--force', linked);
    expect(existsSync(linked)).toBe(false);
    expect((await inMain('stacks')).stdout).toContain('(gone)');
    expect((await inMain(`rm --stack ${slug}`)).stdout).toContain(`${stack} is removed with 4 services`);
    const { body } = await daemon.request('GET', '/v1/stacks');
    expect(body.stacks.map(({ name }: { name: string }) => name)).toEqual(['shop']);
    expect((await inMain('rm --stack shop')).code).toBe(0);
    expect(await listed()).toEqual([]);
    expect((await inMain('rm --stack shop')).stderr).toContain('there is no stack shop');
  });

  it('take over services that an earlier version registered under plain names', async () => {
    const { daemon, main, inMain, listed } = await twoCheckouts();
    const before = {
      name: 'web',
      port: 0,
      cmd: 'exec sleep 1000',
      labels: [`project=${join(main, 'berth.yaml')}`],
    };
    const { body: web } = await daemon.request('POST', '/v1/services', before);
    await daemon.request('POST', '/v1/services/web/start');
    const up = await inMain('up web');
    expect([up.code, up.stderr]).toEqual([
      0,
      'web was registered by an earlier version of berth: it is shop--web now\n',
    ]);
    const now = (await listed()).find(({ name }) => name === 'shop--web');
    expect([now.port, now.status]).toEqual([web.port, 'running']);
    expect((await listed()).map(({ name }) => name)).not.toContain('web');
  });

  it('have different names if two branches or two folders have the same name', async () => {
    const { daemon } = await twoCheckouts();
    const claim = async (path: string, worktree: string | null) => {
      const { status, body } = await daemon.request('POST', '/v1/stacks', {
        project: 'shop',
        path,
        worktree,
      });
      expect(status).toBe(201);
      return body.name;
    };
    const folders = Array.from({ length: 3 }, () => folder());
    const [a = '', b = '', c = ''] = folders;
    expect(await claim(a, 'fix/x')).toBe('shop--fix-x');
    const second = await claim(b, 'fix-x');
    expect(second).toMatch(/^shop--fix-x-[0-9a-f]{4}$/);
    expect(await claim(b, 'another-branch-now')).toBe(second);
    expect(await claim(a, null)).toMatch(/^shop/);
    expect(await claim(c, 'fix-x')).not.toBe(second);
    const chosen = { project: 'shop', path: c, name: 'shop--fix-x' };
    expect((await daemon.request('POST', '/v1/stacks', chosen)).body.code).toBe('name_in_use');
    for (const [field, value] of [
      ['project', 'My Shop'],
      ['project', 'a--b'],
      ['path', 'relative'],
      ['name', 'a--b--c'],
      ['branch', ''],
      ['extra', 1],
    ] as const) {
      const wrong = await daemon.request('POST', '/v1/stacks', { project: 'x', path: a, [field]: value });
      expect([field, wrong.status, wrong.body.message]).toEqual([field, 400, expect.stringContaining(field)]);
    }
  });
});

it('a project that is renamed has the stack of its new name, and hears of the one before', async () => {
  const daemon = await daemonOf();
  const home = folder();
  const path = join(home, 'shop');
  mkdirSync(path);
  const file = join(path, 'berth.yaml');
  const write = (name: string, rest = ''): void =>
    writeFileSync(
      file,
      `name: ${name}\nservices:\n  a: { cmd: exec sleep 1000, port: null, ready: { exec: "true" } }\n${rest}`,
    );
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const run = (line: string): Promise<Ran> => berth(line.split(' '), { cwd: path, env });
  const all = async () => (await run('ps -A -q')).stdout.split('\n').filter(Boolean);
  const former =
    'first still has 1 service of this project under its previous name; `berth rm --stack first`';
  write('first');
  expect((await run('up')).stderr).not.toContain('previous name');
  write('second');
  // Until `up` has registered the new stack, the folder's is the one that it has.
  expect((await run('ps -q')).stdout).toBe('a\n');
  expect((await run('up --dry-run')).stdout).toBe('a would be registered\n');
  expect(await run('up')).toMatchObject({ code: 0, stderr: expect.stringContaining(former) });
  expect((await run('up --dry-run')).stdout).toContain('a would stay as it is');
  expect((await run('stop a')).code).toBe(0);
  const status = async (name: string) => (await daemon.request('GET', `/v1/services/${name}`)).body.status;
  expect([await status('first--a'), await status('second--a')]).toEqual(['running', 'stopped']);
  // A fault in a service leaves the name readable; a fault of the whole file does not.
  write('second', '  b: { cmd: [] }\n');
  expect((await run('start a')).code).toBe(0);
  expect(await status('second--a')).toBe('running');
  write('second', '  b: {');
  const refused = await run('stop a');
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('has the stacks first and second'),
  ]);
  expect(await run('status a --stack second')).toMatchObject({ code: 0 });

  // The name before is as good as any.
  write('first');
  expect((await run('stop a')).code).toBe(0);
  expect(await status('first--a')).toBe('stopped');
  write('second');
  expect(await run('down')).toMatchObject({ code: 0, stderr: expect.stringContaining(former) });
  expect(await all()).toEqual(['first--a']);
  expect((await run('rm --stack first')).code).toBe(0);
  expect((await run('down')).stderr).toBe(`Nothing of ${file} is up.\n`);
});

/** A database of another protocol that may sleep, a worker without a port, and what knows of both. */
const NEIGHBOURS = `services:
  db: { cmd: ${JSON.stringify(SERVER)}, port: auto, protocol: tcp, ready: tcp, sleep: { after_minutes: 60 } }
  queue: { cmd: exec sleep 1000, port: null, ready: { exec: "true" } }
  web:
    cmd: ${JSON.stringify(SERVER)}
    ready: /
    depends_on: [db, queue]
    env: { DB: "\${url.db}" }
  lost: { cmd: "echo \${url.queue}", port: null }
`;

it('services know the protocols of other services of the stack, and no port behind a door', async () => {
  const daemon = await daemonOf();
  const home = folder();
  const path = join(home, 'shop');
  mkdirSync(path);
  writeFileSync(join(path, 'berth.yaml'), NEIGHBOURS);
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  const run = (line: string): Promise<Ran> => berth(line.split(' '), { cwd: path, env });
  expect(await run('up web')).toMatchObject({ code: 0 });
  const db = await urlIn(run, 'db');
  expect(db).toMatch(/^tcp:/);
  const web = await urlIn(run, 'web');
  expect([await variable(web, 'DB'), await variable(web, 'URL_DB')]).toEqual([db, db]);
  const { body } = await daemon.request('GET', '/v1/services/shop--web');
  const variables = readFileSync(`/proc/${body.pid}/environ`, 'latin1').split('\0');
  const known = variables.filter((one) => /^(PORT|URL)_/.test(one)).map((one) => one.split('=')[0]);
  expect(known.sort()).toEqual(['PORT_DB', 'URL_DB']);
  expect((await run('up lost')).stderr).toContain('${url.queue} has no value: queue has no port');
});

describe('the hooks of a stack', () => {
  /** A project whose hooks write what they do to `done`, outside of its folder. */
  async function withHooks(create: string) {
    const daemon = await daemonOf();
    const home = folder();
    const path = join(home, 'shop');
    mkdirSync(path);
    const done = join(home, 'done');
    const write = (hook: string): void =>
      writeFileSync(
        join(path, 'berth.yaml'),
        `hooks:\n  create: ${JSON.stringify(hook)}\n  remove: 'echo remove $\{slug} >> ${done}'\n` +
          `services:\n  web: { cmd: exec sleep 1000, port: null, ready: { exec: "true" } }\n`,
      );
    write(create.replaceAll('DONE', done));
    const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
    const run = (line: string): Promise<Ran> => {
      return berth(line.split(' '), { cwd: existsSync(path) ? path : home, env });
    };
    const lines = () => (existsSync(done) ? readFileSync(done, 'utf8').split('\n').filter(Boolean) : []);
    return { daemon, path, write, run, lines, goOn: () => writeFileSync(`${done}.go`, '') };
  }

  /** Starts the stack, then its removal, whose hook runs until `goOn`. Returns the command that removes it. */
  async function underRemoval({ run, daemon, lines, path }: Awaited<ReturnType<typeof withHooks>>) {
    expect((await run('up')).code).toBe(0);
    const slow = { name: 'shop--hook-remove', stack: 'shop', port: null, kind: 'task' };
    const done = join(path, '..', 'done');
    const cmd = `echo remove >> ${done}; while ! test -e ${done}.go; do sleep 0.05; done`;
    expect((await daemon.request('POST', '/v1/services', { ...slow, cmd })).status).toBe(201);
    const removal = run('rm --stack shop');
    await eventually(() => lines().includes('remove'));
    return { ended: removal };
  }

  it('cannot wait for themselves by calling berth up', async () => {
    const { daemon, run, write } = await withHooks('true');
    const variables = `BERTH_STATE_DIR=${daemon.stateDir} BERTH_CONFIG=${daemon.configFile}`;
    write(`${variables} ${process.execPath} ${BIN} up`);
    expect(await run('up')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the hook create runs this command, which waits for the hook'),
    });
    expect((await run('ps')).stdout).not.toContain('running');
  });

  it('run once, before its first start and after its last stop, although the folder is gone by then', async () => {
    const { run, path, lines } = await withHooks('echo create ${slug} | tee -a DONE');
    const first = await run('up');
    expect([first.code, first.stderr]).toEqual([
      0,
      expect.stringContaining('The hook create of shop has run'),
    ]);
    expect((await run('up')).stderr).toBe('Everything is up to date.\n');
    expect((await run('logs hook-create')).stdout).toBe('create shop\n');
    expect((await run('ps -q')).stdout).toBe('web\n');
    expect((await run('down')).code).toBe(0);
    expect((await run('stacks')).stdout).toMatch(/\nshop +down /);
    expect((await run('up')).code).toBe(0);
    expect(lines()).toEqual(['create shop']);
    rmSync(path, { recursive: true });
    expect((await run('rm --stack shop')).stdout).toContain('shop is removed with 1 service');
    expect(lines()).toEqual(['create shop', 'remove shop']);
    expect((await run('ps -A -q')).stdout).toBe('');
  });

  it('are started by nobody but the stack', async () => {
    const { run, lines, daemon } = await withHooks('echo create >> DONE');
    expect((await run('up')).code).toBe(0);
    for (const hook of ['hook-create', 'hook-remove'])
      for (const call of ['start', 'restart', 'wake', 'start?join=true&wait=false'])
        expect(await daemon.request('POST', `/v1/services/shop--${hook}/${call}`)).toMatchObject({
          status: 409,
          body: { code: 'hook_refused', hint: expect.stringContaining('berth rm --stack') },
        });
    const removal = await daemon.request('POST', '/v1/services/shop--hook-remove/start?ifChanged=true');
    expect(removal.body.code).toBe('hook_refused');
    // `up` starts `create` so: one that another `up` has completed meanwhile does not run again.
    const other = { name: 'shop--hook-create', stack: 'shop', port: null, kind: 'task', cmd: 'exit 3' };
    await daemon.request('POST', '/v1/services', other);
    const creation = await daemon.request('POST', '/v1/services/shop--hook-create/start?ifChanged=true');
    expect(creation).toMatchObject({ status: 200, body: { status: 'completed', unchanged: true } });
    expect(await run('restart hook-remove')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('hook-remove is a hook: only its stack runs it'),
    });
    expect(lines()).toEqual(['create']);
  });

  it('run after one that the removal has stopped', async () => {
    const { run, lines, daemon } = await withHooks('echo create >> DONE; exec sleep 1000');
    const up = run('up');
    await eventually(() => lines().length === 1);
    expect((await run('rm --stack shop')).code).toBe(0);
    expect((await up).code).not.toBe(0);
    expect(lines()).toEqual(['create', 'remove shop']);
    expect((await daemon.request('GET', '/v1/services')).body.services).toEqual([]);
  });

  it('that fail prevent the start or removal of the stack, until they succeed', async () => {
    const { run, write, daemon, lines } = await withHooks('echo no database; exit 3');
    const failed = await run('up');
    expect([failed.code, failed.stdout]).toEqual([1, '']);
    expect(failed.stderr).toContain('no database');
    expect((await daemon.request('GET', '/v1/services/shop--web')).body.status).toBe('stopped');
    write('sleep 0.1');
    expect((await run('up')).code).toBe(0);
    expect((await run('stop hook-remove')).code).toBe(0);
    const broken = {
      name: 'shop--hook-remove',
      stack: 'shop',
      port: null,
      kind: 'task',
      cmd: 'echo in use; exit 4',
    };
    expect((await daemon.request('POST', '/v1/services', broken)).status).toBe(201);
    const refused = await run('rm --stack shop');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('in use')]);
    expect(refused.stderr).toContain('berth rm --stack shop --force');
    expect((await run('stacks')).stdout).toContain('shop');
    expect((await run('rm --stack shop --force')).code).toBe(0);
    expect((await daemon.request('GET', '/v1/stacks')).body.stacks).toEqual([]);
    expect(lines()).toEqual([]);
  });

  it('hold up every start in the stack until create has completed, and leave what is up alone', async () => {
    const { run, daemon, write, goOn, path } = await withHooks('exit 3');
    const call = async (way: string) => {
      const { status, body } = await daemon.request('POST', `/v1/${way}`);
      return [status, body.code ?? body.status ?? body.services.map((one: { status: string }) => one.status)];
    };
    const STARTS = ['start', 'start?join=true', 'restart', 'wake'].map(
      (verb) => `services/shop--web/${verb}`,
    );
    const GROUP_STARTS = ['groups/shop/start', 'groups/shop/restart'];
    const statusOf = async (name: string) =>
      (await daemon.request('GET', `/v1/services/${name}`)).body.status;
    const REFUSED = [409, 'hook_refused'];

    expect((await run('up')).code).toBe(1);
    for (const way of [...STARTS, ...GROUP_STARTS]) expect([way, await call(way)]).toEqual([way, REFUSED]);
    const { body } = await daemon.request('POST', '/v1/services/shop--web/start');
    expect(body.message).toBe('shop--web is not started: the hook create of shop failed with exit code 3');
    expect(body.hint).toContain('`berth up` runs it again');
    const resolved = await daemon.request('GET', '/v1/resolve/shop--web?wake=true');
    expect([resolved.status, resolved.body.code]).toEqual(REFUSED);

    // A connection to a service that sleeps is a start, too.
    const port = freePort();
    const napping = { name: 'shop--nap', stack: 'shop', group: 'shop', port, cmd: SERVER };
    await daemon.request('POST', '/v1/services', { ...napping, sleep: { afterMinutes: 60 } });
    expect((await call('services/shop--nap/sleep'))[0]).toBe(200);
    await expect(send(port, 'GET', '/')).rejects.toThrow();
    expect([await statusOf('shop--nap'), await statusOf('shop--web')]).toEqual(['sleeping', 'stopped']);
    expect(await call('groups/shop/wake')).toEqual(REFUSED);

    // One that runs holds them up as well. Agents are not held up.
    write(`while ! test -e ${join(path, '..', 'done.go')}; do sleep 0.05; done`);
    const up = run('up');
    await eventually(async () => (await statusOf('shop--hook-create')) === 'running');
    expect(await call('groups/shop/start')).toEqual(REFUSED);
    const agent = { name: 'shop--mate', stack: 'shop', cmd: 'exec sleep 1000' };
    expect((await daemon.request('POST', '/v1/agents/spinup', agent)).status).toBe(201);
    goOn();
    expect((await up).code).toBe(0);
    expect(await call('services/shop--web/restart')).toEqual([200, 'running']);
    expect(await call('groups/shop/start')).toEqual([200, ['running', 'running']]);

    // A new hook that fails leaves alone what already runs.
    await daemon.request('DELETE', '/v1/services/shop--hook-create');
    write('exit 4');
    expect((await run('up')).stderr).toContain('exit code 4');
    expect(await call('services/shop--web/start?join=true')).toEqual([200, 'running']);
    for (const way of ['services/shop--web/restart', 'groups/shop/restart'])
      expect([way, await call(way), await statusOf('shop--web')]).toEqual([way, REFUSED, 'running']);
  });

  it('that hang are joined by a forced removal, also by that of the next daemon, and end by a stop', async () => {
    const { run, daemon, lines, path } = await withHooks('echo create >> DONE');
    expect((await run('up')).code).toBe(0);
    const hanging = { name: 'shop--hook-remove', stack: 'shop', port: null, kind: 'task' };
    const cmd = `echo remove >> ${join(path, '..', 'done')}; exec sleep 1000`;
    expect((await daemon.request('POST', '/v1/services', { ...hanging, cmd })).status).toBe(201);
    const first = run('rm --stack shop');
    await eventually(() => lines().includes('remove'));
    daemon.signal('SIGKILL');
    await daemon.exited;
    expect((await first).code).not.toBe(0);
    const next = await daemonOf({ stateDir: daemon.stateDir });
    const forced = run('rm --stack shop --force');
    const late = { name: 'shop--late', stack: 'shop', port: null, cmd: 'true' };
    await eventually(async () => (await next.request('POST', '/v1/services', late)).status === 503);
    expect((await run('stop shop--hook-remove')).code).toBe(0);
    expect((await forced).code).toBe(0);
    expect(lines()).toEqual(['create', 'remove']);
    expect((await next.request('GET', '/v1/stacks')).body.stacks).toEqual([]);
  });

  it('begin anew after a removal that the end of the daemon has interrupted', async () => {
    const stack = await withHooks('echo create >> DONE');
    const { run, daemon, lines, goOn } = stack;
    const { ended: removal } = await underRemoval(stack);
    daemon.signal('SIGKILL');
    await daemon.exited;
    expect((await removal).code).not.toBe(0);
    const next = await daemonOf({ stateDir: daemon.stateDir });
    expect((await run('up')).stderr).toContain('the hook remove of shop runs');
    goOn();
    const hook = async () => (await next.request('GET', '/v1/services/shop--hook-remove')).body.status;
    await eventually(async () => (await hook()) === 'completed');
    expect((await run('up')).stderr).toContain('The hook create of shop has run');
    expect((await run('rm --stack shop')).code).toBe(0);
    expect(lines()).toEqual(['create', 'remove', 'create', 'remove shop']);
  });

  /** What holds once a started `remove` has left the stack behind: `create` runs again before all else. */
  async function expectUncreated({
    run,
    daemon,
  }: Pick<Awaited<ReturnType<typeof withHooks>>, 'run' | 'daemon'>) {
    const late = { name: 'shop--late', stack: 'shop', group: 'shop', port: null, cmd: 'exec sleep 1000' };
    expect((await daemon.request('POST', '/v1/services', late)).status).toBe(201);
    for (const way of ['services/shop--late/start', 'services/shop--late/wake', 'groups/shop/start'])
      expect(await daemon.request('POST', `/v1/${way}`)).toMatchObject({
        status: 409,
        body: {
          code: 'hook_refused',
          message: expect.stringContaining('must run again, because the hook remove has been started since'),
        },
      });
    const up = await run('up');
    expect([up.code, up.stderr]).toEqual([0, expect.stringContaining('The hook create of shop has run')]);
    expect((await run('up')).stderr).toBe('Everything is up to date.\n');
  }

  it('run create again after a remove that has failed, also in the next daemon', async () => {
    const { run, daemon, lines, path } = await withHooks('echo create >> DONE');
    expect((await run('up')).code).toBe(0);
    const failing = { name: 'shop--hook-remove', stack: 'shop', port: null, kind: 'task' };
    const cmd = `echo remove >> ${join(path, '..', 'done')}; exit 4`;
    expect((await daemon.request('POST', '/v1/services', { ...failing, cmd })).status).toBe(201);
    for (const removals of [1, 2]) {
      expect((await run('rm --stack shop')).code).toBe(1);
      expect(lines()).toEqual(['create', ...Array(removals).fill('remove')]);
    }
    daemon.signal('SIGKILL');
    await daemon.exited;
    const next = await daemonOf({ stateDir: daemon.stateDir });
    await expectUncreated({ run, daemon: next });
    expect((await run('rm --stack shop')).code).toBe(0);
    expect(lines()).toEqual(['create', 'remove', 'remove', 'create', 'remove shop']);
  });

  it('run create again after a remove whose end nobody has seen', async () => {
    const stack = await withHooks('echo create >> DONE');
    const { run, daemon, lines, goOn } = stack;
    const { ended: removal } = await underRemoval(stack);
    // While `remove` runs, `create` does not.
    const creation = await daemon.request('POST', '/v1/services/shop--hook-create/start?ifChanged=true');
    expect(creation).toMatchObject({ status: 503, body: { code: 'daemon_busy' } });
    process.kill(hostPid(daemon.stateDir), 'SIGKILL');
    goOn();
    expect((await removal).code).toBe(1);
    await expectUncreated({ run, daemon });
    expect((await run('rm --stack shop')).code).toBe(0);
    expect(lines()).toEqual(['create', 'remove', 'create', 'remove shop']);
  });

  it('are not repeated when the daemon is killed during one', async () => {
    const hook = 'echo create >> DONE; while ! test -e DONE.go; do sleep 0.05; done';
    const { run, daemon, lines, goOn } = await withHooks(hook);
    const first = run('up');
    await eventually(() => lines().length === 1);
    daemon.signal('SIGKILL');
    await daemon.exited;
    expect((await first).code).not.toBe(0);
    const next = await daemonOf({ stateDir: daemon.stateDir });
    const second = run('up');
    const hookNow = async () => (await next.request('GET', '/v1/services/shop--hook-create')).body.status;
    await eventually(async () => (await hookNow()) === 'running');
    goOn();
    expect((await second).code).toBe(0);
    expect([lines(), await hookNow()]).toEqual([['create'], 'completed']);
  });
});
