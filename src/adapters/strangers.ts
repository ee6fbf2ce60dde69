// Connections of clients that have not presented a token yet: docs/reference.md "Connections".
import type { Socket } from 'node:net';

/** Identifies a connection by its peer, which a TLS socket shares with the connection it runs over. */
const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Closes the oldest stranger's connection when there are too many. */
export class Strangers {
  private readonly max: number;
  /** Oldest first. */
  private readonly connections = new Map<string, Socket>();

  constructor(max: number) {
    this.max = max;
  }

  /** Adds a new connection, before any TLS handshake. */
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

  /** The client on `socket` has presented a token. */
  remove(socket: Socket): void {
    this.connections.delete(peerOf(socket));
  }
}
