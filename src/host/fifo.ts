// The FIFOs that carry the output of a process to the host: the process holds them read-write, the host reads. When the
// host is killed the process lives on (it waits at worst, when one is full) and the next host reads on.
import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Libc } from '../adapters/libc.ts';
import { KIB, MIB } from '../limits.ts';

const { O_NONBLOCK, O_RDONLY, O_RDWR } = constants;
export const KINDS = ['out', 'err'] as const;
export type Kind = (typeof KINDS)[number];

/** One buffer for all: what is read is written to the log before anything else is read. */
const buffer = Buffer.allocUnsafeSlow(64 * KIB);
/** A process holds no more than this in its FIFO. More after its end comes from another, which need not be waited for. */
const DRAIN_BYTES = MIB;

export const fifoPath = (folder: string, run: string, kind: Kind): string => join(folder, `${run}.${kind}`);

/** Makes both FIFOs of a run in `folder`. Throws with the reason. */
export function makeFifos(folder: string, run: string, libc: Libc | null): void {
  const paths = KINDS.map((kind) => fifoPath(folder, run, kind));
  if (libc) {
    for (const path of paths) libc.makeFifo(path);
    return;
  }
  const made = spawnSync('mkfifo', ['-m', '600', ...paths], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.error?.message ?? made.stderr.trim());
}

/** What has a FIFO open keeps it; nobody finds it any more. */
export function removeFifos(folder: string, run: string): void {
  for (const kind of KINDS) rmSync(fifoPath(folder, run, kind), { force: true });
}

/** The end for the process: it never sees that a reader has gone, because it is one. */
export const openForProcess = (folder: string, run: string, kind: Kind): number =>
  openSync(fifoPath(folder, run, kind), O_RDWR);

export interface Intake {
  /** Takes in what is there now. */
  drain(): void;
  close(): void;
}

/** Bytes read into `buffer` without waiting; 0 when there are none now or ever. */
function readNow(fd: number, libc: Libc | null): number {
  if (libc) return Math.max(0, libc.read(fd, buffer));
  try {
    return readSync(fd, buffer);
  } catch {
    return 0;
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
    drain() {
      // Once it is destroyed its descriptor may be another file's already, long before its `close` is told.
      for (let taken = 0; !socket.destroyed && taken < DRAIN_BYTES; ) {
        const count = readNow(fd, libc);
        if (count === 0) return;
        take(buffer.subarray(0, count));
        taken += count;
      }
    },
    close,
  };
}

/** Closes descriptors of which some may not have been opened. */
export function closeAll(fds: readonly number[]): void {
  for (const fd of fds) closeSync(fd);
}
