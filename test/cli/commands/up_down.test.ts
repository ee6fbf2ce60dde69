// The project file on a real daemon: up does what is needed and no more; down undoes what up did.
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MIB } from '../../../src/settings/limits.ts';
import type { Daemon } from '../../kit/daemon.ts';
import { eventually } from '../../kit/eventually.ts';
import { freePort, SERVICE_PORTS } from '../../kit/free_ports.ts';
import { berth, cleanEnv, daemonOf, folder, type Ran, type RunOptions } from '../berth_process.ts';

const NODE = JSON.stringify(process.execPath);
const SERVER = `exec ${NODE} -e 'require("http").createServer((q, r) => r.end("hi")).listen(process.env.PORT)'`;

/** Of a project in the folder `app`. */
const STACK = 'app';

interface Project {
  daemon: Daemon;
  folder: string;
  file: string;
  write(text: string): void;
  run(
    line: string,
    env?: Record<string, string>,
    onStdout?: RunOptions['onStdout'],
    cwd?: string,
  ): Promise<Ran>;
  /** The service of the stack as the daemon shows it. */
  get(name: string): Promise<any>;
  /** By the short names of the stack, and the registered names of others. */
  pids(): Promise<Record<string, number>>;
}

async function project(text: string, daemon?: Daemon): Promise<Project> {
  const berthd = daemon ?? (await daemonOf());
  const home = folder();
  const at = join(home, 'app');
  mkdirSync(at);
  const file = join(at, 'berth.yaml');
  writeFileSync(file, text);
  const base = { BERTH_STATE_DIR: berthd.stateDir, BERTH_CONFIG: berthd.configFile };
  return {
    daemon: berthd,
    folder: at,
    file,
    write: (now) => writeFileSync(file, now),
    run: (line, env = {}, onStdout = () => {}, cwd = at) =>
      berth(line.split(' '), { cwd, env: cleanEnv(home, { ...base, ...env }), onStdout }),
    get: async (name) => (await berthd.request('GET', `/v1/services/${STACK}--${name}`)).body,
    pids: async () => {
      const { body } = await berthd.request('GET', '/v1/services');
      return Object.fromEntries(
        body.services.map((one: { name: string; pid?: number }) => [
          one.name.replace(`${STACK}--`, ''),
          one.pid,
        ]),
      );
    },
  };
}

/** With a ready-check if it is a server: `up` watches what has none for two seconds. */
const service = (name: string, more = '', cmd = SERVER): string => {
  const ready = cmd === SERVER && !more.includes('ready:') ? '    ready: tcp\n' : '';
  return `  ${name}:
    cmd: ${JSON.stringify(cmd)}
${ready}${more}`;
};

describe('up --dry-run', () => {
  it('prints what up would do, and does nothing', async () => {
    const two = `services:\n${service('web')}${service('db', '    env: { A: "1" }\n')}`;
    const { run, write, pids } = await project(two);
    expect((await run('up --dry-run')).stdout).toBe('web would be registered\ndb would be registered\n');
    expect(await pids()).toEqual({});
    await run('up');
    const before = await pids();
    const unchanged = 'would stay as it is, unless a value of its env has changed';
    expect((await run('up --dry-run')).stdout).toBe(`web ${unchanged}\ndb ${unchanged}\n`);
    write(`services:\n${service('web', '    cwd: /tmp\n    autostart: true\n')}${service('new')}`);
    expect((await run('up --dry-run')).stdout.split('\n')).toEqual([
      'web would change: cwd, autostart; restarts',
      'new would be registered',
      'db would be stopped and removed',
      '',
    ]);
    expect(JSON.parse((await run('up --dry-run --json')).stdout)).toContainEqual({
      name: 'app--web',
      change: 'update',
      fields: ['cwd', 'autostart'],
      restarts: true,
      starts: false,
    });
    expect(await pids()).toEqual(before);
  });

  it('prints what up would start and run again', async () => {
    const calm = '    port: null\n';
    const task = (name: string, cmd: string, more = ''): string =>
      service(name, `    kind: task\n${more}`, cmd);
    const text = [
      service('web', calm, 'exec sleep 600'),
      task('whole', 'true'),
      task('built', 'true', '    inputs: ["src/**"]\n'),
      task('failed', 'test -e ok'),
    ].join('');
    const { run, folder: at, write } = await project(`services:\n${text}`);
    await run('up');
    await run('stop web');
    const unchanged = 'would stay as it is, unless a value of its env has changed';
    const printed = [
      'web would be started',
      `whole ${unchanged}`,
      'built would run again if its inputs have changed',
      'failed would be started',
      '',
    ];
    expect((await run('up --dry-run')).stdout.split('\n')).toEqual(printed);
    const starts = async (line: string): Promise<unknown[]> =>
      JSON.parse((await run(`${line} --json`)).stdout).map((one: { starts: unknown }) => one.starts);
    expect(await starts('up --dry-run')).toEqual([true, false, null, true]);
    expect(await starts('up --dry-run --force')).toEqual([true, true, true, true]);
    expect(await starts('up --dry-run --no-start')).toEqual([false, false, false, false]);
    write(`services:\n${text}`.replaceAll('cmd: "true"', 'cmd: "exec true"'));
    expect((await run('up --dry-run')).stdout).toContain('whole would change: cmd; starts\n');
    writeFileSync(join(at, 'ok'), '');
    await run('up');
    expect(await starts('up --dry-run')).toEqual([false, false, null, false]);
  });
});

