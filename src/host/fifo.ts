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
import { KIB, MIB } from '../limits.ts';

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;
export const KINDS = ['out', 'err'] as const;
export type Kind = (typeof KINDS)[number];

/** One buffer for all: what is read is written to the log before anything else is read. */
const buffer = Buffer.allocUnsafeSlow(64 * KIB);
/** So many are kept for later. */
const SPARE_FIFOS = 512;
/** A process holds no more than this in its FIFO. More after its end comes from another, which need not be waited for. */
const DRAIN_BYTES = MIB;

export const fifoPath = (folder: string, run: string, kind: Kind): string => join(folder, `${run}.${kind}`);

/** Whether nobody has it open for reading: what a run has left behind may, and would take what the next one says. */
function isUnread(path: string): boolean {
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
  private readonly spare: string[] = [];

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
  remove(run: string, free: readonly Kind[] = []): void {
    for (const kind of KINDS) {
      const path = fifoPath(this.folder, run, kind);
      if (free.includes(kind) && this.spare.length < SPARE_FIFOS && isUnread(path)) this.spare.push(path);
      else rmSync(path, { force: true });
    }
  }

  /** Removes those that are kept for later. */
  clear(): void {
    for (const path of this.spare.splice(0)) rmSync(path, { force: true });
  }

  private paths(run: string): string[] {
    return KINDS.map((kind) => fifoPath(this.folder, run, kind));
  }

  /** False when there is none to be had. */
  private reuse(path: string): boolean {
    const spare = this.spare.pop();
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
export const openForProcess = (folder: string, run: string, kind: Kind): number =>
  openSync(fifoPath(folder, run, kind), O_RDWR);

export interface Intake {
  /** Takes in what is there now. True: it is closed, because nobody holds it for writing any more. */
  finish(): boolean;
  close(): void;
}

/** Bytes read into `buffer` without waiting; 0 at the end, less when there are none now. */
function readNow(fd: number, libc: Libc | null): number {
  if (libc) return libc.read(fd, buffer);
  try {
    return readSync(fd, buffer);
  } catch {
    return -1;
  }
}

/**
 * Reads a FIFO from now on. `take` must be done with the bytes when it returns. `ended`, once: nobody holds it for writing
 * any more. Throws when it cannot be opened.
 */
export function openIntake(
  path: string,
  libc: Libc | null,
  take: (bytes: Uint8Array) => void,
  ended: () => void,
): Intake {
  const fd = openSync(path, O_RDONLY | O_NONBLOCK);
  const onread = {
    buffer,
    callback: (count: number) => {
      take(buffer.subarray(0, count));
      return true;
    },
  };
  const options = { fd, readable: true, writable: false, onread };
  const socket = new Socket(options);
  const close = () => socket.destroy();
  socket.on('error', close);
  socket.on('close', ended);
  return {
    finish() {
      // Once it is destroyed its descriptor may be another file's already, long before its `close` is told.
      for (let taken = 0; !socket.destroyed && taken < DRAIN_BYTES; ) {
        const count = readNow(fd, libc);
        if (count < 0) return false;
        if (count === 0) close();
        else take(buffer.subarray(0, count));
        taken += count;
      }
      return socket.destroyed && socket.errored === null;
    },
    close,
  };
}

/** Closes descriptors of which some may not have been opened. */
export function closeAll(fds: readonly number[]): void {
  for (const fd of fds) closeSync(fd);
}
