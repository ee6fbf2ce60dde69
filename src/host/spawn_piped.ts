// Starts a service: a shell in its own session, with stdin from /dev/null and FIFOs as stdout and stderr.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Libc } from '../adapters/process/libc.ts';
import type { LogStream } from '../logs/format.ts';
import {
  type ChildEvents,
  environmentOf,
  SHELL,
  type StartRequest,
  shellStart,
  spawnFailure,
  withUmask,
} from './child.ts';
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
  /**
   * Reads the available output. Closes and returns the FIFOs that no process has open for writing any more.
   */
  drain(): FifoKind[];
  close(): void;
}

/**
 * Starts to read both FIFOs of `run`. `onEnded` is called once, when no process can write to either any more,
 * which may be long after the end of the process if it left others behind. A missing FIFO counts as ended.
 */
export function openOutputReaders(
  folder: string,
  run: string,
  libc: Libc | null,
  onOutput: ChildEvents['onOutput'],
  onEnded: () => void,
): OutputReaders {
  const readers = new Map<FifoKind, FifoReader>();
  let openCount = 0;
  const streams: readonly LogStream[] = [1, 2];
  for (const [index, kind] of FIFO_KINDS.entries()) {
    const stream = streams[index] ?? 1;
    try {
      const reader = openFifoReader(
        fifoPath(folder, run, kind),
        libc,
        (bytes) => onOutput(stream, bytes),
        () => {
          openCount -= 1;
          if (openCount === 0) onEnded();
        },
      );
      readers.set(kind, reader);
      openCount += 1;
    } catch {
      // Removed from outside: the output of the process cannot be read.
    }
  }
  if (openCount === 0) setImmediate(onEnded);
  return {
    drain: () => [...readers].filter(([, reader]) => reader.drain()).map(([kind]) => kind),
    close: () => {
      for (const reader of readers.values()) reader.close();
    },
  };
}

/** Starts the shell of a request. Rejects with the system's error. */
async function startShell(
  request: StartRequest,
  [out, err]: readonly [out: number, err: number],
  startProgram: StartProgram | null,
  onExit: ChildEvents['onExit'],
): Promise<number> {
  const { env, umask } = request;
  const { args, cwd } = shellStart(request);
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
  /** null: Node starts the shell. */
  startProgram: StartProgram | null;
  events: ChildEvents;
  /** See `onEnded` of `openOutputReaders`. */
  onDrained: () => void;
}

/**
 * Starts the process of `request`, reads its output, and resolves with its pid. Fails start_failed or
 * storage_full.
 */
export async function spawnPiped(request: StartRequest, options: SpawnPipedOptions): Promise<number> {
  const { fifos, libc, startProgram, events, onDrained } = options;
  const { folder } = fifos;
  const { service: name, run } = request;
  const ends: number[] = [];
  const openEnd = (kind: FifoKind): number => {
    const fd = openFifoForProcess(folder, run, kind);
    ends.push(fd);
    return fd;
  };
  let opened: OutputReaders | undefined;
  try {
    fifos.make(run);
    const readers = openOutputReaders(folder, run, libc, events.onOutput, onDrained);
    opened = readers;
    return await startShell(request, [openEnd('out'), openEnd('err')], startProgram, (exitCode, signal) => {
      fifos.remove(run, readers.drain());
      events.onExit(exitCode, signal);
    });
  } catch (error) {
    opened?.close();
    fifos.remove(run);
    throw spawnFailure(name, error);
  } finally {
    closeDescriptors(ends);
  }
}
