// What the services of a file take from each other: `up` applies it at once, on a real daemon.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Daemon } from '../../kit/daemon.ts';
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
