// Starts a service: a shell in a session of its own, stdin /dev/null, stdout and stderr FIFOs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Libc } from '../adapters/process/libc.ts';
import type { LogStream } from '../logs/format.ts';
import type { SpawnRequest } from '../protocol/host.ts';
import { type ChildEvents, environmentOf, SHELL, spawnFailure, withUmask } from './child.ts';
import {
  closeDescriptors,
  FIFO_KINDS,
  type FifoKind,
  type FifoReader,
  type Fifos,
  fifoPath,
  openFifoForProcess,
  openFifoReader,
} from './fifo.ts';
import type { StartProgram } from './reap_children.ts';

/** The reading ends of a run's FIFOs. */
export interface OutputReaders {
  /** Takes in all that is there now. Gives and closes those that nobody holds for writing any more. */
  drain(): FifoKind[];
  close(): void;
}

/**
 * Reads both FIFOs of `run` from now on. `ended` is called once nobody can write to either any more, which may be long after
 * the end of the process when it has left others behind. A FIFO that is not there counts as ended.
 */
export function openOutputReaders(
  folder: string,
  run: string,
  libc: Libc | null,
  onOutput: ChildEvents['onOutput'],
  onEnded: () => void,
): OutputReaders {
  const intakes = new Map<FifoKind, FifoReader>();
  let open = 0;
  const streams: readonly LogStream[] = [1, 2];
  for (const [index, kind] of FIFO_KINDS.entries()) {
    const stream = streams[index] ?? 1;
    try {
      const intake = openFifoReader(
        fifoPath(folder, run, kind),
        libc,
        (bytes) => onOutput(stream, bytes),
        () => {
          open -= 1;
          if (open === 0) onEnded();
        },
      );
      intakes.set(kind, intake);
      open += 1;
    } catch {
      // Somebody removed it: the process writes to where nobody can read.
    }
  }
  if (open === 0) setImmediate(onEnded);
  return {
    drain: () => [...intakes].filter(([, intake]) => intake.drain()).map(([kind]) => kind),
    close: () => {
      for (const intake of intakes.values()) intake.close();
    },
  };
}

/** Starts the shell of `request`. Rejects with what the system says. */
async function startShell(
  { cmd, cwd, env, umask }: SpawnRequest,
  [out, err]: readonly [out: number, err: number],
  startProgram: StartProgram | null,
  onExit: ChildEvents['onExit'],
): Promise<number> {
  const args = ['-c', cmd];
  if (startProgram)
    return withUmask(umask, () => startProgram({ file: SHELL, args, cwd, env, output: [out, err] }, onExit));
  const child = withUmask(umask, () =>
    spawn(SHELL, args, { cwd, env: environmentOf(env), detached: true, stdio: ['ignore', out, err] }),
  );
  if (child.pid === undefined) {
    const [error] = await once(child, 'error');
    throw error;
  }
  child.once('exit', onExit);
  return child.pid;
}

export interface SpawnPipedOptions {
  fifos: Fifos;
  libc: Libc | null;
  /** null: Node has to do. */
  startProgram: StartProgram | null;
  events: ChildEvents;
  /** See openIntakes. */
  onDrained: () => void;
}

/** Starts the process of `request` and reads its output. Rejects with start_failed or storage_full. */
export async function spawnPiped(request: SpawnRequest, options: SpawnPipedOptions): Promise<number> {
  const { fifos, libc, startProgram, events, onDrained } = options;
  const { folder } = fifos;
  const { service, run } = request;
  const ends: number[] = [];
  const openEnd = (kind: FifoKind): number => {
    const fd = openFifoForProcess(folder, run, kind);
    ends.push(fd);
    return fd;
  };
  let intakes: OutputReaders | undefined;
  try {
    fifos.make(run);
    const reading = openOutputReaders(folder, run, libc, events.onOutput, onDrained);
    intakes = reading;
    return await startShell(request, [openEnd('out'), openEnd('err')], startProgram, (exitCode, signal) => {
      fifos.remove(run, reading.drain());
      events.onExit(exitCode, signal);
    });
  } catch (error) {
    intakes?.close();
    fifos.remove(run);
    throw spawnFailure(service, error);
  } finally {
    closeDescriptors(ends);
  }
}
