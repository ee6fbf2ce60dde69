// A loopback port that this process keeps while the server behind it comes and goes. Another user who took it
// in between would get the requests meant for the server.
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { DESCRIPTORS } from '../settings/limits.ts';
import { loadPart } from '../settings/load_part.ts';
import { type AddressRefusal, listenOnLoopback } from './loopback_listener.ts';
import { loadLibc } from './process/libc.ts';
import { areDescriptorsUsed } from './process/open_files_limit.ts';

export interface HeldPort {
  readonly port: number;
  /**
   * Descriptors of the listening sockets, for a server in any thread, which then owns and closes them. From
   * now on connections wait in the kernel for that server. Rejects if libc cannot be called.
   */
  share(): Promise<number[]>;
  /**
   * A descriptor of a connection passed to `onConnection`, for another thread that then owns and closes it;
   * null if the connection has ended or descriptors are short. `socket` may be destroyed afterwards. Rejects
   * as `share` does.
   */
  shareConnection(socket: Socket): Promise<number | null>;
  /** Releases the port; a server that shares it keeps it. */
  close(): void;
}

/**
 * The descriptor of a connection, which Node exposes only on its handle; null if the connection has ended.
 */
export function descriptorOf(socket: Socket): number | null {
  const { _handle: handle } = socket as Socket & { _handle?: { fd: number } | null };
  return handle && handle.fd >= 0 ? handle.fd : null;
}

/**
 * Takes `port` on 127.0.0.1 and ::1; 0: any port free on both. Until it is shared, `onConnection` gets every
 * connection, with nothing read from it.
 */
export async function holdPort(
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<HeldPort | AddressRefusal> {
  const listener = await listenOnLoopback(port, onConnection, { paused: true });
  if ('refused' in listener) return listener;
  let held: number[] | undefined;
  return {
    port: listener.port,
    async share() {
      const libc = await loadPart(loadLibc);
      const duplicate = (fd: number): number => libc.duplicate(fd);
      if (!held) {
        held = listener.descriptors.map(duplicate);
        // Node keeps accepting while its own listener is open.
        void listener.close();
      }
      return held.map(duplicate);
    },
    async shareConnection(socket) {
      const libc = await loadPart(loadLibc);
      const fd = descriptorOf(socket);
      return fd === null || areDescriptorsUsed(DESCRIPTORS.dial) ? null : libc.duplicate(fd);
    },
    close() {
      if (held) for (const fd of held.splice(0)) closeSync(fd);
      else void listener.close();
    },
  };
}
