// The listener of a relay: WebSockets of clients that present a ticket, and nothing else.
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { PASSED_ON } from '../../protocol/cloud_views.ts';
import type { Clock } from '../../runtime/actor.ts';
import { atTime } from '../../runtime/clock.ts';
import { FORWARDING, PRINCIPALS, RELAY } from '../../settings/cloud_limits.ts';
import { DESCRIPTORS, HTTP } from '../../settings/limits.ts';
import { areDescriptorsUsed } from '../process/open_files_limit.ts';
import { Strangers } from '../strangers.ts';
import { readTlsFiles, type TlsFiles } from '../tls_files.ts';
import { type WebSocket, WebSocketServer } from '../websocket.ts';
import { RELAY_PROTOCOL } from './frames.ts';
import type { MuxEvents } from './mux.ts';
import { carryStreams, MAX_RELAY_MESSAGE_BYTES, type RelayConnection } from './relay_connection.ts';
import { RELAY_PATH } from './relay_path.ts';
import type { TicketHolder } from './ticket.ts';

/** Where another relay listens. */
export interface RelayTarget {
  host: string;
  port: number;
}

/** Where a relay listens. */
export interface RelayAddress {
  bind: string;
  /** 0: any free port. */
  port: number;
  /** Files with the certificate and its key. */
  tls?: TlsFiles;
}

export interface RelayServerOptions extends RelayAddress {
  clock: Clock;
  /** The relay of the Berth that holds the workloads; null: this one. `nobody`: none that is known. */
  passesTo(): RelayTarget | 'nobody' | null;
  /** The holder of the ticket; null if it is not valid. */
  readTicket(ticket: string): { holder: TicketHolder } | null;
  /** The events of a new connection. `holder` returns its holder at the time of the call. */
  eventsOf(holder: () => TicketHolder): MuxEvents;
}

export interface RelayServer {
  readonly port: number;
  /** Number of open streams of the holder whose own subject is `subject`. */
  streamsOf(subject: string): number;
  /** Ends the connections of holders who have a grant by `subject`. */
  end(subject: string): void;
  /** Ends the connections that it carries itself, and none that it passes on. */
  endOwn(reason: string): void;
  /** Ends the connections that it passes on to any other relay than `target`; null: all. */
  endPassed(target: RelayTarget | null): void;
  /** Ends every connection; resolves when the port is free again. */
  close(): Promise<void>;
}

/** The holder that requests an upgrade, or the status with which it is refused. */
function holderOf(
  { method, url = '', headers }: IncomingMessage,
  readTicket: RelayServerOptions['readTicket'],
): { holder: TicketHolder } | number {
  if (url !== RELAY_PATH) return 404;
  // Web pages are never admitted, whatever token they have.
  if (headers.origin !== undefined) return 403;
  const [scheme, ticket = ''] = (headers.authorization ?? '').split(' ');
  const found = scheme?.toLowerCase() === 'bearer' ? readTicket(ticket) : null;
  if (!found) return 401;
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((one) => one.trim());
  return method === 'GET' && offered.includes(RELAY_PROTOCOL) ? found : 400;
}

