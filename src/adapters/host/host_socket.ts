// The unix socket of the process host, for both sides: where it lies, and the one line each way that comes before frames.
import { closeSync, existsSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { HELLO_TIMEOUT_MS, MAX_HELLO_BYTES } from '../../protocol/host_handshake.ts';

const SOCKET_NAME = 'host.sock';
/** `sun_path` with its final zero; a longer path is cut without a word. */
const MAX_PATH_BYTES = 107;
const NEWLINE = 0x0a;

/**
 * The path of the socket in `folder` as it can be given to the system, and what to call when it is not needed any more: a
 * path that is too long goes through a descriptor of the folder. Throws when the folder is not there.
 */
export function socketPath(folder: string): { path: string; release: () => void } {
  const path = join(folder, SOCKET_NAME);
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return { path, release: () => {} };
  const fd = openSync(folder, 'r');
  return { path: `/proc/self/fd/${fd}/${SOCKET_NAME}`, release: () => closeSync(fd) };
}

/** Whether there is a socket in `folder`; a killed host leaves its own behind. */
export const socketExists = (folder: string): boolean => existsSync(join(folder, SOCKET_NAME));

/** Whether somebody answers on the socket in `folder`. */
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
 * The first line of a connected socket. The socket is paused then; what came after the line is still to be read. Rejects when
 * none comes in 5 s or 4 KiB, or the socket ends first.
 */
export function readFirstLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let read = Buffer.alloc(0);
    const settle = (settled: () => void) => {
      clearTimeout(timer);
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
    const timer = setTimeout(() => settle(() => reject(new Error('no line in time'))), HELLO_TIMEOUT_MS);
    socket.on('data', onData).on('close', onClose);
  });
}
