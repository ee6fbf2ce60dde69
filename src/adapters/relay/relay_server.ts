// The listener of a relay: WebSockets of clients that show a ticket, and nothing else.
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../runtime/actor.ts';
import { RELAY } from '../../settings/cloud_limits.ts';
import { DESCRIPTORS } from '../../settings/limits.ts';
import { readTextFile } from '../../settings/state_files.ts';
import { areDescriptorsUsed } from '../process/open_files_limit.ts';
import { WebSocketServer } from '../websocket.ts';
import { RELAY_PROTOCOL } from './frames.ts';
import type { MuxEvents } from './mux.ts';
import { carryStreams, MAX_RELAY_MESSAGE_BYTES, type RelayConnection } from './relay_connection.ts';
import { RELAY_PATH } from './relay_path.ts';

/** Where a relay listens. */
export interface RelayAddress {
  bind: string;
  /** 0: any free port. */
  port: number;
  /** Files with the certificate and its key. */
  tls?: { cert: string; key: string };
}

export interface RelayServerOptions extends RelayAddress {
  clock: Clock;
  acceptsTicket(ticket: string): boolean;
  /** The events of a new connection. */
  eventsOf(): MuxEvents;
}

export interface RelayServer {
  readonly port: number;
  /** Ends every connection; resolves when the port is free again. */
  close(): Promise<void>;
}

/** The status that refuses an upgrade; null: it is proper. */
function refusalOf(
  { method, url = '', headers }: IncomingMessage,
  acceptsTicket: (ticket: string) => boolean,
): number | null {
  if (url !== RELAY_PATH) return 404;
  // A page has no business here, whatever token it has.
  if (headers.origin !== undefined) return 403;
  const [scheme, ticket = ''] = (headers.authorization ?? '').split(' ');
  if (scheme?.toLowerCase() !== 'bearer' || !acceptsTicket(ticket)) return 401;
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((one) => one.trim());
  return method === 'GET' && offered.includes(RELAY_PROTOCOL) ? null : 400;
}

function refuse(socket: Duplex, status: number): void {
  const reason = http.STATUS_CODES[status] ?? '';
  socket.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function createServer({ tls }: RelayAddress): http.Server {
  const answer = (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(426, { connection: 'close', upgrade: 'websocket' }).end();
  };
  const limits = {
    headersTimeout: RELAY.headTimeoutMs,
    requestTimeout: RELAY.headTimeoutMs,
    connectionsCheckingInterval: 1_000,
  };
  const server = tls
    ? https.createServer(
        {
          ...limits,
          cert: readTextFile(tls.cert),
          key: readTextFile(tls.key),
          handshakeTimeout: RELAY.headTimeoutMs,
        },
        answer,
      )
    : http.createServer(limits, answer);
  server.maxConnections = RELAY.maxConnections;
  server.on('connection', (socket) => {
    if (areDescriptorsUsed(DESCRIPTORS.accept)) socket.destroy();
  });
  return server;
}

/** Listens. Rejects with the error of the system. */
export async function listenForRelays(options: RelayServerOptions): Promise<RelayServer> {
  const connections = new Set<RelayConnection>();
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_RELAY_MESSAGE_BYTES,
    handleProtocols: () => RELAY_PROTOCOL,
  });
  const server = createServer(options);
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => undefined);
    const status = refusalOf(request, options.acceptsTicket);
    if (status !== null) {
      refuse(socket, status);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const connection = carryStreams(webSocket, options.clock, options.eventsOf(), () =>
        connections.delete(connection),
      );
      connections.add(connection);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: options.bind, port: options.port, exclusive: true }, () => {
      server.off('error', reject);
      // A failed accept (no descriptors left) concerns one connection only.
      server.on('error', () => undefined);
      resolve();
    });
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : options.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const connection of connections) connection.leave('the relay ends');
        server.closeAllConnections();
      }),
  };
}
