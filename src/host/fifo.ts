// The FIFOs that carry the output of a process to the host. The process holds them read-write, and the host
// reads. When the host is killed, the process lives on and the next host resumes reading. Meanwhile the
// process blocks only if a FIFO is full.
//
// FIFOs that no process has open are reused under another name. In a folder from which many files were
// removed within the last minute, ext4 takes up to a millisecond to find an inode for a new one, as long as
// the rest of a start.
import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync, readSync, renameSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { basename, join } from 'node:path';
import { hasNoReader } from '../adapters/host/run_pipes.ts';
import type { Libc } from '../adapters/process/libc.ts';
import { KIB, MIB } from '../settings/limits.ts';

const { O_NONBLOCK, O_RDONLY, O_RDWR } = constants;
/** File name suffixes: one FIFO for stdout, one for stderr. */
export const FIFO_KINDS = ['out', 'err'] as const;
export type FifoKind = (typeof FIFO_KINDS)[number];

/** One buffer for all readers: the bytes go to the log before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(64 * KIB);
/** The most FIFOs to keep for reuse. */
const MAX_FREE_FIFOS = 512;
/**
 * The capacity of a process's FIFO. More output after its end belongs to another process, and is not awaited.
 */
const MAX_DRAIN_BYTES = MIB;

/** The path of a FIFO of `run`. */
export const fifoPath = (folder: string, run: string, kind: FifoKind): string =>
  join(folder, `${run}.${kind}`);

/** A FIFO that cannot be removed because its folder was replaced does not matter any more. */
function removeIfThere(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The next start creates it again, or fails with the reason.
  }
}

/** The FIFOs in a folder. Each run has two. */
export class Fifos {
  /** May change: it was renamed. */
  folder: string;
  private readonly libc: Libc | null;
  /** Names of FIFOs that no process has open. */
  private readonly free: string[] = [];

  constructor(folder: string, libc: Libc | null) {
    this.folder = folder;
    this.libc = libc;
  }

  /** Creates the FIFOs of a run. Throws with the reason. */
  make(run: string): void {
    const missing = this.paths(run).filter((path) => !this.reuse(path));
    // The folder may have been removed while services are running.
    if (missing.length > 0) mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    if (this.libc) for (const path of missing) this.libc.makeFifo(path);
    else if (missing.length > 0) {
      const made = spawnSync('mkfifo', ['-m', '600', ...missing], { encoding: 'utf8' });
      if (made.status !== 0) throw new Error(made.error?.message ?? made.stderr.trim());
    }
  }

  /**
   * Removes the FIFOs of a run that has ended, but keeps those of `reusable`, which no process has open for
   * writing. Leftover processes of the run may still read, and would steal output.
   */
  remove(run: string, reusable: readonly FifoKind[] = []): void {
    for (const kind of FIFO_KINDS) {
      const path = fifoPath(this.folder, run, kind);
      if (reusable.includes(kind) && this.free.length < MAX_FREE_FIFOS && hasNoReader(path))
        this.free.push(basename(path));
      else removeIfThere(path);
    }
  }

  /** Removes the FIFOs that are kept for reuse. */
  removeFree(): void {
    for (const name of this.free.splice(0)) removeIfThere(join(this.folder, name));
  }

  private paths(run: string): string[] {
    return FIFO_KINDS.map((kind) => fifoPath(this.folder, run, kind));
  }

  /** Renames a kept FIFO to `path`. Returns false without one. */
  private reuse(path: string): boolean {
    const free = this.free.pop();
    if (free === undefined) return false;
    try {
      renameSync(join(this.folder, free), path);
      return true;
    } catch {
      // The FIFO was removed from outside.
      return false;
    }
  }
}

/**
 * Opens the process's end, also for reading, so that the process never loses its reader. Throws the system's
 * error.
 */
export const openFifoForProcess = (folder: string, run: string, kind: FifoKind): number =>
  openSync(fifoPath(folder, run, kind), O_RDWR);

export interface FifoReader {
  /**
   * Reads the available output. Returns true, and closes the FIFO, once no process has it open for writing.
   */
  drain(): boolean;
  close(): void;
}

/**
 * Reads into `readBuffer` without waiting. Returns the bytes read: 0 at the end, negative when none are
 * available.
 */
function readNonBlocking(fd: number, libc: Libc | null): number {
  if (libc) return libc.read(fd, readBuffer);
  try {
    return readSync(fd, readBuffer);
  } catch {
    return -1;
  }
}

/**
 * Starts to read a FIFO. The bytes given to `onBytes` are valid until it returns. `onEnded` is called once,
 * when no process has the FIFO open for writing any more. Throws when it cannot be opened.
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
  // A constant, because the types of Node do not know `onread` here.
  const options = { fd, readable: true, writable: false, onread };
  const socket = new Socket(options);
  const close = () => socket.destroy();
  socket.on('error', close);
  socket.on('close', onEnded);
  return {
    drain() {
      // Once the socket is destroyed, its descriptor may belong to another file, long before the `close`
      // event.
      for (let drained = 0; !socket.destroyed && drained < MAX_DRAIN_BYTES; ) {
        const count = readNonBlocking(fd, libc);
        if (count < 0) return false;
        if (count === 0) close();
        else onBytes(readBuffer.subarray(0, count));
        drained += count;
      }
      return socket.destroyed && socket.errored === null;
    },
    close,
  };
}

/** Closes all of `fds`. */
export function closeDescriptors(fds: readonly number[]): void {
  for (const fd of fds) closeSync(fd);
}
