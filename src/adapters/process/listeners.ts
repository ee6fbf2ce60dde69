// Which TCP ports have listeners, and in which process, from /proc. Without /proc (macOS) there appear to be
// none.
import { closeSync, openSync, readSync } from 'node:fs';
import { treeHasOpen } from './socket_holder.ts';

export interface ListeningSocket {
  port: number;
  /** As text, IPv6 without brackets, such as `127.0.0.1`, `::` or `::ffff:7f00:1`. */
  address: string;
  uid: number;
  /** Identifies the socket for `socketHolder`. */
  inode: number;
}

/** Columns of a row of /proc/net/tcp, split at spaces. */
const LOCAL_ADDRESS = 1;
const STATE = 3;
const UID = 7;
const INODE = 9;
const LISTEN = '0A';
const BLOCK_BYTES = 64 * 1024;
const ROOT_UID = 0;

/** An address of 4 or 16 bytes in network order, as text. */
export function addressFromBytes(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16));
  // The URL parser normalises the spelling of an address.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/** Decodes an address of /proc: hexadecimal words in the byte order of the machine. */
const addressText = (hex: string): string => addressFromBytes(Buffer.from(hex, 'hex').swap32());

function parseRow(row: string): ListeningSocket | undefined {
  const columns = row.trim().split(/ +/);
  const [address = '', port = ''] = (columns[LOCAL_ADDRESS] ?? '').split(':');
  if (columns[STATE] !== LISTEN) return undefined;
  return {
    port: Number.parseInt(port, 16),
    address: addressText(address),
    uid: Number(columns[UID]),
    inode: Number(columns[INODE]),
  };
}

/**
 * Adds the listeners of one file. They come first, so the thousands of connections that may follow are not
 * read.
 */
function readTable(path: string, into: ListeningSocket[]): void {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return;
  }
  try {
    const block = Buffer.allocUnsafe(BLOCK_BYTES);
    let rest = '';
    let isHeading = true;
    for (;;) {
      const length = readSync(fd, block, 0, BLOCK_BYTES, null);
      if (length === 0) return;
      const lines = (rest + block.toString('latin1', 0, length)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const row = isHeading ? undefined : parseRow(line);
        if (row) into.push(row);
        else if (!isHeading) return;
        isHeading = false;
      }
    }
  } finally {
    closeSync(fd);
  }
}

/** Every listening TCP socket of the system, IPv4 first. */
export function listeningSockets(): ListeningSocket[] {
  const rows: ListeningSocket[] = [];
  readTable('/proc/net/tcp', rows);
  readTable('/proc/net/tcp6', rows);
  return rows;
}

/** Whether a connection to localhost reaches `address`: a loopback or wildcard address of either family. */
export function isLocalAddress(address: string): boolean {
  return /^(?:127\.|0\.0\.0\.0$|::$|::1$|::ffff:(?:7f|0:0$))/.test(address);
}

/**
 * Whether a listener may belong to the run whose first process is `pid` (null: none): its owner is this user,
 * root (Docker's proxy, sudo), or the run's own tree. docs/reference.md "Ports and conflicts".
 */
export async function mayServe(
  { uid, inode }: Pick<ListeningSocket, 'uid' | 'inode'>,
  pid: number | null,
): Promise<boolean> {
  return isTrustedUser(uid) || (pid !== null && (await treeHasOpen(pid, inode)));
}

/** Whether `uid` is this user, or one whose programs can control this user's services anyway. */
export const isTrustedUser = (uid: number): boolean => uid === process.getuid?.() || uid === ROOT_UID;
