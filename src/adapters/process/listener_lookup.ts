// Finds the listener that would accept a connection, for callers that ask before every one: the kernel looks
// up just that socket.
import { loadLibc } from './libc.ts';
import type { ListeningSocket } from './listeners.ts';
import { NETLINK_SOCK_DIAG, REQUEST_BYTES, socketIn, socketRequest } from './sock_diag.ts';

/** The part of a listening socket that identifies its owner. */
export type SocketOwner = Pick<ListeningSocket, 'uid' | 'inode'>;

export interface ListenerLookup {
  /**
   * The listener that a connection from this machine to `port` of the loopback `address` reaches; null: there
   * is none; undefined: unknown.
   */
  find(address: string, port: number): SocketOwner | null | undefined;
  close(): void;
}

/** Without netlink or koffi, nothing is known. */
export const UNKNOWN_LISTENERS: ListenerLookup = { find: () => undefined, close: () => undefined };

/** Opens a netlink socket to ask on. Never rejects. */
export async function openListenerLookup(): Promise<ListenerLookup> {
  try {
    const libc = await loadLibc();
    const fd = libc.netlink(NETLINK_SOCK_DIAG);
    const answer = Buffer.alloc(512);
    return {
      find: (address, port) => {
        // No connection comes from port 0, so no existing connection is found instead of the listener.
        const request = socketRequest({ address, port }, { address, port: 0 });
        // The kernel answers within the write, so there is nothing to wait for.
        if (libc.write(fd, request) !== REQUEST_BYTES) return undefined;
        return socketIn(answer.subarray(0, Math.max(0, libc.read(fd, answer))));
      },
      close: () => libc.close(fd),
    };
  } catch {
    return UNKNOWN_LISTENERS;
  }
}
