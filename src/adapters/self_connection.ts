// Connections that reach themselves. While nothing listens on a port in the range for outgoing connections,
// the kernel may give that port to the very socket that connects to it, and the connection succeeds.
import type { Socket } from 'node:net';

/** Whether a connected socket is its own other end. */
export const isSelfConnection = (socket: Socket): boolean =>
  socket.localPort === socket.remotePort && socket.localAddress === socket.remoteAddress;
