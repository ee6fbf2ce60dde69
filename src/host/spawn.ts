// Starts a service: a shell in a session of its own, stdin /dev/null, stdout and stderr FIFOs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Libc } from '../adapters/libc.ts';
import type { SpawnRequest } from '../protocol/host.ts';
import type { LogStream } from '../protocol/log.ts';
import { asFailure, type ChildEvents, environment, SHELL, withUmask } from './child.ts';
import {
  closeAll,
  fifoPath,
  type Intake,
  KINDS,
  makeFifos,
  openForProcess,
  openIntake,
  removeFifos,
} from './fifo.ts';

/** The reading ends of a run's FIFOs. */
export interface Intakes {
  /** Takes in all that is there now. */
  drain(): void;
  close(): void;
}

/**
 * Reads both FIFOs of `run` from now on. `ended` is called once nobody can write to either any more, which may be long after
 * the end of the process when it has left others behind. A FIFO that is not there counts as ended.
 */
export function openIntakes(
  folder: string,
  run: string,
  libc: Libc | null,
  output: ChildEvents['output'],
  ended: () => void,
): Intakes {
  const open = new Set<Intake>();
  const streams: readonly LogStream[] = [1, 2];
  for (const [index, kind] of KINDS.entries()) {
    const stream = streams[index] ?? 1;
    try {
      const intake = openIntake(
        fifoPath(folder, run, kind),
        libc,
        (bytes) => output(stream, bytes),
        () => {
          open.delete(intake);
          if (open.size === 0) ended();
        },
      );
      open.add(intake);
    } catch {
      // Somebody removed it: the process writes to where nobody can read.
    }
  }
  if (open.size === 0) setImmediate(ended);
  return {
    drain: () => {
      for (const intake of open) intake.drain();
    },
    close: () => {
      for (const intake of open) intake.close();
    },
  };
}

/**
 * Starts the process of `request` and reads its output from `folder`. Rejects with start_failed or storage_full. `drained`:
 * see openIntakes.
 */
export async function spawnPiped(
  request: SpawnRequest,
  folder: string,
  libc: Libc | null,
  events: ChildEvents,
  drained: () => void,
): Promise<number> {
  const { service, run, cmd, cwd, env, umask } = request;
  const ends: number[] = [];
  let intakes: Intakes | undefined;
  try {
    makeFifos(folder, run, libc);
    intakes = openIntakes(folder, run, libc, events.output, drained);
    for (const kind of KINDS) ends.push(openForProcess(folder, run, kind));
    const [out, err] = ends;
    const child = withUmask(umask, () =>
      spawn(SHELL, ['-c', cmd], {
        cwd,
        env: environment(env),
        detached: true,
        stdio: ['ignore', out, err],
      }),
    );
    if (child.pid === undefined) {
      const [error] = await once(child, 'error');
      throw error;
    }
    const reading = intakes;
    child.once('exit', (exitCode, signal) => {
      reading.drain();
      removeFifos(folder, run);
      events.ended(exitCode, signal);
    });
    return child.pid;
  } catch (error) {
    intakes?.close();
    removeFifos(folder, run);
    throw asFailure(service, error);
  } finally {
    closeAll(ends);
  }
}
