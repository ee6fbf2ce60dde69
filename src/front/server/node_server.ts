// The front's HTTP server on node:http, for systems where the binary of uWebSockets.js does not load.
import http, { type IncomingMessage, ServerResponse } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ListenRefusal } from '../../adapters/loopback_listener.ts';
import { areDescriptorsUsed } from '../../adapters/process/open_files_limit.ts';
import { Strangers } from '../../adapters/strangers.ts';
import { readTlsFiles } from '../../adapters/tls_files.ts';
import { WebSocketServer } from '../../adapters/websocket.ts';
import { DESCRIPTORS, HTTP } from '../../settings/limits.ts';
import { type CreateServer, type HttpServer, ResponseHeaders, type ServerOptions } from './http_server.ts';
import { bindWebSocket, ignoreError, NodeExchange } from './node_exchange.ts';

/** For the answer to a defect of the front, and to requests that the other server's parser refuses. */
const NO_HEADERS = new ResponseHeaders([]);
const KEEP_ALIVE_MS = 10_000;
/** How often Node checks its time limits. */
const CHECK_MS = 1_000;
/** Characters of a valid Sec-WebSocket-Key: 16 bytes in base64. */
const KEY_LENGTH = 24;

/** A server on node:http. */
export const createNodeServer: CreateServer = (options) => new NodeServer(options);

class NodeServer implements HttpServer {
  readonly name = 'node:http';
  private readonly options: ServerOptions;
  private readonly servers: http.Server[] = [];
  /** Connections taken over from the HTTP server by an upgrade. */
  private readonly upgraded = new Set<Duplex>();
  private readonly webSocketPaths: readonly RegExp[];
  private readonly protocols = new WeakMap<IncomingMessage, string>();
  private readonly wss: WebSocketServer;
  private readonly strangers: Strangers | null;

  constructor(options: ServerOptions) {
    this.options = options;
    this.webSocketPaths = options.webSocketPaths.map(
      (path) => new RegExp(`^${path.replace(/:[^/]+/g, '[^/]+')}$`),
    );
    this.strangers = options.maxStrangers === undefined ? null : new Strangers(options.maxStrangers);
    this.wss = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: options.maxMessageBytes,
      handleProtocols: (_offered, request) => this.protocols.get(request) ?? false,
    });
  }

  listen(host: string, port: number): Promise<{ port: number } | ListenRefusal> {
    const server = this.create();
    return new Promise((resolve) => {
      server.on('error', (error: NodeJS.ErrnoException) => resolve({ refused: error.code ?? 'EADDRINUSE' }));
      server.listen({ host, port, exclusive: true }, () => {
        this.servers.push(server);
        const address = server.address();
        resolve({ port: typeof address === 'object' && address ? address.port : port });
      });
    });
  }

  stopListening(): void {
    for (const server of this.servers) server.close();
  }

  close(): void {
    for (const server of this.servers.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
    for (const socket of this.upgraded) socket.destroy();
  }

  private create(): http.Server {
    const { tls, maxConnections = Number.POSITIVE_INFINITY } = this.options;
    const limits = {
      headersTimeout: HTTP.headTimeoutMs,
      // Only a backstop: bodies have a shorter time limit of their own.
      requestTimeout: HTTP.headTimeoutMs + HTTP.bodyTimeoutMs,
      connectionsCheckingInterval: CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    };
    const serve = (req: IncomingMessage, res: ServerResponse) =>
      this.serve(req, res, new NodeExchange(this.exchangeOptions(req), req, res, null));
    const server = tls
      ? https.createServer({ ...limits, ...readTlsFiles(tls), handshakeTimeout: HTTP.headTimeoutMs }, serve)
      : http.createServer(limits, serve);
    if (Number.isFinite(maxConnections)) server.maxConnections = maxConnections;
    server.on('connection', (socket: Socket) => {
      if (areDescriptorsUsed(DESCRIPTORS.acceptRequests)) socket.destroy();
      else this.strangers?.add(socket);
    });
    server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.upgrade(req, socket, head),
    );
    return server;
  }

  private exchangeOptions({ socket }: IncomingMessage) {
    return { bodies: this.options.bodies, onTrusted: () => this.strangers?.remove(socket) };
  }

  private serve(req: IncomingMessage, res: ServerResponse, exchange: NodeExchange): void {
    // Like the parser of the other server, refuses HTTP/1.0 and targets that are not paths.
    if (req.httpVersion !== '1.1') {
      exchange.send(505, NO_HEADERS, '', true);
      return;
    }
    if (!req.url?.startsWith('/')) {
      exchange.send(400, NO_HEADERS, '', true);
      return;
    }
    const { forwarder } = this.options;
    if (forwarder?.forward(req, res, () => this.strangers?.remove(req.socket))) return;
    const prepared = this.options.prepare?.(exchange);
    if (prepared)
      void prepared.then((isOpen) => {
        if (isOpen) this.answer(req, res, exchange);
        else req.resume();
      });
    else this.answer(req, res, exchange);
  }

  private answer(req: IncomingMessage, res: ServerResponse, exchange: NodeExchange): void {
    try {
      this.options.handle(exchange);
    } catch (error) {
      this.options.onDefect(error);
      exchange.send(500, NO_HEADERS, '');
    }
    // An unread body is discarded, so that the connection can be used again.
    if (req.listenerCount('data') === 0) req.resume();
    res.on('error', ignoreError);
  }

  /**
   * node:http hands over the connection for any Upgrade header. A request that is not for a WebSocket is
   * answered here, and the connection closed.
   */
  private upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.upgraded.add(socket);
    socket.on('close', () => this.upgraded.delete(socket));
    socket.on('error', ignoreError);
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(req.socket);
    res.on('finish', () => req.socket.destroySoon());
    const [path = ''] = (req.url ?? '').split('?');
    const isOurs =
      req.method === 'GET' &&
      req.headers.upgrade?.toLowerCase() === 'websocket' &&
      req.headers['sec-websocket-key']?.length === KEY_LENGTH &&
      this.webSocketPaths.some((pattern) => pattern.test(path));
    const exchange = new NodeExchange(
      this.exchangeOptions(req),
      req,
      res,
      isOurs
        ? (protocol, open) => {
            res.detachSocket(req.socket);
            this.protocols.set(req, protocol);
            this.wss.handleUpgrade(req, socket, head, (ws) =>
              bindWebSocket(ws, socket, open, this.options.onDefect),
            );
          }
        : null,
    );
    const hasBody =
      req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined;
    if (hasBody) exchange.send(400, NO_HEADERS, '', true);
    else this.serve(req, res, exchange);
  }
}
