// pm2 in the comparison, installed from npm into the folder and driven through its own API.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isAlive } from './kit/process_stats.ts';
import { type Install, NAMES, TALK, TALKERS } from './peer_interface.ts';

type Done<T> = (error: Error | null, value: T) => void;

interface Shown {
  name?: string;
  pid?: number;
  pm2_env?: { status?: string };
}

interface Bus {
  on(event: 'process:event', listener: (message: { event: string; process: { name: string } }) => void): void;
}

/** The used part of pm2. */
interface Pm2 {
  connect(done: Done<unknown>): void;
  disconnect(): void;
  start(apps: object[], done: Done<unknown>): void;
  delete(name: string, done: Done<unknown>): void;
  list(done: Done<Shown[]>): void;
  launchBus(done: Done<Bus>): void;
  killDaemon(done: Done<unknown>): void;
}

const promised = <T>(work: (done: Done<T>) => void): Promise<T> =>
  new Promise((resolve, reject) => work((error, value) => (error ? reject(error) : resolve(value))));

const app = (name: string, cmd = 'exec sleep 1000'): object => ({
  name,
  script: '/bin/sh',
  args: ['-c', cmd],
  interpreter: 'none',
  autorestart: false,
});

function load(folder: string): Pm2 | null {
  const options = ['install', '--no-audit', '--no-fund', '--loglevel=error', '--prefix', folder, 'pm2'];
  if (spawnSync('npm', options, { stdio: ['ignore', 'ignore', 'inherit'] }).status !== 0) return null;
  Object.assign(process.env, {
    PM2_HOME: join(folder, 'home'),
    PM2_SILENT: 'true',
    PM2_PROGRAMMATIC: 'true',
  });
  return createRequire(join(folder, 'node_modules/'))('pm2');
}

export const pm2: Install = async (folder) => {
  const api = load(folder);
  if (!api) return null;
  const { version } = JSON.parse(readFileSync(join(folder, 'node_modules/pm2/package.json'), 'utf8'));
  const pid = (): number => Number(readFileSync(join(folder, 'home/pm2.pid'), 'utf8'));
  const list = () => promised<Shown[]>((done) => api.list(done));
  let bus: Bus | undefined;
  return {
    name: `pm2 ${version}`,
    start: async () => void (await promised((done) => api.connect(done))),
    // pm2 already knows the services it has started.
    define: async () => undefined,
    pids: () => [pid()],
    startOne: () => promised((done) => api.start([app('one')], done)),
    pidOfOne: async () => (await list()).find(({ name }) => name === 'one')?.pid ?? 0,
    stopOne: () => promised((done) => api.delete('one', done)),
    async noticesEnd() {
      bus ??= await promised<Bus>((done) => api.launchBus(done));
      await new Promise<void>((resolve) =>
        bus?.on('process:event', ({ event, process: { name } }) => {
          if (event === 'exit' && name === 'one') resolve();
        }),
      );
    },
    startAll: () =>
      promised((done) =>
        api.start(
          NAMES.map((name) => app(name)),
          done,
        ),
      ),
    startTalkers: () =>
      promised((done) =>
        api.start(
          TALKERS.map((name) => app(name, TALK)),
          done,
        ),
      ),
    status: list,
    running: async () =>
      (await list())
        .filter(({ name, pm2_env }) => name !== 'one' && pm2_env?.status === 'online')
        .map((shown) => shown.pid ?? 0),
    async kill() {
      const daemon = pid();
      api.disconnect();
      process.kill(daemon, 'SIGKILL');
      while (isAlive(daemon)) await pause(1);
    },
    async end() {
      // Its own shutdown of all services takes five seconds; its command is faster.
      execFileSync(process.execPath, [join(folder, 'node_modules/pm2/bin/pm2'), 'kill'], { stdio: 'ignore' });
      api.disconnect();
    },
  };
};
