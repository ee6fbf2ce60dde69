// Whole commands, measured as a user waits for them, against a real daemon with 20 services: process start,
// parsing, one request, printing, process end. The floor is a Node process that does nothing.
import { spawnSync } from 'node:child_process';
import { builtFile, environmentIn, registerMany, startDaemon, withFolder } from './kit/daemon.ts';
import { type Benchmark, compare, median, type Row, type Sample } from './kit/harness.ts';

const SERVICES = 20;
/** Runs per measurement; the median counts. */
const RUNS = 5;

const COMMANDS: readonly [name: string, args: readonly string[]][] = [
  ['berth ps', ['ps']],
  ['berth url', ['url', 'svc-1']],
  ['completion of a service name', ['__complete', '--', 'start', 'sv']],
];

/** Returns the runs per second of the program, from the median of its run times. */
const runs =
  (args: readonly string[], env: NodeJS.ProcessEnv): Sample =>
  async () => {
    const times: number[] = [];
    for (let run = 0; run < RUNS; run += 1) {
      const begin = performance.now();
      const { status, stderr } = spawnSync(process.execPath, args, {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      times.push(performance.now() - begin);
      if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
    }
    return 1_000 / median(times);
  };

async function run(folder: string): Promise<Row[]> {
  const env = environmentIn(folder);
  const daemon = await startDaemon(folder);
  try {
    await registerMany(daemon, SERVICES);
    const rows: Row[] = [];
    for (const [name, args] of COMMANDS) {
      const sides = { floor: runs(['-e', '0'], env), subject: runs([builtFile('bin.cjs'), ...args], env) };
      const row = await compare(name, 'runs/s', sides);
      // The figures are times, as a user sees them; the ratio stays the ratio of the rates.
      rows.push({ ...row, unit: 'ms', subject: 1_000 / row.subject, floor: 1_000 / row.floor });
    }
    return rows;
  } finally {
    await daemon.end();
  }
}

export const cli: Benchmark = {
  name: 'cli',
  question: 'How much longer than a Node that does nothing does a command take?',
  run: () => withFolder(run),
};
