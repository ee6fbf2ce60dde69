// What the services of a file take from each other: `up` applies it at once, on a real daemon.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Daemon } from '../../kit/daemon.ts';
import { freePort } from '../../kit/free_ports.ts';
import { berth, cleanEnv, daemonOf, folder, type Ran, type RunOptions } from '../berth_process.ts';

interface Project {
  daemon: Daemon;
  /** `services`: by name, in JSON, which is YAML too. */
  write(services: Record<string, object>): void;
  run(line: string, options?: RunOptions): Promise<Ran>;
  /** What the daemon shows of the services of the stack, by their short names. */
  shown(): Promise<Record<string, any>>;
}

async function project(): Promise<Project> {
  const daemon = await daemonOf();
  const home = folder();
  const app = join(home, 'app');
  mkdirSync(app);
  const env = cleanEnv(home, { BERTH_STATE_DIR: daemon.stateDir, BERTH_CONFIG: daemon.configFile });
  return {
    daemon,
    write: (services) => writeFileSync(join(app, 'berth.yaml'), JSON.stringify({ services })),
    run: (line, options = {}) => berth(line.split(' '), { cwd: app, env, ...options }),
    shown: async () => {
      const { body } = await daemon.request('GET', '/v1/services');
      const details = body.services.map(async ({ name, service }: { name: string; service: string }) => [
        service,
        (await daemon.request('GET', `/v1/services/${name}`)).body,
      ]);
      return Object.fromEntries(await Promise.all(details));
    },
  };
}

/** The services of a file, by what each depends on. */
const workers = (dependsOn: Record<string, string[]>): Record<string, object> =>
  Object.fromEntries(
    Object.entries(dependsOn).map(([name, depends_on]) => [
      name,
      { cmd: 'exec sleep 1000', port: null, depends_on },
    ]),
  );

const dependenciesIn = (shown: Record<string, any>): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(shown).map(([name, { dependsOn }]) => [
      name,
      dependsOn.map((other: string) => other.replace('app--', '')),
    ]),
  );

it('up turns dependencies round, and restarts nothing for it', async () => {
  const { write, run, shown } = await project();
  const files: Record<string, string[]>[] = [
    { db: [], web: ['db'] },
    { db: ['web'], web: [] },
    { web: ['db'], db: [] },
    { a: [], b: ['a'], c: ['b'], db: [], web: ['db'] },
    { c: [], b: ['c'], a: ['b'], web: [], db: ['web'] },
    // What joins the two is no longer in the file.
    { c: ['a'], a: ['web'], web: [], db: ['c'] },
    { web: ['db'], db: [] },
  ];
  write(workers(files[0] ?? {}));
  expect((await run('up')).code).toBe(0);
  const before = await shown();
  for (const dependsOn of files) {
    write(workers(dependsOn));
    expect(await run('up')).toMatchObject({ code: 0, stderr: expect.not.stringContaining('cycle') });
    const now = await shown();
    expect(dependenciesIn(now)).toEqual(dependsOn);
    expect([now['db'].pid, now['web'].pid]).toEqual([before['db'].pid, before['web'].pid]);
    expect(await run('up')).toMatchObject({ code: 0, stderr: 'Everything is up to date.\n' });
  }
});

it.each([1, 3, 5])(
  'up completes what another up, killed at registration %i, has begun to turn round',
  async (at) => {
    const { daemon, write, run, shown } = await project();
    write(workers({ a: [], b: ['a'], c: ['b'], d: ['c'] }));
    expect((await run('up --no-start')).code).toBe(0);
    const turned = { d: [], c: ['d'], b: ['c'], a: ['b'] };
    write(workers(turned));
    const stream = await daemon.events();
    const registered = (): number =>
      stream.events.filter(({ event }) => event === 'service.registered').length;
    let kill = (_: NodeJS.Signals): void => {};
    const killed = run('up --no-start', {
      onStart: (signal) => {
        kill = signal;
      },
    });
    await stream.until(() => registered() >= at);
    kill('SIGKILL');
    await killed;
    stream.close();
    expect(await run('up --no-start')).toMatchObject({ code: 0, stderr: '' });
    expect(dependenciesIn(await shown())).toEqual(turned);
  },
);

const NODE = JSON.stringify(process.execPath);
const SERVER = `exec ${NODE} -e 'require("http").createServer((q, r) => r.end()).listen(process.env.PORT)'`;

/** The services of a file, by the port of each, and one that refers to the port of `a`. */
const servers = (ports: Record<string, number | 'auto'>): Record<string, object> => {
  const server = (port: number | 'auto'): object => ({ cmd: SERVER, port, ready: 'tcp' });
  const named = Object.entries(ports).map(([name, port]) => [name, server(port)]);
  return { ...Object.fromEntries(named), c: { ...server('auto'), env: { A: '${port.a}' } } };
};

describe('an automatic port gives way to the same number of another service', () => {
  const given = freePort();

  it.each<[string, string, Record<string, number | 'auto'>, string[]]>([
    ['it was its number', 'it runs', { a: given }, []],
    ['it was its number', 'it is stopped', { a: given }, ['stop a']],
    ['it was its number', 'an `up` has only registered it', { a: given }, ['up --no-start']],
    ['it was its number, and the other had an automatic one', 'both run', { a: given, b: 'auto' }, []],
    ['it was leased', 'it runs', { a: 'auto' }, []],
    ['it was leased', 'it is stopped', { a: 'auto' }, ['stop a']],
  ])('when %s, and %s', async (_, how, ports, lines) => {
    const { write, run, shown } = await project();
    write(servers(ports));
    expect((await run('up')).code).toBe(0);
    const before = await shown();
    const { port } = before['a'];
    write(servers({ a: 'auto', b: port }));
    for (const line of lines) expect((await run(line)).code).toBe(0);
    const isRunning = how !== 'it is stopped';
    expect((await run('up --dry-run')).stdout.split('\n')).toContain(
      `a would change: port; ${isRunning ? 'restarts' : 'starts'}`,
    );
    expect(await run('up')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(isRunning ? /✓ a has changed and was restarted at/ : /✓ a is running at/),
    });
    const after = await shown();
    expect(after).toMatchObject({ a: { status: 'running' }, b: { status: 'running', port } });
    expect(after['a'].port).not.toBe(port);
    const environment = readFileSync(`/proc/${after['c'].pid}/environ`, 'utf8').split('\0');
    expect(environment).toContain(`A=${after['a'].port}`);
    expect(await run('up')).toMatchObject({ code: 0, stderr: 'Everything is up to date.\n' });
    expect((await shown())['a'].port).toBe(after['a'].port);
  });

  it('in the first `up`, and when a service of another project has it', async () => {
    const { daemon, write, run, shown } = await project();
    write(servers({ a: 'auto' }));
    await run('up --no-start');
    const leased = (await shown())['a'].port;
    await run('down');
    write(servers({ a: 'auto', b: leased }));
    expect((await run('up')).code).toBe(0);
    const { a, b } = await shown();
    expect([b.port, a.port === leased]).toEqual([leased, false]);
    await daemon.request('POST', '/v1/services', { name: 'other', port: a.port, cmd: SERVER });
    expect((await run('up --dry-run')).stdout.split('\n')).toContain('a would change: port; restarts');
    expect((await run('up')).stdout).toMatch(/✓ a has changed and was restarted at/);
    expect((await daemon.request('POST', '/v1/services/other/start')).status).toBe(200);
    expect(await run('up')).toMatchObject({ code: 0, stderr: 'Everything is up to date.\n' });
  });
});
