// `berth ui` for the `viewers` bench: its first screen, and what it costs while a hundred services run. The
// floors are a Node program in a terminal that prints a line, and one that waits.
import { setTimeout as pause } from 'node:timers/promises';
import { spawn as spawnPty } from 'node-pty';
import { builtFile, environmentIn, registerMany, startDaemon, withFolder } from './kit/daemon.ts';
import { cost, median, type Row } from './kit/harness.ts';
import { cpuMs } from './kit/process_stats.ts';

const SERVICES = 100;
/** Starts per sample; the median counts. */
const TIMES = 3;
/** V8 compiles for this long after a start; that is no part of the running cost. */
const QUIET_MS = 3_000;
/** Four rounds of statistics. */
const WINDOW_MS = 8_000;
const BARE = ['-e', 'console.log("svc-1"); setInterval(() => {}, 1e6)'];

interface Opened {
  pid: number;
  /** From the spawn to the first service on the screen. */
  ms: number;
  close(): Promise<void>;
}

/** Runs a Node program in a terminal. Resolves when a service is on the screen. */
async function openTerminal(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Opened> {
  const began = performance.now();
  const terminal = spawnPty(process.execPath, [...args], {
    cols: 120,
    rows: 40,
    cwd: '/',
    env,
    encoding: null,
  });
  const ended = new Promise<void>((resolve) => terminal.onExit(() => resolve()));
  let shown = '';
  const ms = await new Promise<number>((resolve, reject) => {
    terminal.onData((bytes) => {
      shown += bytes.toString('latin1');
      if (shown.includes('svc-1')) resolve(performance.now() - began);
    });
    terminal.onExit(() => reject(new Error(`${args.join(' ')} ended: ${shown}`)));
  });
  const close = (): Promise<void> => {
    process.kill(terminal.pid, 'SIGKILL');
    return ended;
  };
  return { pid: terminal.pid, ms, close };
}

async function startMs(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const times: number[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    const { ms, close } = await openTerminal(args, env);
    times.push(ms);
    await close();
  }
  return median(times);
}

/** Percent of one core. */
async function share(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { pid, close } = await openTerminal(args, env);
  try {
    await pause(QUIET_MS);
    const [before, began] = [cpuMs(pid), performance.now()];
    await pause(WINDOW_MS);
    return ((cpuMs(pid) - before) / (performance.now() - began)) * 100;
  } finally {
    await close();
  }
}

/** The rows about `berth ui`. */
export const terminalUi = (): Promise<Row[]> =>
  withFolder(async (folder) => {
    const env = { ...environmentIn(folder), TERM: 'xterm-256color' };
    const daemon = await startDaemon(folder);
    try {
      await registerMany(daemon, SERVICES);
      await daemon.ask('POST', '/v1/groups/bench/start');
      const ui = [builtFile('bin.cjs'), 'ui'];
      return [
        await cost('berth ui to first screen', 'ms', {
          floor: () => startMs(BARE, env),
          subject: () => startMs(ui, env),
          turns: 3,
        }),
        await cost(`berth ui, ${SERVICES} running`, '% of a core', {
          floor: () => share(BARE, env),
          subject: () => share(ui, env),
          turns: 3,
        }),
      ];
    } finally {
      await daemon.end();
    }
  });