function refuse(socket: Duplex, status: number): void {
  const reason = http.STATUS_CODES[status] ?? '';
  socket.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function createServer({ tls }: RelayAddress, strangers: Strangers): http.Server {
  const answer = (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(426, { connection: 'close', upgrade: 'websocket' }).end();
  };
  const limits = {
    headersTimeout: RELAY.headTimeoutMs,
    requestTimeout: RELAY.headTimeoutMs,
    connectionsCheckingInterval: 1_000,
  };
  const server = tls
    ? https.createServer({ ...limits, ...readTlsFiles(tls), handshakeTimeout: RELAY.headTimeoutMs }, answer)
    : http.createServer(limits, answer);
  server.maxConnections = RELAY.maxConnections;
  server.on('connection', (socket) => {
    if (areDescriptorsUsed(DESCRIPTORS.acceptForwarded)) socket.destroy();
    else strangers.add(socket);
  });
  return server;
}

/** Passes an upgrade on to another relay: the unchanged request, and then all bytes. */
function passUpgrade(
  target: RelayTarget,
  { method, url, rawHeaders }: IncomingMessage,
  client: Duplex,
  head: Buffer,
  passed: Map<Duplex, RelayTarget>,
): void {
  const other = connect({
    ...target,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: RELAY.pingIntervalMs,
  });
  const late = setTimeout(() => other.destroy(), FORWARDING.connectTimeoutMs);
  other.once('connect', () => clearTimeout(late));
  other.on('error', () => undefined);
  other.once('close', () => {
    clearTimeout(late);
    client.destroy();
  });
  passed.set(client, target);
  client.once('close', () => {
    passed.delete(client);
    other.destroy();
  });
  const headers = rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
  other.write(`${method} ${url} HTTP/1.1\r\n${headers}${PASSED_ON}: 1\r\n\r\n`);
  other.write(head);
  client.pipe(other);
  other.pipe(client);
}

/** The admission of a connection. It ends when its ticket expires, unless it has another one by then. */
class Admission {
  holder: TicketHolder;
  private readonly clock: Clock;
  private readonly onExpired: () => void;
  private cancel: () => void = () => undefined;

  constructor(holder: TicketHolder, clock: Clock, onExpired: () => void) {
    this.holder = holder;
    this.clock = clock;
    this.onExpired = onExpired;
    this.awaitExpiry();
  }

  /** Accepts `found` if it is a ticket of the same holder. Returns whether it was. */
  renew(found: { holder: TicketHolder } | null): boolean {
    if (!found || !isSameHolder(found.holder, this.holder)) return false;
    this.end();
    this.holder = found.holder;
    this.awaitExpiry();
    return true;
  }

  end(): void {
    this.cancel();
  }

  private awaitExpiry(): void {
    const expiresAt = this.holder?.expiresAt ?? null;
    if (expiresAt !== null) this.cancel = atTime(this.clock, expiresAt, PRINCIPALS.lookMs, this.onExpired);
  }
}

const isSameHolder = (one: TicketHolder, other: TicketHolder): boolean =>
  JSON.stringify(one && [...one.subjects].sort()) === JSON.stringify(other && [...other.subjects].sort());

/** Whether `holder` has as many connections as one user or token may have. */
function isEnough(holder: TicketHolder, connections: Map<RelayConnection, Admission>): boolean {
  if (holder === null) return false;
  const own = [...connections.values()].filter((other) => other.holder?.subjects[0] === holder.subjects[0]);
  return own.length >= RELAY.maxOfOne;
}

/** Carries the streams of a client as long as it is admitted. */
function admit(
  webSocket: WebSocket,
  holder: TicketHolder,
  { clock, eventsOf, readTicket }: RelayServerOptions,
  connections: Map<RelayConnection, Admission>,
): void {
  const admission = new Admission(holder, clock, () =>
    connection.leave('the token of this connection has expired'),
  );
  const events: MuxEvents = {
    ...eventsOf(() => admission.holder),
    onTicket: (ticket) => admission.renew(readTicket(ticket)),
  };
  const connection = carryStreams(webSocket, clock, events, () => {
    admission.end();
    connections.delete(connection);
  });
  connections.set(connection, admission);
}

interface Upgrade {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
  connections: Map<RelayConnection, Admission>;
  passed: Map<Duplex, RelayTarget>;
  strangers: Strangers;
  sockets: WebSocketServer;
}

/** Admits a client, or forwards it to the lease holder. Returns the status of a refusal; null: none. */
function answerUpgrade(options: RelayServerOptions, upgrade: Upgrade): number | null {
  const { request, socket, head, connections, passed, strangers, sockets } = upgrade;
  const found = holderOf(request, options.readTicket);
  if (typeof found === 'number') return found;
  strangers.remove(request.socket);
  const target = options.passesTo();
  if (target === 'nobody') return 503;
  // Two relays that each take the other for the lease holder would forward a connection in a loop.
  if (target && request.headers[PASSED_ON] !== undefined) return 503;
  if (target) passUpgrade(target, request, socket, head, passed);
  else if (isEnough(found.holder, connections)) return 429;
  else
    sockets.handleUpgrade(request, socket, head, (webSocket) =>
      admit(webSocket, found.holder, options, connections),
    );
  return null;
}

/** Resolves when `server` listens. Rejects with the error of the system. */
const listening = (server: http.Server, { bind, port }: RelayAddress): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: bind, port, exclusive: true }, () => {
      server.off('error', reject);
      // A failed accept (no descriptors left) concerns one connection only.
      server.on('error', () => undefined);
      resolve();
    });
  });

/** Listens. Rejects with the error of the system. */
export async function listenForRelays(options: RelayServerOptions): Promise<RelayServer> {
  const connections = new Map<RelayConnection, Admission>();
  const passed = new Map<Duplex, RelayTarget>();
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_RELAY_MESSAGE_BYTES,
    handleProtocols: () => RELAY_PROTOCOL,
  });
  const strangers = new Strangers(HTTP.maxStrangers);
  const server = createServer(options, strangers);
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => undefined);
    const status = answerUpgrade(options, { request, socket, head, connections, passed, strangers, sockets });
    if (status !== null) refuse(socket, status);
  });
  await listening(server, options);
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : options.port,
    streamsOf: (subject) =>
      [...connections].reduce(
        (sum, [{ mux }, { holder }]) => sum + (holder?.subjects[0] === subject ? mux.size : 0),
        0,
      ),
    end: (subject) => {
      for (const [connection, { holder }] of connections)
        if (holder?.subjects.includes(subject))
          connection.close('the rights of this connection have changed');
    },
    endOwn: (reason) => {
      for (const connection of connections.keys()) connection.close(reason);
    },
    endPassed: (target) => {
      for (const [socket, { host, port }] of passed)
        if (host !== target?.host || port !== target.port) socket.destroy();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const connection of connections.keys()) connection.leave('the relay ends');
        for (const socket of passed.keys()) socket.destroy();
        server.closeAllConnections();
      }),
  };
}
