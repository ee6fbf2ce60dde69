// Pods of the double that send back what they get, at every port. Like an API server behind a proxy that bars
// SPDY, it offers one WebSocket for each connection.
import type { Server } from 'node:https';
import { WebSocketServer } from 'ws';

const PROTOCOL = 'v4.channel.k8s.io';
const DATA_CHANNEL = 0;
const ERROR_CHANNEL = 1;

/** Has `server` forward connections to such pods. */
export function serveEchoingPods(server: Server): void {
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => PROTOCOL });
  server.on('upgrade', (request, socket, head) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'https://double');
    const isForward = pathname.endsWith('/portforward');
    if (!isForward || request.headers['sec-websocket-protocol'] !== PROTOCOL) {
      socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    sockets.handleUpgrade(request, socket, head, (pod) => {
      const port = Number(searchParams.get('ports'));
      for (const channel of [DATA_CHANNEL, ERROR_CHANNEL])
        pod.send(Buffer.from([channel, port & 255, port >> 8]));
      pod.on('message', (message: Buffer) => {
        if (message[0] === DATA_CHANNEL) pod.send(message);
      });
    });
  });
}
