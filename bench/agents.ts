// What it takes to tell the states of agents: 100 terminals that draw a frame ten times a second, as programs
// with a spinner do, next to the same terminals at rest; and how soon a question is told.
import { setTimeout as pause } from 'node:timers/promises';
import { type Daemon, withDaemon } from './kit/daemon.ts';
import { subscribe } from './kit/event_subscribers.ts';
import { type Benchmark, cost, median, type Row } from './kit/harness.ts';
import { cpuMs } from './kit/process_stats.ts';

const AGENTS = 100;
const MEASURED_MS = 10_000;
const TIMES = 15;
/** Two lines of a status, over and over at the same place. */
const FRAME = String.raw`printf "\r\e[2K%s Working (%ds)\r\n\e[2K  esc to interrupt\e[A", $c, time-$b`;
const MOVING = `exec perl -e '$|=1; $b=time; while(1){$c=++$i; ${FRAME}; select(undef,undef,undef,0.1)}'`;
const RESTING = 'exec sleep 1000';

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
    return rows;
  },
};
