// The cost of the daemon and its process host: memory without services and with 100 running ones, processor
// time with 300 idle ones. PSS divides a shared page (Node's own code) among its processes, RSS counts it in
// full for each. The floors are: two idle Node processes; one that has started the same 100 processes; one
// that only reads the processor times of the same 300 processes.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { withBareProcess } from './kit/bare_client.ts';
import { type Daemon, IDLE, PLAIN_ENVIRONMENT, registerMany, withDaemon } from './kit/daemon.ts';
import { type Benchmark, cost, costs, type Row } from './kit/harness.ts';
import { cpuSeconds, memoryOf } from './kit/process_stats.ts';

const SETTLE_MS = 2_000;
/** V8 returns memory after about 10 s without work. Only the memory that remains is measured. */
const REST_MS = 20_000;
const SOME = 100;
const MANY = 300;
/** The daemon measures its services five times in this time, and stores their history once. */
const WINDOW_MS = 10_000;
/** V8 still compiles for this long after 300 starts. That is not part of the running cost. */
const QUIET_MS = 20_000;

const NOTHING = ['-e', 'setInterval(() => {}, 1e6)'];

/** MiB of the daemon and the host: both together, then each alone. */
function memory(daemon: number, host: number): number[] {
  const pss = [memoryOf(daemon, 'Pss'), memoryOf(host, 'Pss')] as const;
  const rss = [memoryOf(daemon, 'Rss'), memoryOf(host, 'Rss')] as const;
  return [pss[0] + pss[1], ...pss, rss[0] + rss[1], ...rss];
}

async function nothing(): Promise<number[]> {
  const start = (): ChildProcess =>
    spawn(process.execPath, NOTHING, { stdio: 'ignore', env: PLAIN_ENVIRONMENT });
  const children = [start(), start()] as const;
  const ends = children.map((child) => once(child, 'exit'));
  try {
    await pause(SETTLE_MS);
    return memory(children[0].pid ?? 0, children[1].pid ?? 0);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(ends);
  }
}

const IDLE_ROWS = [
  'PSS',
  'PSS of the daemon',
  'PSS of the host',
  'RSS',
  'RSS of the daemon',
  'RSS of the host',
];

const idle = (): Promise<Row[]> =>
  costs(
    IDLE_ROWS.map((name) => `${name}, idle`),
    'MiB',
    {
      floor: nothing,
      subject: () =>
        withDaemon(async ({ pid, hostPid }) => {
          await pause(SETTLE_MS);
          return memory(pid, hostPid);
        }),
      turns: 3,
    },
  );

/** Runs `use` while `count` services run. */
async function withRunning<T>(daemon: Daemon, count: number, use: () => Promise<T>): Promise<T> {
  await registerMany(daemon, count);
  await daemon.ask('POST', '/v1/groups/bench/start');
  await pause(SETTLE_MS);
  return use();
}

/** The growth of memory since `before`, in MiB. */
async function grown(before: number, of: readonly number[]): Promise<number> {
  await pause(REST_MS);
  return of.reduce((sum, pid) => sum + memoryOf(pid, 'Pss'), 0) - before;
}

const withServices = (): Promise<Row> =>
  cost(`PSS more with ${SOME} running`, 'MiB', {
    floor: () =>
      withBareProcess(async (bare) => {
        await pause(SETTLE_MS);
        const before = memoryOf(bare.pid, 'Pss');
        await bare.ask('spawn', { cmd: IDLE, count: SOME });
        return grown(before, [bare.pid]);
      }),
    subject: () =>
      withDaemon(async (daemon) => {
        await pause(SETTLE_MS);
        const { pid, hostPid } = daemon;
        const before = memoryOf(pid, 'Pss') + memoryOf(hostPid, 'Pss');
        return withRunning(daemon, SOME, () => grown(before, [pid, hostPid]));
      }),
    turns: 1,
  });

/** Percent of one core during `ms`. */
async function share(of: readonly number[]): Promise<number> {
  const before = cpuSeconds(of);
  const began = performance.now();
  await pause(WINDOW_MS);
  return ((cpuSeconds(of) - before) / ((performance.now() - began) / 1_000)) * 100;
}

const processorTime = (): Promise<Row> =>
  withDaemon((daemon) =>
    withRunning(daemon, MANY, async () => {
      const { services } = (await daemon.ask('GET', '/v1/services')) as { services: { pid: number }[] };
      return withBareProcess(async (bare) => {
        await bare.ask('poll', { pids: services.map(({ pid }) => pid) });
        await pause(QUIET_MS);
        return cost(`processor time, ${MANY} running`, '% of a core', {
          floor: () => share([bare.pid]),
          subject: () => share([daemon.pid, daemon.hostPid]),
          turns: 3,
        });
      });
    }),
  );

export const memoryUse: Benchmark = {
  name: 'memory',
  question: 'What do the daemon and its process host take of the machine when services run that do nothing?',
  run: async () => [...(await idle()), await withServices(), await processorTime()],
};
