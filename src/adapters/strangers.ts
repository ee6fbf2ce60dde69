// Connections of clients that have not shown a token yet: docs/reference.md "Connections".
import type { Socket } from 'node:net';

/** Connections by their peer: a TLS socket has the peer of the connection that it runs over. */
const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Closes the oldest connection of a stranger when there are more of them than there may be. */
export class Strangers {
  private readonly max: number;
  /** Oldest first. */
  private readonly connections = new Map<string, Socket>();

  constructor(max: number) {
    this.max = max;
  }

  /** Takes a new connection, before any TLS handshake. */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    this.connections.set(peer, socket);
    socket.on('close', () => {
      if (this.connections.get(peer) === socket) this.connections.delete(peer);
    });
    const [oldest] = this.connections;
    if (this.connections.size <= this.max || !oldest) return;
    this.connections.delete(oldest[0]);
    oldest[1].destroy();
  }

  /** The client on `socket` is none any more. */
  remove(socket: Socket): void {
    this.connections.delete(peerOf(socket));
  }
}
