// The listening sockets, for callers that ask often. Through netlink (sock_diag) the kernel returns exactly
// these; for /proc/net/tcp6 it searches all its connection tables (2 to 10 ms). Without netlink or koffi,
// /proc is read.
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
  /** Like `listeningSockets`, which gives the first answer. */
  rows(): ListeningSocket[];
  /** Whether the next answer comes through netlink. */
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
/** The kernel gives at most this much per read. */
const MAX_ANSWER_BYTES = 32 * 1024;

/**
 * Adds the rows of one part of an answer to `into`. Returns whether it was the last part; null where it is no
 * answer.
 */
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

/** Asks on the netlink socket `fd`; null where the kernel does not answer. */
function queryKernel(libc: Libc, fd: number, answer: Buffer): ListeningSocket[] | null {
  const rows: ListeningSocket[] = [];
  for (const { family, addressBytes } of ADDRESS_FAMILIES) {
    if (libc.write(fd, tcpRequest(family, DUMP_FLAGS, LISTEN_STATE)) !== REQUEST_BYTES) return null;
    for (let isLast = false; !isLast; ) {
      const length = libc.read(fd, answer);
      const parsed = length > 0 ? parseDump(answer.subarray(0, length), addressBytes, rows) : null;
      if (parsed === null) return null;
      isLast = parsed;
    }
  }
  return rows;
}

/** Opens a table. The first question begins to load what netlink needs. */
export function openListenerTable(): ListenerTable {
  const answer = Buffer.allocUnsafeSlow(MAX_ANSWER_BYTES);
  let state: 'new' | 'loading' | 'unavailable' | { libc: Libc; fd: number } = 'new';
  const open = async (): Promise<void> => {
    const libc = await loadLibc();
    if (state === 'loading') state = { libc, fd: libc.netlink(NETLINK_SOCK_DIAG) };
  };
  const close = (): void => {
    if (typeof state === 'object') state.libc.close(state.fd);
    state = 'unavailable';
  };
  return {
    rows() {
      if (state === 'new') {
        state = 'loading';
        open().catch(() => {
          // Answers keep coming from /proc.
          state = 'unavailable';
        });
      }
      if (typeof state === 'object') {
        const rows = queryKernel(state.libc, state.fd, answer);
        if (rows) return rows;
        close();
      }
      return listeningSockets();
    },
    get asksKernel() {
      return typeof state === 'object';
    },
    close,
  };
}
