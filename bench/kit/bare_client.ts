// The client of the bare process, a small program without product code that measures floors. Each task is a
// message to the program, and each answer is a number.
import { type ChildProcess, fork } from 'node:child_process';
import { builtFile, PLAIN_ENVIRONMENT } from './daemon.ts';

/** The tasks of the bare process, with their parameters. */
export interface BareTasks {
  /**
   * Starts `count` shells that run `cmd`, each in its own session and with pipes. Answers with the last pid
   * once all run.
   */
  spawn: { cmd: string; count: number; port?: number };
  /** Ends every process it has started, with a signal to each group. Answers once all have ended. */
  stop: null;
  /** Kills the process started last. Answers once it has ended. */
  crash: null;
  /** Starts `cmd` in a terminal. Answers once it runs. */
  spawnTerminal: { cmd: string };
  /** Runs `cmd` in a terminal to its end. Answers with the number of bytes printed. */
  readTerminal: { cmd: string };
  /** Types keys into `cat` in a terminal. Answers with the median time from a key to its echo, in ms. */
  echoInTerminal: { keys: number };
  /**
   * Starts a server that answers each GET with `body`, and each POST by sending `frame` to all readers of
   * /v1/events, with the star in `frame` replaced by the last part of the path. Answers with its port.
   */
  serve: { body: string; frame: string };
  /**
   * Starts a relay that opens a connection to the port `to` for each client and forwards the bytes without
   * parsing them. Answers with its own port.
   */
  relay: { to: number };
  /** Reads the processor times of the processes `pids` every 2 s from now on. */
  poll: { pids: number[] };
}

export interface BareProcess {
  pid: number;
  ask<K extends keyof BareTasks>(task: K, data: BareTasks[K]): Promise<number>;
  end(): Promise<void>;
}

/** Starts the process; `end` also ends everything it has started. */
function startBareProcess(): BareProcess {
  const child = fork(builtFile('bench-bare.js'), { env: PLAIN_ENVIRONMENT });
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()));
  return {
    pid: child.pid ?? 0,
    ask: async (task, data) => {
      const answer = reply(child);
      child.send({ task, data });
      return answer;
    },
    async end() {
      child.disconnect();
      await ended;
    },
  };
}

const reply = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    const lost = (code: number | null): void => reject(new Error(`the bare process ended (${code})`));
    child.once('exit', lost);
    child.once('message', (value) => {
      child.off('exit', lost);
      if (typeof value === 'number') resolve(value);
      else reject(new Error(String(value)));
    });
  });

/** Runs `use` with a bare process that is ended afterwards. */
export async function withBareProcess<T>(use: (bare: BareProcess) => Promise<T>): Promise<T> {
  const bare = startBareProcess();
  try {
    return await use(bare);
  } finally {
    await bare.end();
  }
}
