// The unix socket of the process host, for both sides: its path, and the line in each direction that precedes
// frames.
import { closeSync, existsSync, lstatSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { HELLO_TIMEOUT_MS, MAX_HELLO_BYTES } from '../../protocol/host_handshake.ts';
import type { Clock } from '../../runtime/actor.ts';
import { systemClock } from '../../runtime/clock.ts';

const SOCKET_NAME = 'host.sock';
/** Size of `sun_path` without its final zero. The system truncates a longer path without an error. */
const MAX_PATH_BYTES = 107;
const NEWLINE = 0x0a;

/**
 * A path for the socket in `folder` that the system accepts. A path that is too long goes through a
 * descriptor of the folder. Call `release` when the path is no longer needed. Throws if the folder is
 * missing.
 */
export function socketPath(folder: string): { path: string; release: () => void } {
  const path = join(folder, SOCKET_NAME);
  return Buffer.byteLength(path) <= MAX_PATH_BYTES ? { path, release: () => {} } : pathByDescriptor(folder);
}

function pathByDescriptor(folder: string): ReturnType<typeof socketPath> {
  const fd = openSync(folder, 'r');
  return { path: `/proc/self/fd/${fd}/${SOCKET_NAME}`, release: () => closeSync(fd) };
}

/**
 * A path for listening in `folder`. It stays right when that is renamed: a server removes its socket when it
 * closes, and another one may be at the earlier path by then. As `socketPath` without /proc (macOS).
 */
export function listeningPath(folder: string): ReturnType<typeof socketPath> {
  return existsSync('/proc/self/fd') ? pathByDescriptor(folder) : socketPath(folder);
}

/** Whether there is a socket in `folder`. A host that is killed leaves its socket behind. */
export const socketExists = (folder: string): boolean => existsSync(join(folder, SOCKET_NAME));

/**
 * The inode of the socket in `folder`; undefined without one. It tells whether another file has replaced it.
 */
export function socketInode(folder: string): bigint | undefined {
  const file = lstatSync(join(folder, SOCKET_NAME), { bigint: true, throwIfNoEntry: false });
  return file?.isSocket() ? file.ino : undefined;
}

/** Whether a host accepts connections on the socket in `folder`. */
export function isListening(folder: string): Promise<boolean> {
  const { path, release } = socketPath(folder);
  return new Promise<boolean>((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  }).finally(release);
}

/**
 * Reads the first line of a connected socket, without its newline. The socket is paused afterwards, and what
 * follows the line is still to be read. Rejects when no line comes in 5 s or 4 KiB, or the socket ends first.
 */
export function readFirstLine(socket: Socket, clock: Clock = systemClock): Promise<string> {
  return new Promise((resolve, reject) => {
    let read = Buffer.alloc(0);
    const settle = (settled: () => void) => {
      cancelTimeout();
      socket.off('data', onData).off('close', onClose).pause();
      settled();
    };
    const onClose = () => settle(() => reject(new Error('the other side hung up')));
    const onData = (chunk: Buffer) => {
      read = Buffer.concat([read, chunk]);
      const end = read.indexOf(NEWLINE);
      if (end >= 0) {
        settle(() => {
          if (end + 1 < read.length) socket.unshift(read.subarray(end + 1));
          resolve(read.toString('utf8', 0, end));
        });
      } else if (read.length > MAX_HELLO_BYTES) settle(() => reject(new Error('no line but more')));
    };
    const onTimeout = () => settle(() => reject(new Error('no line in time')));
    const cancelTimeout = clock.after(HELLO_TIMEOUT_MS, onTimeout);
    socket.on('data', onData).on('close', onClose);
  });
}
