// Whether the program at the other end of a loopback connection still has its socket. A FIN does not say: who has closed and
// who has half-closed to read on look the same. The kernel knows (sock_diag), because the other end is on this machine.

import type { Socket } from 'node:net';
import { isIPv4 } from 'node:net';
import { loadLibc } from './libc.ts';

const NETLINK_SOCK_DIAG = 4;
const SOCK_DIAG_BY_FAMILY = 20;
const NLM_F_REQUEST = 1;
const NLMSG_ERROR = 2;
const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const ENOENT = 2;
const ANY = 0xffffffff;
/** struct nlmsghdr and struct inet_diag_req_v2. */
const REQUEST_BYTES = 72;
/** Where struct inet_diag_msg, behind its nlmsghdr, has the inode of the socket: 0 when no descriptor is left. */
const INODE_AT = 16 + 68;

export interface Peers {
  /** Whether nobody holds the other end of `socket` any more; null where that cannot be told. */
  isGone(socket: Socket): boolean | null;
  close(): void;
}

/** Where netlink or koffi is not to be had: everything is possible. */
const UNKNOWN: Peers = { isGone: () => null, close: () => undefined };

function bytesOf(address: string): Buffer {
  const bytes = Buffer.alloc(16);
  // The listeners are bound to 127.0.0.1 and ::1 alone: there are no other addresses.
  if (isIPv4(address)) for (const [index, part] of address.split('.').entries()) bytes[index] = Number(part);
  else bytes[15] = 1;
  return bytes;
}

/** A request for the one socket whose own end is what is remote to `socket`. */
function requestFor(socket: Socket): Buffer {
  const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = socket;
  const request = Buffer.alloc(REQUEST_BYTES);
  request.writeUInt32LE(REQUEST_BYTES, 0);
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4);
  request.writeUInt16LE(NLM_F_REQUEST, 6);
  request[16] = isIPv4(remoteAddress) ? AF_INET : AF_INET6;
  request[17] = IPPROTO_TCP;
  request.writeUInt32LE(ANY, 20);
  request.writeUInt16BE(remotePort, 24);
  request.writeUInt16BE(localPort, 26);
  bytesOf(remoteAddress).copy(request, 28);
  bytesOf(localAddress).copy(request, 44);
  request.writeUInt32LE(ANY, 64);
  request.writeUInt32LE(ANY, 68);
  return request;
}

/** Never rejects. */
export async function openPeers(): Promise<Peers> {
  try {
    const libc = await loadLibc();
    const fd = libc.netlink(NETLINK_SOCK_DIAG);
    const answer = Buffer.alloc(512);
    return {
      isGone: (socket) => {
        // The kernel answers while it takes the request: there is nothing to wait for.
        if (libc.write(fd, requestFor(socket)) !== REQUEST_BYTES) return null;
        const length = libc.read(fd, answer);
        if (length < INODE_AT + 4 && length < 20) return null;
        if (answer.readUInt16LE(4) === NLMSG_ERROR) return answer.readInt32LE(16) === -ENOENT ? true : null;
        return answer.readUInt32LE(INODE_AT) === 0;
      },
      close: () => libc.close(fd),
    };
  } catch {
    return UNKNOWN;
  }
}
