// Floors that need a process of their own: a small program with nothing of the product in it, and the client
// of it. Each task is a message to the program, and its answer is a number.
import { type ChildProcess, fork } from 'node:child_process';
import { builtFile, PLAIN_ENVIRONMENT } from './daemon.ts';

/** The tasks of the bare process, with their parameters. */
export interface BareTasks {
  /**
   * Starts so many shells with `cmd`, in sessions of their own and with pipes; until all are there. Answers
   * with the last pid.
   */
  spawn: { cmd: string; count: number; port?: number };
  /** Ends all it has started: a signal to each group, until every process has been seen to end. */
  stop: null;
  /** Kills the process that was started last, until its end has been seen. */
  crash: null;
  /** Starts `cmd` in a terminal; until it is there. */
  spawnTerminal: { cmd: string };
  /** Runs `cmd` in a terminal to its end and counts what it prints: the number of bytes. */
  readTerminal: { cmd: string };
  /**
   * A server that answers each GET with `body`, and a POST by sending `frame` to all who came for /v1/events,
   * with the last part of the path where `frame` has a star: its port.
   */
  serve: { body: string; frame: string };
  /**
   * Passes bytes on between its port and that one, a connection for each, and understands none of them: its
   * port.
   */
  relay: { to: number };
  /** Looks at the times of so many processes every 2 s from now on. */
  poll: { pids: number[] };
}

export interface BareProcess {
  pid: number;
  ask<K extends keyof BareTasks>(task: K, data: BareTasks[K]): Promise<number>;
  end(): Promise<void>;
}

/** Starts it; whatever it has started ends with `end`. */
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
