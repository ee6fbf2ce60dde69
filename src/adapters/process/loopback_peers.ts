// Whether the program at the other end of a loopback connection still has its socket. A FIN does not tell: a
// program that has closed and one that has half-closed, to read on, look the same. The kernel knows, because
// the other end is on this machine.
import type { Socket } from 'node:net';
import { isIPv4 } from 'node:net';
import { loadLibc } from './libc.ts';
import {
  AF_INET,
  AF_INET6,
  ERRNO_AT,
  INODE_AT,
  NETLINK_SOCK_DIAG,
  NLMSG_ERROR,
  REQUEST_BYTES,
  TYPE_AT,
  tcpRequest,
} from './sock_diag.ts';

const NLM_F_REQUEST = 1;
const ENOENT = 2;
const ANY_VALUE = 0xffffffff;

export interface LoopbackPeers {
  /** Whether no process has the other end of `socket` open any more; null where that is not known. */
  isPeerGone(socket: Socket): boolean | null;
  close(): void;
}

/** Without netlink or koffi, nothing is known. */
const UNKNOWN_PEERS: LoopbackPeers = { isPeerGone: () => null, close: () => undefined };

function loopbackBytes(address: string): Buffer {
  const bytes = Buffer.alloc(16);
  // The listeners are bound to 127.0.0.1 and ::1 alone, so there are no other addresses.
  if (isIPv4(address)) for (const [index, part] of address.split('.').entries()) bytes[index] = Number(part);
  else bytes[15] = 1;
  return bytes;
}

/** A request for the socket at the other end of `socket`. */
function peerRequest(socket: Socket): Buffer {
  const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = socket;
  const request = tcpRequest(isIPv4(remoteAddress) ? AF_INET : AF_INET6, NLM_F_REQUEST, ANY_VALUE);
  request.writeUInt16BE(remotePort, 24);
  request.writeUInt16BE(localPort, 26);
  loopbackBytes(remoteAddress).copy(request, 28);
  loopbackBytes(localAddress).copy(request, 44);
  request.writeUInt32LE(ANY_VALUE, 64);
  request.writeUInt32LE(ANY_VALUE, 68);
  return request;
}

/** Whether the kernel's answer says that no process has the socket open; null where it does not say. */
export function isPeerGoneIn(answer: Buffer): boolean | null {
  if (answer.length < ERRNO_AT + 4) return null;
  if (answer.readUInt16LE(TYPE_AT) === NLMSG_ERROR)
    return answer.readInt32LE(ERRNO_AT) === -ENOENT ? true : null;
  if (answer.length < INODE_AT + 4) return null;
  return answer.readUInt32LE(INODE_AT) === 0;
}

/** Opens a netlink socket to ask on. Never rejects. */
export async function openLoopbackPeers(): Promise<LoopbackPeers> {
  try {
    const libc = await loadLibc();
    const fd = libc.netlink(NETLINK_SOCK_DIAG);
    const answer = Buffer.alloc(512);
    return {
      isPeerGone: (socket) => {
        // The kernel answers within the write, so there is nothing to wait for.
        if (libc.write(fd, peerRequest(socket)) !== REQUEST_BYTES) return null;
        return isPeerGoneIn(answer.subarray(0, Math.max(0, libc.read(fd, answer))));
      },
      close: () => libc.close(fd),
    };
  } catch {
    return UNKNOWN_PEERS;
  }
}
