// What it takes to tell the states of agents: 100 terminals that draw a frame ten times a second, as programs
// with a spinner do, next to the same terminals at rest; how soon a question is told; and the memory of each.
import { setTimeout as pause } from 'node:timers/promises';
import { withBareProcess } from './kit/bare_client.ts';
import { type Daemon, withDaemon } from './kit/daemon.ts';
import { subscribe } from './kit/event_subscribers.ts';
import { type Benchmark, cost, median, type Row } from './kit/harness.ts';
import { cpuMs, memoryOf } from './kit/process_stats.ts';

const AGENTS = 100;
const MEASURED_MS = 10_000;
const TIMES = 15;
/** Two lines of a status, over and over at the same place. */
const FRAME = String.raw`printf "\r\e[2K%s Working (%ds)\r\n\e[2K  esc to interrupt\e[A", $c, time-$b`;
const MOVING = `exec perl -e '$|=1; $b=time; while(1){$c=++$i; ${FRAME}; select(undef,undef,undef,0.1)}'`;
const RESTING = 'exec sleep 1000';
const SETTLE_MS = 2_000;
const REST_MS = 20_000;
const KIB = 1_024;

/** Milliseconds of processor time of daemon and host in a second, with `AGENTS` agents that run `cmd`. */
function usePerSecond(cmd: string): Promise<number> {
  return withDaemon(async ({ ask, hostPid, pid }) => {
    for (let number = 0; number < AGENTS; number += 1)
      await ask('POST', '/v1/agents/spinup', { name: `agent-${number}`, cmd });
    await pause(5_000);
    const used = (): number => cpuMs(pid) + cpuMs(hostPid);
    const [before, began] = [used(), performance.now()];
    await pause(MEASURED_MS);
    return ((used() - before) * 1_000) / (performance.now() - began);
  });
}

/** Milliseconds from the moment at which a program prints a question until the event says so. */
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

/** KiB of `of` for each of `AGENTS` that `begin` starts, once V8 has given back what the starts took. */
async function memoryOfEach(of: readonly number[], begin: () => Promise<unknown>): Promise<number> {
  const used = (): number => of.reduce((sum, pid) => sum + memoryOf(pid, 'Pss'), 0);
  await pause(SETTLE_MS);
  const before = used();
  await begin();
  await pause(REST_MS);
  return ((used() - before) * KIB) / AGENTS;
}

/** An agent that nobody watches and that has printed something, as they all have. */
const memory = (): Promise<Row> =>
  cost('memory more for each at rest', 'KiB', {
    floor: () =>
      withBareProcess((bare) =>
        memoryOfEach([bare.pid], () => bare.ask('spawn', { cmd: RESTING, count: AGENTS })),
      ),
    subject: () =>
      withDaemon(({ ask, pid, hostPid }) =>
        memoryOfEach([pid, hostPid], async () => {
          for (let number = 0; number < AGENTS; number += 1)
            await ask('POST', '/v1/agents/spinup', { name: `agent-${number}`, cmd: `seq 50; ${RESTING}` });
        }),
      ),
    turns: 1,
  });

export const agents: Benchmark = {
  name: 'agents',
  question: 'What does it take to tell what agents are doing?',
  run: async () => {
    const rows: Row[] = [
      await cost(`processor time, ${AGENTS} printing`, 'ms per s', {
        floor: () => usePerSecond(RESTING),
        subject: () => usePerSecond(MOVING),
        turns: 2,
      }),
      await withDaemon((daemon) =>
        cost('a question until it is told', 'ms', {
          floor: async () => 100,
          subject: () => questionMs(daemon),
          turns: 2,
        }),
      ),
    ];
    return [...rows, await memory()];
  },
};
