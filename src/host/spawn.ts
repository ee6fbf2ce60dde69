// Starts a service: a shell in a session of its own, stdin /dev/null, stdout and stderr FIFOs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Libc } from '../adapters/process/libc.ts';
import type { SpawnRequest } from '../protocol/host.ts';
import type { LogStream } from '../protocol/log.ts';
import { asFailure, type ChildEvents, environment, SHELL, withUmask } from './child.ts';
import type { StartProgram } from './children.ts';
import {
  closeAll,
  type Fifos,
  fifoPath,
  type Intake,
  KINDS,
  type Kind,
  openForProcess,
  openIntake,
} from './fifo.ts';

/** The reading ends of a run's FIFOs. */
export interface Intakes {
  /** Takes in all that is there now. Gives and closes those that nobody holds for writing any more. */
  finish(): Kind[];
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
  const intakes = new Map<Kind, Intake>();
  let open = 0;
  const streams: readonly LogStream[] = [1, 2];
  for (const [index, kind] of KINDS.entries()) {
    const stream = streams[index] ?? 1;
    try {
      const intake = openIntake(
        fifoPath(folder, run, kind),
        libc,
        (bytes) => output(stream, bytes),
        () => {
          open -= 1;
          if (open === 0) ended();
        },
      );
      intakes.set(kind, intake);
      open += 1;
    } catch {
      // Somebody removed it: the process writes to where nobody can read.
    }
  }
  if (open === 0) setImmediate(ended);
  return {
    finish: () => [...intakes].filter(([, intake]) => intake.finish()).map(([kind]) => kind),
    close: () => {
      for (const intake of intakes.values()) intake.close();
    },
  };
}

/** Starts the shell of `request`. Rejects with what the system says. */
async function startShell(
  { cmd, cwd, env, umask }: SpawnRequest,
  [out, err]: readonly [out: number, err: number],
  start: StartProgram | null,
  ended: ChildEvents['ended'],
): Promise<number> {
  const args = ['-c', cmd];
  if (start) return withUmask(umask, () => start({ file: SHELL, args, cwd, env, output: [out, err] }, ended));
  const child = withUmask(umask, () =>
    spawn(SHELL, args, { cwd, env: environment(env), detached: true, stdio: ['ignore', out, err] }),
  );
  if (child.pid === undefined) {
    const [error] = await once(child, 'error');
    throw error;
  }
  child.once('exit', ended);
  return child.pid;
}

export interface PipedOptions {
  fifos: Fifos;
  libc: Libc | null;
  /** null: Node has to do. */
  start: StartProgram | null;
  events: ChildEvents;
  /** See openIntakes. */
  drained: () => void;
}

/** Starts the process of `request` and reads its output. Rejects with start_failed or storage_full. */
export async function spawnPiped(request: SpawnRequest, options: PipedOptions): Promise<number> {
  const { fifos, libc, start, events, drained } = options;
  const { folder } = fifos;
  const { service, run } = request;
  const ends: number[] = [];
  const openEnd = (kind: Kind): number => {
    const fd = openForProcess(folder, run, kind);
    ends.push(fd);
    return fd;
  };
  let intakes: Intakes | undefined;
  try {
    fifos.make(run);
    const reading = openIntakes(folder, run, libc, events.output, drained);
    intakes = reading;
    return await startShell(request, [openEnd('out'), openEnd('err')], start, (exitCode, signal) => {
      fifos.remove(run, reading.finish());
      events.ended(exitCode, signal);
    });
  } catch (error) {
    intakes?.close();
    fifos.remove(run);
    throw asFailure(service, error);
  } finally {
    closeAll(ends);
  }
}
