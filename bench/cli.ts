// Whole commands as a user waits for them, against a real daemon with 20 services: process start, parsing, one request, the
// answer printed, process end. The floor is a Node that does nothing.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from '../src/client/index.ts';
import { type Benchmark, compare, median, type Row, type Sample } from './harness.ts';

const SERVICES = 20;
/** One measurement is the median of this many runs. */
const RUNS = 5;

const COMMANDS: readonly [name: string, args: readonly string[]][] = [
  ['berth ps', ['ps']],
  ['berth url', ['url', 'service-1']],
  ['completion of a service name', ['__complete', '--', 'start', 'serv']],
];

/** The built `berth`, beside or above the file this is bundled into. */
const BIN = fileURLToPath(
  new URL(import.meta.url.includes('/chunks/') ? '../bin.cjs' : 'bin.cjs', import.meta.url),
);

/** Runs of the program per second, by the median of their times. */
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

/** A daemon with services; resolves with what ends it. */
async function daemon(env: NodeJS.ProcessEnv): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, [BIN, 'daemon'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (text) => {
      said += text;
      const [, found] = /listening on (\S+)\n/.exec(said) ?? [];
      if (found) resolve(found);
    });
    ended.then(() => reject(new Error('the daemon ended')));
  });
  const berth = connect({ url });
  for (let number = 1; number <= SERVICES; number += 1) {
    await berth.register({ name: `service-${number}`, port: 0, cmd: 'exec sleep 1000' });
  }
  return async () => {
    child.kill('SIGTERM');
    await ended;
  };
}

export const cli: Benchmark = {
  name: 'cli',
  question: 'How much longer than a Node that does nothing does a command take?',
  run: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      BERTH_STATE_DIR: join(folder, 'state'),
      BERTH_PORT: '0',
    };
    const end = await daemon(env);
    try {
      const rows: Row[] = [];
      for (const [name, args] of COMMANDS) {
        const sides = { floor: runs(['-e', '0'], env), subject: runs([BIN, ...args], env) };
        const row = await compare(name, 'runs/s', sides);
        // As somebody waits for it: the ratio stays that of speeds.
        rows.push({ ...row, unit: 'ms', subject: 1_000 / row.subject, floor: 1_000 / row.floor });
      }
      return rows;
    } finally {
      await end();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
