// Whether the program at the other end of a loopback connection still has its socket. A FIN does not tell: a
// program that has closed and one that has half-closed in order to read on look the same. The kernel knows,
// because the other end is on this machine.
import type { Socket } from 'node:net';
import { loadLibc } from './libc.ts';
import { NETLINK_SOCK_DIAG, REQUEST_BYTES, socketIn, socketRequest } from './sock_diag.ts';

export interface LoopbackPeers {
  /** Whether no process has the other end of `socket` open any more; null if unknown. */
  isPeerGone(socket: Socket): boolean | null;
  close(): void;
}

/** Without netlink or koffi, nothing is known. */
const UNKNOWN_PEERS: LoopbackPeers = { isPeerGone: () => null, close: () => undefined };

/** Whether the kernel's answer says that no process has the socket open; null if it does not say. */
export function isPeerGoneIn(answer: Buffer): boolean | null {
  const socket = socketIn(answer);
  if (socket === undefined) return null;
  return socket === null || socket.inode === 0;
}

/** Opens a netlink socket to ask on. Never rejects. */
export async function openLoopbackPeers(): Promise<LoopbackPeers> {
  try {
    const libc = await loadLibc();
    const fd = libc.netlink(NETLINK_SOCK_DIAG);
    const answer = Buffer.alloc(512);
    return {
      isPeerGone: (socket) => {
        const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = socket;
        const peer = { address: remoteAddress, port: remotePort };
        const request = socketRequest(peer, { address: localAddress, port: localPort });
        // The kernel answers within the write, so there is nothing to wait for.
        if (libc.write(fd, request) !== REQUEST_BYTES) return null;
        return isPeerGoneIn(answer.subarray(0, Math.max(0, libc.read(fd, answer))));
      },
      close: () => libc.close(fd),
    };
  } catch {
    return UNKNOWN_PEERS;
  }
}