describe('config', () => {
  it('prints the services as they would be registered, without a daemon', async () => {
    const text = `services:\n${service('web', '    env: { A: "${X:-y}" }\n', 'serve')}`;
    const { run, folder: at } = await project(text);
    const printed = await run('config', { BERTH_STATE_DIR: folder() });
    expect(printed.stdout).toContain(`cwd: ${at}`);
    expect(printed.stdout).toContain('A: y');
    const { services } = JSON.parse((await run('config --json')).stdout);
    expect(services).toEqual({ web: { cmd: 'serve', cwd: at, port: 'auto', env: { A: 'y' } } });
  });

  it('reports every mistake with its place', async () => {
    const { run } = await project('services:\n  web: { cmdd: x }\n');
    const { code, stdout, stderr } = await run('config -q');
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/berth\.yaml:2:\d+/);
  });
});

describe('up', () => {
  it('brings a project up in order, and changes nothing the second time', async () => {
    const text = `services:\n${service('web', '    ready: /\n    depends_on: [db]\n    env: { MODE: dev }\n')}${service('db', '    ready: tcp\n')}`;
    const { run, get, pids, file, daemon } = await project(text);
    const events = await daemon.events();
    const first = await run('up');
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const lines = first.stdout.trim().split('\n');
    expect(lines[0]).toMatch(/^✓ db is running at http:\/\/localhost:\d+ \(pid \d+, .*\)$/);
    expect(lines[1]).toMatch(/^✓ web is running at /);
    const web = await get('web');
    expect(web).toMatchObject({
      ready: { http: '/' },
      dependsOn: ['app--db'],
      envKeys: ['MODE'],
      labels: [`project=${file}`],
      cwd: join(file, '..'),
    });
    expect((await get('db')).ready).toEqual({ tcp: true });
    const before = await pids();

    const second = await run('up');
    expect(second).toMatchObject({ code: 0, stderr: 'Everything is up to date.\n' });
    expect(second.stdout).toMatch(
      /^· (db|web) is already running at .*\n· (db|web) is already running at .*\n$/,
    );
    expect(await pids()).toEqual(before);
    expect((await get('web')).revision).toBe(web.revision);
    expect(events.events.filter(({ event }) => event === 'service.started')).toHaveLength(2);
    events.close();
  });

  it('restarts only what must restart, whatever else changes', async () => {
    const text = (web: string, api: string, db: string) =>
      `services:\n${service('web', web)}${service('api', api)}${service('db', db)}`;
    const { run, write, pids, get } = await project(text('', '    env: { A: 1 }\n', ''));
    await run('up');
    const before = await pids();

    // None of this affects a process.
    write(
      text(
        '    group: site\n    restart: on-failure\n',
        '    env: { A: 1 }\n    stop: { grace: 1s }\n',
        '    ready: /\n',
      ),
    );
    const calm = await run('up');
    expect(calm.code).toBe(0);
    expect(calm.stdout.match(/with a new registration that needs no restart/g)).toHaveLength(3);
    expect(await pids()).toEqual(before);
    expect(await get('web')).toMatchObject({ group: 'app--site', stale: true });
    expect((await run('up')).stderr).toBe('Everything is up to date.\n');
    expect(await pids()).toEqual(before);

    // A value of env is never read back, yet its change is noticed, also together with a harmless one.
    write(
      text(
        '    group: site\n    restart: on-failure\n',
        '    env: { A: 2 }\n    stop: { grace: 2s }\n',
        '    ready: /\n',
      ),
    );
    const env = await run('up');
    expect(env.stdout).toMatch(/✓ api has changed and was restarted at http/);
    const after = await pids();
    expect(after['api']).not.toBe(before['api']);
    expect([after['web'], after['db']]).toEqual([before['web'], before['db']]);

    // A changed command.
    const [web, api] = [
      '    ready: tcp\n    group: site\n    restart: on-failure\n',
      '    env: { A: 2 }\n    stop: { grace: 2s }\n',
    ];
    const other = SERVER.replace('"hi"', '"ho"');
    write(`services:\n${service('web', web, other)}${service('api', api)}${service('db', '    ready: /\n')}`);
    const [, changed] = /✓ (\w+) has changed/.exec((await run('up')).stdout) ?? [];
    expect(changed).toBe('web');
    expect((await pids())['db']).toBe(before['db']);
    expect((await run('up')).stderr).toBe('Everything is up to date.\n');
  });

  const byPlaceholder = service('web', '    env: { DB: "${port.db}" }\n');
  const byVariable = service('web', '    ready: tcp\n', `DB=$PORT_DB ${SERVER}`);

  it.each([
    ['has changed', false, byPlaceholder],
    ['is another one since it was removed', true, byPlaceholder],
    ['has changed, by its variable', false, byVariable],
  ])('restarts what refers to a service whose port %s', async (_, isRemoved, web) => {
    const [first, second] = [freePort(), freePort()];
    const text = (port: number): string =>
      `services:\n${service('db', `    port: ${port}\n`)}${web}${service('other')}`;
    const { run, write, pids } = await project(text(first));
    await run('up');
    const before = await pids();
    if (isRemoved) await run('rm db');
    write(text(second));
    expect((await run('up --dry-run')).stdout.split('\n')).toEqual([
      isRemoved ? 'db would be registered' : 'db would change: port; restarts',
      'web would restart, because it refers to a URL that changes',
      'other would stay as it is, unless a value of its env has changed',
      '',
    ]);
    expect((await run('up')).stdout).toMatch(/web has changed and was restarted/);
    const after = await pids();
    expect(readFileSync(`/proc/${after['web']}/environ`, 'utf8').split('\0')).toContain(`DB=${second}`);
    expect(after['other']).toBe(before['other']);
    expect((await run('up')).stderr).toBe('Everything is up to date.\n');
  });

  it.each([
    ['by its name', ['up db']],
    ['without a start', ['up --no-start', 'restart db']],
    ['with --no-start, and what refers to it in the next one', ['up --no-start', 'up --no-start', 'up web']],
  ])('restarts what refers to a service that an earlier `up` has moved %s', async (_, lines) => {
    const [first, second] = [freePort(), freePort()];
    const text = (port: number): string =>
      `services:\n${service('db', `    port: ${port}\n`)}${byPlaceholder}${service('other')}`;
    const { run, write, pids, get } = await project(text(first));
    await run('up');
    const before = await pids();
    write(text(second));
    const said = await run(lines[0] ?? '');
    if (lines[0] === 'up db') expect(said.stderr).toContain('an address that has changed: web. `berth up`');
    expect(await get('web')).toMatchObject({ pid: before['web'], stale: true });
    for (const line of lines.slice(1)) await run(line);
    await run('up');
    const after = await pids();
    expect(readFileSync(`/proc/${after['web']}/environ`, 'utf8').split('\0')).toContain(`DB=${second}`);
    expect(after['other']).toBe(before['other']);
    expect((await run('up')).stderr).toBe('Everything is up to date.\n');
  });

  it('restarts what refers to a service whose new port was taken at first', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const second = (taken.address() as AddressInfo).port;
    const text = (port: number): string =>
      `services:\n${service('db', `    port: ${port}\n`)}${byPlaceholder}    depends_on: [db]\n`;
    const { run, write, pids } = await project(text(freePort()));
    await run('up');
    const before = await pids();
    write(text(second));
    expect((await run('up')).stderr).toContain('web: left as it was: it needs db');
    expect((await pids())['web']).toBe(before['web']);
    taken.close();
    await once(taken, 'close');
    expect((await run('up')).code).toBe(0);
    const after = await pids();
    expect(readFileSync(`/proc/${after['web']}/environ`, 'utf8').split('\0')).toContain(`DB=${second}`);
  });

  it('restarts what refers to a service that speaks another protocol on the same port', async () => {
    const text = (more: string): string =>
      `services:\n${service('db', more)}${service('web', '    env: { DB: "${url.db}" }\n')}${service('other')}`;
    const { run, write, get, pids } = await project(text(''));
    await run('up');
    const before = await pids();
    write(text('    protocol: tcp\n'));
    expect((await run('up --dry-run')).stdout).toContain('web would restart, because it refers to a URL');
    expect((await run('up')).stdout).toMatch(/web has changed and was restarted/);
    const after = await pids();
    const { port } = await get('db');
    const environment = readFileSync(`/proc/${after['web']}/environ`, 'utf8').split('\0');
    expect(environment).toContain(`DB=tcp://localhost:${port}`);
    expect([after['db'], after['other']]).toEqual([before['db'], before['other']]);
    expect((await run('up')).stderr).toBe('Everything is up to date.\n');
  });

  it('lets services swap their ports, also when one depends on the other', async () => {
    const [one, other] = [freePort(), freePort()];
    const text = (db: number, web: number): string =>
      `services:\n${service('db', `    port: ${db}\n    ready: tcp\n`)}${service('web', `    port: ${web}\n    ready: tcp\n    depends_on: [db]\n`)}`;
    const { run, write, get } = await project(text(one, other));
    await run('up');
    write(text(other, one));
    expect(await run('up')).toMatchObject({ code: 0 });
    expect([await get('db'), await get('web')]).toMatchObject([
      { status: 'running', port: other },
      { status: 'running', port: one },
    ]);
  });

  it('restarts later what an earlier up had registered but not restarted', async () => {
    const { run, write, pids } = await project(`services:\n${service('web')}`);
    await run('up');
    const before = await pids();
    write(`services:\n${service('web', '    env: { A: 1 }\n')}`);
    expect((await run('up --no-start')).stdout).toBe('✓ web is updated (running)\n');
    expect(await pids()).toEqual(before);
    expect((await run('up')).stdout).toMatch(/^✓ web has changed and was restarted/);
    expect(await pids()).not.toEqual(before);
  });

  it('stops and removes services that are no longer in the file', async () => {
    const { run, write, pids, file } = await project(`services:\n${service('web')}${service('old')}`);
    await run('up');
    write(`services:\n${service('web')}`);
    const ran = await run('up');
    expect(ran.stderr).toContain(`old is no longer in ${file}: stopped and removed\n`);
    expect(Object.keys(await pids())).toEqual(['web']);
    write(`services:\n${service('db')}`);
    expect(JSON.parse((await run('up --json')).stdout)).toEqual([
      { name: 'app--web', change: 'removed', removed: true },
      expect.objectContaining({ name: 'app--db', change: 'registered' }),
    ]);
  });

  it('starts the named services and their dependencies', async () => {
    const { run, pids } = await project(
      `services:\n${service('web', '    depends_on: [db]\n')}${service('db')}${service('docs')}`,
    );
    expect((await run('up web')).code).toBe(0);
    expect(Object.keys(await pids())).toEqual(['db', 'web']);
    const wrong = await run('up wbe');
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
    expect(wrong.stderr).toContain('Did you mean web?');
  });

  it('says that a service goes on although one that it needs has failed', async () => {
    const text = (db: string): string =>
      `services:\n${service('db', '    ready: tcp\n', db)}${service('web', '    depends_on: [db]\n')}`;
    const { run, write, pids } = await project(text(SERVER));
    await run('up');
    const { web } = await pids();
    write(text('exit 4'));
    expect((await run('up')).stderr).toContain('✗ web: left as it was: it needs db');
    expect((await pids())['web']).toBe(web);
  });

  it('explains a failure, skips what depends on it, and starts the rest', async () => {
    const text = `services:\n  db:\n    cmd: 'echo "no disk"; exit 4'\n    ready: tcp\n${service('web', '    depends_on: [db]\n')}${service('docs')}`;
    const { run, get } = await project(text);
    const ran = await run('up');
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('✗ db: ');
    expect(ran.stderr).toContain('no disk');
    expect(ran.stderr).toContain('✗ web: not started: it needs db');
    expect(ran.stdout).toMatch(/^✓ docs is running at /);
    expect((await get('web')).status).toBe('stopped');
  });

  it('watches services without a ready-check for two seconds, and reports what happened', async () => {
    const text =
      "services:\n  dies:\n    cmd: 'sleep 0.8; echo no database; exit 3'\n    port: null\n" +
      '  lives:\n    cmd: exec sleep 1000\n    port: null\n' +
      "  again:\n    cmd: 'sleep 0.6; exit 1'\n    port: null\n    restart: on-failure\n";
    const { run } = await project(text);
    const ran = await run('up');
    expect(ran.code).toBe(1);
    for (const name of ['dies', 'lives', 'again'])
      expect(ran.stdout).toMatch(new RegExp(`✓ ${name} started \\(no ready-check\\), pid \\d+`));
    expect(ran.stdout).not.toContain('http://');
    expect(ran.stderr).toMatch(
      /✗ dies: ended within [\d.]+m?s of its start \(exit 3\)\n {4}Its last lines:\n {4}no database/,
    );
    expect(ran.stderr).toMatch(/✗ again: ended within/);
    expect(ran.stderr).toContain('lives: still there after 2 s.');
  });

  it('takes a service without a ready-check that falls asleep while it looks at it for started', async () => {
    const text = 'services:\n  web:\n    cmd: exec sleep 1000\n    port: auto\n    sleep: {after: 1h}\n';
    const { run, get, daemon } = await project(`${text}${service('docs', '', 'exec sleep 1000')}`);
    let asleep: Promise<unknown> | undefined;
    const ran = await run('up', {}, (shown) => {
      if (shown.includes('✓ web started'))
        asleep ??= daemon.request('POST', `/v1/services/${STACK}--web/sleep`);
    });
    await asleep;
    expect(ran).toMatchObject({ code: 0, stderr: 'docs: still there after 2 s.\n' });
    expect((await get('web')).status).toBe('sleeping');
  });

  it.each([
    ['is removed', /✗ web: web was removed by another command meanwhile/, 1],
    ['loses its daemon', /✗ web: no daemon (?:answers|is running)/, 5],
  ])('ends when a service without a ready-check %s while it looks at it', async (what, says, code) => {
    const { run, daemon } = await project('services: {web: {cmd: exec sleep 1000, port: null}}\n');
    let isDone = false;
    const ran = await run('up', {}, (text) => {
      if (isDone || !text.includes('✓ web started')) return;
      isDone = true;
      if (what === 'is removed') void daemon.request('DELETE', `/v1/services/${STACK}--web`);
      else daemon.signal('SIGKILL');
    });
    expect(ran.stderr).toMatch(says);
    expect(ran.code).toBe(code);
  });

  it('starts nothing when the file is wrong, and reports where', async () => {
    const { run, pids } = await project(
      `services:\n${service('web')}  api:\n    cmd: x\n    prot: 3000\n    port: high\n`,
    );
    const ran = await run('up');
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain('berth.yaml:7:5: services.api.prot: unknown key; did you mean port?');
    expect(ran.stderr).toContain(
      'berth.yaml:8:11: services.api.port: must be a port from 1 to 65535, auto, { fixed: <port> }, or null for none',
    );
    expect(await pids()).toEqual({});
  });

  it('starts nothing when the daemon refuses a registration', async () => {
    const { run, pids, daemon } = await project(`services:\n${service('web')}`);
    const { body } = await daemon.request('POST', '/v1/agents/spinup', {
      name: 'app--web',
      cmd: 'exec sleep 100',
    });
    expect(body.name).toBe('app--web');
    const ran = await run('up');
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain('berth.yaml:2:3: services.web: an agent has this name');
    expect(Object.keys(await pids())).toEqual(['web']);
    await daemon.request('DELETE', '/v1/agents/app--web');
  });

  it('names both files when two of a folder claim one name, and takes over those of a moved file', async () => {
    const one = await project(`services:\n${service('web')}`);
    await one.run('up');
    const moved = join(one.folder, 'moved.yaml');
    writeFileSync(moved, `services:\n${service('web')}${service('api')}`);
    const refused = await one.run(`up -f ${moved}`);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(moved);
    expect(refused.stderr).toContain(one.file);
    expect(Object.keys(await one.pids())).toEqual(['web']);
    renameSync(one.file, moved);
    expect((await one.run(`up -f ${moved}`)).code).toBe(0);
    expect((await one.get('web')).labels).toContain(`project=${moved}`);
  });

  it('does not touch services registered by hand, unless asked to', async () => {
    const { run, daemon, get } = await project(`services:\n${service('web')}`);
    await daemon.request('POST', '/v1/services', {
      name: 'app--web',
      port: freePort(),
      cmd: 'exec sleep 100',
      stack: 'app',
    });
    const refused = await run('up');
    expect([refused.code, refused.stderr.includes('registered by hand')]).toEqual([2, true]);
    expect((await get('web')).cmd).toBe('exec sleep 100');
    expect((await run('up --adopt')).code).toBe(0);
    expect((await get('web')).cmd).toBe(SERVER);
  });

  it('keeps an automatic port across down --keep and up, and fills in variables of the shell', async () => {
    const { run, get } = await project(
      `services:\n${service('web', '    env: { WHO: "${WHO:-nobody}" }\n')}`,
    );
    await run('up', { WHO: 'me' });
    const { port, specHash } = await get('web');
    await run('down --keep');
    expect(await get('web')).toMatchObject({ status: 'stopped', port });
    await run('up', { WHO: 'me' });
    expect(await get('web')).toMatchObject({ status: 'running', port, specHash });
    await run('up', { WHO: 'you' });
    expect((await get('web')).specHash).not.toBe(specHash);
  });

  it('follows the logs until Ctrl-C on request, and the services continue', async () => {
    const { daemon, file, get } = await project(
      `services:\n  tick:\n    cmd: 'while :; do echo tick; sleep 0.1; done'\n`,
    );
    const env = cleanEnv(folder(), { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
    const ran = await berth(['up', '-a', '-f', file], {
      env,
      onStdout: (text, kill) => text.includes('tick\ntick\n') && kill('SIGINT'),
    });
    expect(ran.code).toBe(130);
    expect(ran.stderr).toContain('Following 1 log');
    expect((await get('tick')).status).toBe('running');
  });
});

describe('down', () => {
  it('also follows the log of a service that a later up adds to the stack', async () => {
    const tick = (name: string): string => `  ${name}:\n    cmd: 'echo ${name} is here; exec sleep 600'\n`;
    const { run, write } = await project(`services:\n${tick('one')}`);
    let later: Promise<Ran> | null = null;
    const ran = await run('up -a', {}, (text, kill) => {
      if (later === null && text.includes('one is here\n')) {
        write(`services:\n${tick('one')}${tick('two')}`);
        later = run('up');
      }
      if (text.includes('two is here\n')) kill('SIGINT');
    });
    expect(ran.stdout).toMatch(/two +\| two is here\n/);
    expect(await later).toMatchObject({ code: 0 });
  });

  it('stops in reverse order and removes what came from the file, and nothing else', async () => {
    const { run, daemon, pids, file } = await project(
      `services:\n${service('web', '    depends_on: [db]\n')}${service('db')}`,
    );
    await daemon.request('POST', '/v1/services', { name: 'mine', port: freePort(), cmd: 'exec sleep 100' });
    await daemon.request('POST', '/v1/services/mine/start');
    await run('up');
    const ran = await run('down');
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(ran.stdout).toMatch(/^✓ web is stopped and removed \(.*\)\n✓ db is stopped and removed \(.*\)\n$/);
    expect(Object.keys(await pids())).toEqual(['mine']);
    expect((await run('down')).stderr).toBe(`Nothing of ${file} is up.\n`);
  });

  it('works when the file is missing', async () => {
    const { run, pids, file } = await project(`services:\n${service('web')}`);
    await run('up');
    rmSync(file);
    expect((await run(`down -f ${file}`)).code).toBe(0);
    expect(await pids()).toEqual({});
  });

  it('works in the folder of a file that is gone, also beside a file of another tool', async () => {
    const { run, pids, file, write } = await project(`services:\n${service('web')}${service('db')}`);
    await run('up');
    rmSync(file);
    expect((await run('down db')).code).toBe(0);
    expect(Object.keys(await pids())).toEqual(['web']);
    writeFileSync(join(dirname(file), 'Procfile'), 'worker: exec sleep 600\n');
    expect(await run('down')).toMatchObject({ code: 0, stderr: '' });
    expect(await pids()).toEqual({});
    rmSync(join(dirname(file), 'Procfile'));
    expect((await run('down')).stderr).toMatch(/^Nothing of the stack \S+ is up\.\n$/);
    write(`services:\n${service('web')}`);
    await run('up');
    expect(Object.keys(await pids())).toEqual(['web']);
  });

  it('finds what up -f has brought up in this folder, and names the stacks if there are several', async () => {
    const { run, pids, file } = await project('');
    rmSync(file);
    const at = dirname(file);
    writeFileSync(join(at, 'one.yaml'), `services:\n${service('web')}`);
    writeFileSync(join(at, 'two.yaml'), `name: two\nservices:\n${service('api')}`);
    // Of another tool, and not up.
    writeFileSync(join(at, 'Procfile'), 'worker: exec sleep 600\n');
    await run('up -f one.yaml');
    await run('down');
    expect(await pids()).toEqual({});
    await run('up -f two.yaml');
    expect((await run('down')).stdout).toMatch(/^✓ api is stopped and removed/);
    rmSync(join(at, 'Procfile'));
    await run('up -f one.yaml');
    await run('up -f two.yaml');
    expect(await run('down')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^berth: several stacks of this folder are up: app, two\n.*--stack app/),
    });
    expect(Object.keys(await pids())).toEqual(['web', 'two--api']);
    expect((await run('down --stack two')).code).toBe(0);
    writeFileSync(file, 'services: {}\n');
    expect((await run('down')).stderr).toBe(
      `Nothing of ${file} is up. \`berth down -f one.yaml\` ends what is.\n`,
    );
    rmSync(file);
    mkdirSync(join(at, 'sub'));
    expect((await run('down', {}, undefined, join(at, 'sub'))).stdout).toMatch(
      /^✓ web is stopped and removed/,
    );
  });

  it.each([
    ['--stack login', {}],
    ['--stack shop--login', {}],
    ['--project shop/login', {}],
    ['', { BERTH_STACK: 'login' }],
  ])('ends the stack of another folder with `down %s`', async (option, env) => {
    const { run, daemon, pids, file } = await project(`name: shop\nservices:\n${service('web')}`);
    await run('up');
    const other = join(folder(), 'tree');
    mkdirSync(other);
    const theirs = join(other, 'berth.yaml');
    writeFileSync(theirs, `name: shop\nservices:\n${service('web')}`);
    expect((await run(`up -f ${theirs} --stack login`)).code).toBe(0);
    const names = async (): Promise<string[]> => Object.keys(await pids()).sort();
    expect(await names()).toEqual(['shop--login--web', 'shop--web']);
    const hand = { name: 'shop--login--hand', stack: 'shop--login', port: null, cmd: 'exec sleep 100' };
    expect((await daemon.request('POST', '/v1/services', hand)).status).toBe(201);
    const ended = await run(`down ${option}`.trim(), env);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(await names()).toEqual(['shop--login--hand', 'shop--web']);
    expect(await run('down --stack none')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no stack none'),
    });
    expect((await run('down --stack login')).stderr).toBe('Nothing of the stack shop--login is up.\n');
    expect((await run(`down -f ${file}`)).code).toBe(0);
    expect(await names()).toEqual(['shop--login--hand']);
  });

  it('takes only the named services', async () => {
    const { run, pids } = await project(`services:\n${service('web')}${service('db')}`);
    await run('up');
    expect((await run('down db')).code).toBe(0);
    expect(Object.keys(await pids())).toEqual(['web']);
    expect((await run('down nothing')).code).toBe(1);
  });
});

