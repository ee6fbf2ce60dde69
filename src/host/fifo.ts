// The FIFOs that carry the output of a process to the host: the process holds them read-write, the host reads. When the
// host is killed the process lives on (it waits at worst, when one is full) and the next host reads on.
//
// Those that nobody has open any more are used again under another name: ext4 takes up to a millisecond to find an inode for a new
// one in a folder where many were removed in the last minute, which is as long as all the rest of a start.
import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, renameSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Libc } from '../adapters/process/libc.ts';
import { KIB, MIB } from '../settings/limits.ts';

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;
export const FIFO_KINDS = ['out', 'err'] as const;
export type FifoKind = (typeof FIFO_KINDS)[number];

/** One buffer for all: what is read is written to the log before anything else is read. */
const readBuffer = Buffer.allocUnsafeSlow(64 * KIB);
/** So many are kept for later. */
const MAX_FREE_FIFOS = 512;
/** A process holds no more than this in its FIFO. More after its end comes from another, which need not be waited for. */
const MAX_DRAIN_BYTES = MIB;

export const fifoPath = (folder: string, run: string, kind: FifoKind): string =>
  join(folder, `${run}.${kind}`);

/** Whether nobody has it open for reading: what a run has left behind may, and would take what the next one says. */
function hasNoReader(path: string): boolean {
  try {
    closeSync(openSync(path, O_WRONLY | O_NONBLOCK));
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENXIO';
  }
}

/** The FIFOs of a folder, by the run they are for. */
export class Fifos {
  readonly folder: string;
  private readonly libc: Libc | null;
  /** Paths of those that nobody has open. */
  private readonly freePaths: string[] = [];

  constructor(folder: string, libc: Libc | null) {
    this.folder = folder;
    this.libc = libc;
  }

  /** Makes both of a run. Throws with the reason. */
  make(run: string): void {
    const missing = this.paths(run).filter((path) => !this.reuse(path));
    if (this.libc) for (const path of missing) this.libc.makeFifo(path);
    else if (missing.length > 0) {
      const made = spawnSync('mkfifo', ['-m', '600', ...missing], { encoding: 'utf8' });
      if (made.status !== 0) throw new Error(made.error?.message ?? made.stderr.trim());
    }
  }

  /** Of a run that has ended. What has one open keeps it; nobody finds it any more. `free`: those that nobody holds for writing. */
  remove(run: string, reusable: readonly FifoKind[] = []): void {
    for (const kind of FIFO_KINDS) {
      const path = fifoPath(this.folder, run, kind);
      if (reusable.includes(kind) && this.freePaths.length < MAX_FREE_FIFOS && hasNoReader(path))
        this.freePaths.push(path);
      else rmSync(path, { force: true });
    }
  }

  /** Removes those that are kept for later. */
  removeFree(): void {
    for (const path of this.freePaths.splice(0)) rmSync(path, { force: true });
  }

  private paths(run: string): string[] {
    return FIFO_KINDS.map((kind) => fifoPath(this.folder, run, kind));
  }

  /** False when there is none to be had. */
  private reuse(path: string): boolean {
    const spare = this.freePaths.pop();
    if (spare === undefined) return false;
    try {
      renameSync(spare, path);
      return true;
    } catch {
      // Somebody has removed it.
      return false;
    }
  }
}

/** The end for the process: it never sees that a reader has gone, because it is one. */
export const openFifoForProcess = (folder: string, run: string, kind: FifoKind): number =>
  openSync(fifoPath(folder, run, kind), O_RDWR);

export interface FifoReader {
  /** Takes in what is there now. True: it is closed, because nobody holds it for writing any more. */
  drain(): boolean;
  close(): void;
}

/** Bytes read into `buffer` without waiting; 0 at the end, less when there are none now. */
function readNonBlocking(fd: number, libc: Libc | null): number {
  if (libc) return libc.read(fd, readBuffer);
  try {
    return readSync(fd, readBuffer);
  } catch {
    return -1;
  }
}

/**
 * Reads a FIFO from now on. `take` must be done with the bytes when it returns. `ended`, once: nobody holds it for writing
 * any more. Throws when it cannot be opened.
 */
export function openFifoReader(
  path: string,
  libc: Libc | null,
  onBytes: (bytes: Uint8Array) => void,
  onEnded: () => void,
): FifoReader {
  const fd = openSync(path, O_RDONLY | O_NONBLOCK);
  const onread = {
    buffer: readBuffer,
    callback: (count: number) => {
      onBytes(readBuffer.subarray(0, count));
      return true;
    },
  };
  const options = { fd, readable: true, writable: false, onread };
  const socket = new Socket(options);
  const close = () => socket.destroy();
  socket.on('error', close);
  socket.on('close', onEnded);
  return {
    drain() {
      // Once it is destroyed its descriptor may be another file's already, long before its `close` is told.
      for (let taken = 0; !socket.destroyed && taken < MAX_DRAIN_BYTES; ) {
        const count = readNonBlocking(fd, libc);
        if (count < 0) return false;
        if (count === 0) close();
        else onBytes(readBuffer.subarray(0, count));
        taken += count;
      }
      return socket.destroyed && socket.errored === null;
    },
    close,
  };
}

/** Closes descriptors of which some may not have been opened. */
export function closeDescriptors(fds: readonly number[]): void {
  for (const fd of fds) closeSync(fd);
}
