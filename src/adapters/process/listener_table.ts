// The table of listeners again and again, quickly: the kernel gives the listening sockets alone (sock_diag), where for
// /proc/net/tcp6 it looks through every connection there could be (2 to 10 ms). Where netlink or koffi is not to be had it is /proc.
import { type Libc, loadLibc } from './libc.ts';
import { addressFromBytes, type ListeningSocket, listeningSockets } from './listeners.ts';
import {
  ADDRESS_AT,
  AF_INET,
  AF_INET6,
  INODE_AT,
  NETLINK_SOCK_DIAG,
  NLMSG_DONE,
  NLMSG_HEADER_BYTES,
  PORT_AT,
  REQUEST_BYTES,
  SOCK_DIAG_BY_FAMILY,
  TYPE_AT,
  tcpRequest,
  UID_AT,
} from './sock_diag.ts';

interface ListenerTable {
  /** As `listeners`; the first time it is that. */
  rows(): ListeningSocket[];
  /** Whether the next answer comes from the kernel itself. */
  readonly asksKernel: boolean;
  close(): void;
}

/** NLM_F_REQUEST, NLM_F_ROOT and NLM_F_MATCH. */
const DUMP_FLAGS = 0x301;
/** TCP_LISTEN. */
const LISTEN_STATE = 1 << 10;
const ADDRESS_FAMILIES = [
  { family: AF_INET, addressBytes: 4 },
  { family: AF_INET6, addressBytes: 16 },
] as const;
/** The kernel gives at most this much at a time. */
const MAX_ANSWER_BYTES = 32 * 1024;

/** Adds the rows of one part of an answer to `into`; whether it was the last, null for what is no answer. */
function parseDump(part: Buffer, addressBytes: number, into: ListeningSocket[]): boolean | null {
  for (let at = 0; at + NLMSG_HEADER_BYTES <= part.length; ) {
    const message = part.subarray(at, at + part.readUInt32LE(at));
    const type = message.readUInt16LE(TYPE_AT);
    if (type === NLMSG_DONE) return true;
    if (type !== SOCK_DIAG_BY_FAMILY || message.length < INODE_AT + 4) return null;
    into.push({
      port: message.readUInt16BE(PORT_AT),
      address: addressFromBytes(message.subarray(ADDRESS_AT, ADDRESS_AT + addressBytes)),
      uid: message.readUInt32LE(UID_AT),
      inode: message.readUInt32LE(INODE_AT),
    });
    // Messages begin at multiples of four.
    at += (message.length + 3) & ~3;
  }
  return false;
}

/** Asks on the socket `fd`; null when the kernel does not say. */
function queryKernel(libc: Libc, fd: number, answer: Buffer): ListeningSocket[] | null {
  const rows: ListeningSocket[] = [];
  for (const { family, addressBytes } of ADDRESS_FAMILIES) {
    if (libc.write(fd, tcpRequest(family, DUMP_FLAGS, LISTEN_STATE)) !== REQUEST_BYTES) return null;
    for (let last = false; !last; ) {
      const length = libc.read(fd, answer);
      const taken = length > 0 ? parseDump(answer.subarray(0, length), addressBytes, rows) : null;
      if (taken === null) return null;
      last = taken;
    }
  }
  return rows;
}

/** Opens nothing before the first question, which also begins to load what the next ones need. */
export function openListenerTable(): ListenerTable {
  const answer = Buffer.allocUnsafeSlow(MAX_ANSWER_BYTES);
  let kernel: { libc: Libc; fd: number } | null = null;
  let asked = false;
  let closed = false;
  const open = async (): Promise<void> => {
    const libc = await loadLibc();
    if (!closed) kernel = { libc, fd: libc.netlink(NETLINK_SOCK_DIAG) };
  };
  const close = (): void => {
    closed = true;
    kernel?.libc.close(kernel.fd);
    kernel = null;
  };
  return {
    rows() {
      if (!asked) {
        asked = true;
        // Then it stays as slow as it is.
        open().catch(() => {});
      }
      const rows = kernel && queryKernel(kernel.libc, kernel.fd, answer);
      if (rows) return rows;
      if (kernel) close();
      return listeningSockets();
    },
    get asksKernel() {
      return kernel !== null;
    },
    close,
  };
}