describe('without a daemon', () => {
  it('up starts one in the background and reports it; daemon stop ends it with what it runs', async () => {
    const home = folder();
    const file = join(home, 'berth.yaml');
    writeFileSync(file, `services:\n${service('web', '    ready: /\n')}`);
    const env = cleanEnv(home, { BERTH_PORT: '0' });
    writeFileSync(join(home, 'config.toml'), `[gateway]\nport = 0\n${SERVICE_PORTS}`);
    env['BERTH_CONFIG'] = join(home, 'config.toml');
    try {
      const up = await berth(['up'], { env, cwd: home });
      expect(up).toMatchObject({ code: 0, stdout: expect.stringMatching(/^✓ web is running at /) });
      const [, pid] =
        /^Started the daemon in the background \(pid (\d+), http:\/\/127\.0\.0\.1:\d+\)/.exec(up.stderr) ??
        [];
      expect(Number(pid)).toBeGreaterThan(0);
      expect((await berth(['daemon', 'status'], { env })).stdout).toContain(`pid ${pid}`);
      expect((await berth(['daemon', 'start'], { env })).stdout).toContain('is already running');
      const log = join(home, '.local/state/berth/daemon.log');
      const firstLines = readFileSync(log, 'utf8');
      appendFileSync(log, 'x\n'.repeat(MIB));
      await eventually(() => existsSync(`${log}.1`) && statSync(log).size < MIB);
      const [{ pid: web }] = JSON.parse((await berth(['ps', '--json'], { env })).stdout);
      expect((await berth(['daemon', 'stop'], { env })).stdout).toBe(`the daemon has ended (pid ${pid})\n`);
      expect(() => process.kill(web, 0)).toThrow();
      expect((await berth(['daemon', 'stop'], { env })).stdout).toBe('no daemon was running\n');
      expect(firstLines).toContain('listening on');
    } finally {
      await berth(['daemon', 'stop'], { env });
    }
  });

  it('has the certificate authorities of the command that starts it, from whatever folder', async () => {
    const home = folder();
    writeFileSync(join(home, 'config.toml'), `[gateway]\nport = 0\n${SERVICE_PORTS}`);
    const cwd = folder();
    const own = { BERTH_PORT: '0', BERTH_CONFIG: join(home, 'config.toml'), NODE_EXTRA_CA_CERTS: 'ca.pem' };
    const env = cleanEnv(home, own);
    try {
      const { pid } = JSON.parse((await berth(['daemon', 'start', '--json'], { env, cwd })).stdout);
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')).toContain(
        `NODE_EXTRA_CA_CERTS=${join(cwd, 'ca.pem')}`,
      );
    } finally {
      await berth(['daemon', 'stop'], { env });
    }
  });

  it('several commands that start one at the same time all use the same one', async () => {
    const home = folder();
    writeFileSync(join(home, 'config.toml'), `[gateway]\nport = 0\n${SERVICE_PORTS}`);
    const env = cleanEnv(home, { BERTH_PORT: '0', BERTH_CONFIG: join(home, 'config.toml') });
    try {
      const start = () => berth(['daemon', 'start', '--json'], { env });
      const started = await Promise.all([start(), start(), start(), start()]);
      expect(started.map(({ code, stderr }) => [code, stderr])).toEqual(started.map(() => [0, '']));
      expect(new Set(started.map(({ stdout }) => JSON.parse(stdout).pid)).size).toBe(1);
    } finally {
      await berth(['daemon', 'stop'], { env });
    }
  });

  it("prints the daemon's own message when it does not start", async () => {
    const home = folder();
    const config = join(home, 'config.toml');
    writeFileSync(config, 'bind = "203.0.113.7"\n');
    const ran = await berth(['daemon', 'start', '--config', config], {
      env: cleanEnv(home, { BERTH_PORT: '0' }),
    });
    expect(ran).toMatchObject({ code: 5, stdout: '' });
    expect(ran.stderr).toContain('the daemon ended with');
    expect(ran.stderr).toContain('203.0.113.7');
  });
});

