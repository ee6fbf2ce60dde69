// The cost of detecting the states of agents: 100 terminals that draw a frame ten times a second, as programs
// with a spinner do, next to the same terminals at rest; the delay until a question is reported; the memory
// per agent.
import { setTimeout as pause } from 'node:timers/promises';
import { withBareProcess } from './kit/bare_client.ts';
import { type Daemon, registerMany, withDaemon } from './kit/daemon.ts';
import { subscribe } from './kit/event_subscribers.ts';
import { type Benchmark, cost, costs, median, type Row } from './kit/harness.ts';
import { cpuMs, memoryOf } from './kit/process_stats.ts';

const AGENTS = 100;
const MEASURED_MS = 10_000;
/** By then V8 has compiled the code that this load runs. */
const WARM_MS = 25_000;
/** More than the usual pool has. */
const MANY_PORTS = '[agents]\nports = [8100, 8400]\n';
/** Enough of them to run all code of an agent until it is compiled. */
const FIRST = 50;
const TIMES = 15;
/** A status of two lines that is redrawn in place. */
const FRAME = String.raw`printf "\r\e[2K%s Working (%ds)\r\n\e[2K  esc to interrupt\e[A", $c, time-$b`;
const MOVING = `exec perl -e '$|=1; $b=time; while(1){$c=++$i; ${FRAME}; select(undef,undef,undef,0.1)}'`;
const RESTING = 'exec sleep 1000';
const SETTLE_MS = 2_000;
/** By then an idle daemon has released the memory it can: see src/adapters/process/resting_memory.ts. */
const REST_MS = 30_000;
const KIB = 1_024;

/** Milliseconds of processor time in a second. */
interface Use {
  daemon: number;
  host: number;
}

/** The cost of `AGENTS` agents that run `cmd`. */
const agentsUse = (cmd: string): Promise<Use> =>
  useOf(async ({ ask }) => {
    for (let number = 0; number < AGENTS; number += 1)
      await ask('POST', '/v1/agents/spinup', { name: `agent-${number}`, cmd });
  });

/** The cost of as many services that print the same to their logs, without terminals and states. */
const servicesUse = (): Promise<Use> =>
  useOf(async (daemon) => {
    await registerMany(daemon, AGENTS, MOVING);
    await daemon.ask('POST', '/v1/groups/bench/start');
  });

const useOf = (begin: (daemon: Daemon) => Promise<void>): Promise<Use> =>
  withDaemon(async (daemon) => {
    await begin(daemon);
    await pause(WARM_MS);
    const used = (): Use => ({ daemon: cpuMs(daemon.pid), host: cpuMs(daemon.hostPid) });
    const [before, began] = [used(), performance.now()];
    await pause(MEASURED_MS);
    const [after, seconds] = [used(), (performance.now() - began) / 1_000];
    return { daemon: (after.daemon - before.daemon) / seconds, host: (after.host - before.host) / seconds };
  });

/** The daemon detects the states; the host stores the output and reads titles and notifications in it. */
const printing = (): Promise<Row[]> =>
  costs([`daemon, ${AGENTS} printing`, `host, ${AGENTS} printing`], 'ms per s', {
    floor: async () => [(await agentsUse(RESTING)).daemon, (await servicesUse()).host],
    subject: async () => {
      const { daemon, host } = await agentsUse(MOVING);
      return [daemon, host];
    },
    turns: 2,
  });

/** Milliseconds from a program's output of a question to the event that reports it. */
async function questionMs({ ask, port }: Daemon): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < TIMES; turn += 1) {
    const name = `asker-${turn}`;
    const stream = await subscribe(port, `/v1/events?types=agent.state&names=${name}`);
    const cmd = 'sleep 1; echo $(date +%s%N); printf "Go on? [y/N] "; sleep 1000';
    await ask('POST', '/v1/agents/spinup', { name, cmd });
    await stream.until('"state":"blocked"');
    const told = Date.now();
    stream.end();
    const { lines } = (await ask('GET', `/v1/agents/${name}/logs`)) as { lines: string[] };
    times.push(told - Number(lines.find((line) => /^\d{19}$/.test(line))?.slice(0, 13)));
    await ask('DELETE', `/v1/agents/${name}`);
  }
  return median(times);
}

/** The memory of agents, by number, once the threads have released what the starts needed. */
interface Memory {
  /** MiB for the first `FIRST`, with code and data that is there once for all. */
  first: number;
  /** KiB for each of the next `AGENTS`. */
  next: number;
}

/** The memory that agents started by `begin` add to the processes `of`. */
async function memoryOfAgents(
  of: readonly number[],
  begin: (count: number) => Promise<unknown>,
): Promise<Memory> {
  const used = (): number => of.reduce((sum, pid) => sum + memoryOf(pid, 'Pss'), 0);
  const grown = async (count: number): Promise<number> => {
    const before = used();
    await begin(count);
    await pause(REST_MS);
    return used() - before;
  };
  await pause(SETTLE_MS);
  const first = await grown(FIRST);
  return { first, next: ((await grown(AGENTS)) * KIB) / AGENTS };
}

const memoryOfBare = (): Promise<Memory> =>
  withBareProcess((bare) =>
    memoryOfAgents([bare.pid], (count) => bare.ask('spawn', { cmd: RESTING, count })),
  );

/** Agents without viewers that have printed some output, like every real agent. */
const memoryOfDaemon = (): Promise<Memory> =>
  withDaemon(({ ask, pid, hostPid }) => {
    let made = 0;
    return memoryOfAgents([pid, hostPid], async (count) => {
      for (const end = made + count; made < end; made += 1)
        await ask('POST', '/v1/agents/spinup', { name: `agent-${made}`, cmd: `seq 50; ${RESTING}` });
    });
  }, MANY_PORTS);

async function memory(): Promise<Row[]> {
  const [floor, subject] = [await memoryOfBare(), await memoryOfDaemon()];
  const row = (name: string, unit: string, of: (memory: Memory) => number): Promise<Row> =>
    cost(name, unit, { floor: async () => of(floor), subject: async () => of(subject), turns: 1 });
  return [
    await row(`memory more with the first ${FIRST} at rest`, 'MiB', ({ first }) => first),
    await row('memory more for each next at rest', 'KiB', ({ next }) => next),
  ];
}

export const agents: Benchmark = {
  name: 'agents',
  question: 'What does it take to tell what agents are doing?',
  run: async () => {
    const rows: Row[] = [
      ...(await printing()),
      await withDaemon((daemon) =>
        cost('a question until it is told', 'ms', {
          floor: async () => 100,
          subject: () => questionMs(daemon),
          turns: 2,
        }),
      ),
    ];
    return [...rows, ...(await memory())];
  },
};