describe('init and import', () => {
  it('make a project from a Procfile, with a token, and leave existing files alone', async () => {
    const home = folder();
    const env = cleanEnv(home);
    writeFileSync(join(home, 'Procfile'), 'web: ./web\nrelease: x\n');
    const first = await berth(['init'], { env, cwd: home });
    expect(first.code).toBe(0);
    expect(first.stderr).toContain('release is run once before a deployment');
    const text = readFileSync(join(home, 'berth.yaml'), 'utf8');
    expect(text.split('\n').slice(0, 2)).toEqual([
      '# yaml-language-server: $schema=.berth/berth.schema.json',
      '# Made from Procfile by `berth import`.',
    ]);
    expect(text).toContain('cmd: ./web');
    const schema = JSON.parse(readFileSync(join(home, '.berth/berth.schema.json'), 'utf8'));
    expect(Object.keys(schema.properties)).toContain('services');
    const config = readFileSync(join(home, '.config/berth/config.toml'), 'utf8');
    expect(config).toMatch(/^\[auth\]\ntoken = "[\w-]{32}"\n$/);
    const second = await berth(['init'], { env, cwd: home });
    expect(second.stdout).toContain('is there already');
    expect(second.stdout).toContain('a token is set already');
    expect(readFileSync(join(home, '.config/berth/config.toml'), 'utf8')).toBe(config);
  });

  it('go on with the next file, or an example, when one has nothing to run', async () => {
    const home = folder();
    const env = cleanEnv(home);
    const init = () => berth(['init', '--no-token'], { env, cwd: home });
    const file = join(home, 'berth.yaml');
    writeFileSync(join(home, 'package.json'), '{"scripts":{"test":"vitest"}}');
    const example = await init();
    expect(example).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('with a first service to change'),
    });
    expect(example.stderr).toMatch(
      /package\.json has nothing to run: there is no dev, start or serve script/,
    );
    expect(readFileSync(file, 'utf8')).toContain('python3 -m http.server');
    rmSync(file);
    writeFileSync(join(home, 'compose.yaml'), 'services: {db: {command: ./db, image: x}}');
    expect((await init()).stdout).toContain('is written from compose.yaml');
  });

  it('make a running daemon require the new token', async () => {
    const { run, daemon } = await project('');
    expect((await run('init')).stdout).toContain('has a token now');
    await expect.poll(async () => (await daemon.request('GET', '/v1/services')).status).toBe(401);
    expect((await run('ps')).code).toBe(0);
  });

  it('take over running services from the file of another tool, without a restart', async () => {
    const { run, folder: at, file, pids } = await project('');
    rmSync(file);
    const procfile = join(at, 'Procfile');
    writeFileSync(procfile, `web: ${SERVER}\n`);
    expect((await run('up')).stderr).toContain('Using Procfile');
    const before = await pids();
    expect((await run('import -w')).code).toBe(0);
    const down = await run('down');
    expect([down.code, down.stderr]).toEqual([
      0,
      `Nothing of ${file} is up. \`berth down -f Procfile\` ends what is.\n`,
    ]);
    const up = await run('up');
    expect([up.code, up.stderr]).toEqual([0, '']);
    expect(await pids()).toEqual(before);
    // The other way round it is a second file of a project that has one.
    expect((await run('up -f Procfile')).stderr).toContain(`${file} has a service of this name too`);
    expect((await run('down')).stdout).toMatch(/^✓ web is stopped and removed/);
  });

  it.each(['up', 'import -w'])(
    '%s gives each process of a Procfile its own port, whatever PORT is in .env',
    async (line) => {
      const { run, folder: at, file, get } = await project('');
      rmSync(file);
      writeFileSync(join(at, '.env'), `PORT=${freePort()}\n`);
      writeFileSync(join(at, 'Procfile'), `web: ${SERVER} # $PORT\napi: ${SERVER} # $PORT\n`);
      expect((await run(line)).stderr).toContain('PORT in .env is overridden: each process has its own port');
      expect(await run('up')).toMatchObject({ code: 0 });
      for (const name of ['web', 'api']) {
        const { port, url } = await get(name);
        expect([(await fetch(url)).status, (await run(`run -s ${name} -- printenv PORT`)).stdout]).toEqual([
          200,
          `${port}\n`,
        ]);
      }
      expect((await run('down')).code).toBe(0);
    },
  );

  it('write a working example if there is nothing to import', async () => {
    const { run, folder: at, file } = await project('');
    rmSync(file);
    expect((await run('init --no-token')).stdout).toContain('with a first service to change');
    expect((await run('up')).code).toBe(0);
    expect((await run('down')).code).toBe(0);
    expect(readFileSync(join(at, 'berth.yaml'), 'utf8')).toContain('services:');
  });

  it('print, write and refuse to overwrite', async () => {
    const home = folder();
    const run = (line: string) => berth(line.split(' '), { env: cleanEnv(home), cwd: home });
    expect(await run('import')).toMatchObject({ code: 2, stdout: '' });
    writeFileSync(join(home, 'Procfile'), 'web: ./web\n');
    expect((await run('import')).stdout).toContain('services:\n  web:\n    cmd: ./web\n    port: auto\n');
    expect((await run('import -w')).stdout).toContain('1 service from the Procfile');
    expect(await run('import -w')).toMatchObject({ code: 1, stdout: '' });
    expect((await run('import -w --force')).code).toBe(0);
    writeFileSync(join(home, 'compose.yaml'), 'services:\n\tx: 1\n');
    const broken = await run('import compose.yaml');
    expect([broken.code, broken.stderr.includes('compose.yaml:2:1')]).toEqual([2, true]);
    writeFileSync(join(home, 'notes.txt'), '');
    expect(await run('import notes.txt')).toMatchObject({ code: 2, stdout: '' });
  });
});

it('up restarts a service whose folder was removed and made again, and status says so', async () => {
  const text = 'services:\n  web: {cmd: "exec sleep 600", port: null, cwd: sub}\n';
  const { folder: at, run, pids } = await project(text);
  const sub = join(at, 'sub');
  mkdirSync(sub);
  expect(await run('up')).toMatchObject({ code: 0 });
  const { web: before } = await pids();
  rmSync(sub, { recursive: true });
  expect((await run('status web')).stdout).toContain('Its folder does not exist any more');
  mkdirSync(sub);
  expect((await run('status web')).stdout).toContain('Its folder was removed and made again');
  expect(JSON.parse((await run('up --dry-run --json')).stdout)).toMatchObject([{ restarts: true }]);
  expect((await run('up --dry-run')).stdout).toContain('web would restart, because its folder was removed');
  expect(await run('up')).toMatchObject({ code: 0 });
  const { web: after } = await pids();
  expect(after).not.toBe(before);
  expect((await run('status web')).stdout).not.toContain('Its folder');
  expect(await run('up')).toMatchObject({ code: 0 });
  expect((await pids())['web']).toBe(after);
});
