// The gateway's listener: finds the service for a request, checks whether the request may pass, and forwards
// it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import http from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { areDescriptorsUsed } from '../../adapters/process/open_files_limit.ts';
import { ServiceDialer } from '../../adapters/service_dialer.ts';
import type { GatewayRoute } from '../../protocol/gateway.ts';
import { DESCRIPTORS } from '../../settings/limits.ts';
import { AgentWakes, type WakeAgent } from './agent_wakes.ts';
import type { ErrorPage } from './error_pages.ts';
import {
  ambiguousPage,
  forbiddenPage,
  loopPage,
  malformedPage,
  sendErrorPage,
  stoppedPage,
  unknownHostPage,
  unreachablePage,
  upgradeRefusal,
} from './error_pages.ts';
import { isReachable, routesByHostname } from './gateway_routes.ts';
import { ProxiedRequest } from './proxied_request.ts';
import type { RequestHeaders } from './request_headers.ts';
import { forwardedHead, hostnameOf, parseRequestHeaders } from './request_headers.ts';
import { RequestPipeline } from './request_pipeline.ts';
import { isAllowedSender } from './request_sender.ts';
import { openTunnel, readAhead } from './tunnel.ts';
import { UpstreamPool } from './upstream_pool.ts';

const HEAD_MS = 10_000;
/** How often to check for heads that take too long. */
const CHECK_MS = 1_000;

export interface GatewaySettings {
  /** The domain that host names of agents end in, lower case. */
  agentDomain: string;
  /** Ids of browser extensions that may call; empty: any. */
  allowedExtensions: string[];
  /** Berth's own tokens, which must never reach a service. */
  tokens: string[];
}

/**
 * Declines upgrades to any protocol but WebSocket, as HTTP allows: the request is read again without its
 * Upgrade header, with its body and what follows. Forwarded blindly, `h2c` would carry further requests past
 * every check.
 */
function declineUpgrade(server: http.Server, request: IncomingMessage, early: Buffer): void {
  const { method, url, httpVersion, rawHeaders, socket } = request;
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== 'upgrade')
      head += `${rawHeaders[index]}: ${rawHeaders[index + 1]}\r\n`;
  }
  // The end of an earlier response has started the keep-alive timeout, which the new reader would not stop.
  socket.setTimeout(0);
  socket.pause();
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), early]));
  server.emit('connection', socket);
  socket.resume();
}

/**
 * Whether the request is for a WebSocket, with GET and HTTP/1.1 (RFC 6455 section 4.1). In other requests,
 * Upgrade has no meaning.
 */
const asksForWebSocket = (request: IncomingMessage, { upgrade }: RequestHeaders): boolean =>
  upgrade?.toLowerCase() === 'websocket' && request.method === 'GET' && request.httpVersion === '1.1';

/** The head of `request` as sent to the service of `route`, without the final empty line. */
function headFor(request: IncomingMessage, headers: RequestHeaders, route: GatewayRoute): string {
  const host = headers.host ?? '';
  const peer = request.socket.remoteAddress ?? '127.0.0.1';
  const { method = '', url = '' } = request;
  return forwardedHead({ method, url, peer, host, upstreamHost: route.hostHeader ?? host }, headers);
}

/**
 * What a table that is behind the daemon may say of a service: unknown, ambiguous, not running. A client that
 * has been told of a change must not get such an answer from before it.
 */
const OUTDATED_STATUSES: ReadonlySet<number> = new Set([404, 409, 503]);

/** What the gateway needs of the daemon. */
export interface GatewayDaemon {
  wake: WakeAgent;
  /** Resolves when `setRoutes` has been called with every change of before the call. */
  update: () => Promise<unknown>;
}

/** The gateway: docs/reference.md "Gateway". */
export class Gateway {
  settings: GatewaySettings;
  private readonly dialer = new ServiceDialer();
  private readonly pool = new UpstreamPool(this.dialer);
  private readonly pipeline = new RequestPipeline();
  private routes: ReadonlyMap<string, readonly GatewayRoute[]> = new Map();
  private readonly servers: http.Server[] = [];
  /** Sockets of upgrade requests, which their server no longer tracks. */
  private readonly upgradeSockets = new Set<Duplex>();
  private port = 0;

  private readonly wakes: AgentWakes;
  private readonly update: GatewayDaemon['update'];

  /** Makes a gateway that does not listen yet. */
  constructor(settings: GatewaySettings, { wake, update }: GatewayDaemon) {
    this.settings = settings;
    this.update = update;
    this.wakes = new AgentWakes(wake, this.dialer);
  }

  /** Serves the listening sockets `descriptors` of `port`, and closes them at the end. */
  async listen(port: number, descriptors: readonly number[]): Promise<void> {
    this.port = port;
    await Promise.all(descriptors.map((fd) => this.listenOn(fd)));
  }

  /** Serves the connections `descriptors`, which must be unread, and closes them at the end. */
  adopt(descriptors: readonly number[]): void {
    const [server] = this.servers;
    for (const fd of descriptors) {
      const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
      if (server) server.emit('connection', socket);
      else socket.destroy();
    }
  }

  /** Replaces the services that requests are forwarded to. */
  setRoutes(rows: readonly GatewayRoute[]): void {
    this.routes = routesByHostname(rows);
    this.wakes.note(rows);
    this.pool.keepOnly(new Set(rows.filter(isReachable).map(({ port }) => port)));
  }

  /** Stops listening and ends all connections. */
  async close(): Promise<void> {
    this.pool.close();
    this.dialer.close();
    for (const socket of this.upgradeSockets) socket.destroy();
    await Promise.all(
      this.servers.map((server) => {
        const closed = new Promise((resolve) => server.close(resolve));
        server.closeAllConnections();
        return closed;
      }),
    );
  }

  private listenOn(fd: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const server = http.createServer(
        {
          headersTimeout: HEAD_MS,
          requestTimeout: 0,
          connectionsCheckingInterval: CHECK_MS,
          keepAlive: true,
        },
        (request, response) => this.pipeline.enqueue(request, response, () => this.carry(request, response)),
      );
      // By default Node keeps only the first 2,000 headers, but obeys all of them. The size limit of the head
      // bounds them anyway.
      server.maxHeadersCount = 0;
      server.on('connection', (socket: Socket) => {
        if (areDescriptorsUsed(DESCRIPTORS.acceptForwarded)) socket.destroy();
      });
      server.on('upgrade', (request, _socket, early) => this.onUpgrade(server, request, early));
      server.once('error', reject);
      server.listen({ fd }, () => {
        server.off('error', reject);
        this.servers.push(server);
        resolve();
      });
    });
  }

  /**
   * The second and third check of docs/reference.md "Gateway", in this order, then whether the service can be
   * reached.
   */
  private judge(headers: RequestHeaders, url: string): GatewayRoute | ErrorPage {
    if (headers.malformedReason !== undefined) return malformedPage(headers.malformedReason);
    if (!/^[/*]/.test(url)) return malformedPage('What it asks for is no path');
    const hostname = hostnameOf(headers.host, this.port);
    const routes = hostname === undefined ? undefined : this.routes.get(hostname);
    const [route] = routes ?? [];
    if (!routes || !route) return unknownHostPage(hostname ?? '', this.settings.agentDomain);
    if (!isAllowedSender(headers.sender, this.settings)) return forbiddenPage;
    if (routes.length > 1) return ambiguousPage(routes);
    if (headers.isLooped || route.port === this.port) return loopPage;
    return isReachable(route) || this.wakes.isStarting(route) ? route : stoppedPage(route);
  }

  /** Calls `go` with the service that the request is for, or with the answer that refuses it. */
  private find(headers: RequestHeaders, url: string, go: (found: GatewayRoute | ErrorPage) => void): void {
    const found = this.judge(headers, url);
    if ('status' in found && OUTDATED_STATUSES.has(found.status))
      void this.update().then(() => go(this.judge(headers, url)));
    else go(found);
  }

  private carry(request: IncomingMessage, response: ServerResponse): void {
    const headers = parseRequestHeaders(request.rawHeaders, this.settings.tokens);
    this.find(headers, request.url ?? '', (found) => {
      if ('status' in found) sendErrorPage(request, response, found);
      else this.forward(request, response, headers, found);
    });
  }

  private forward(
    request: IncomingMessage,
    response: ServerResponse,
    headers: RequestHeaders,
    route: GatewayRoute,
  ): void {
    const head = `${headFor(request, headers, route)}\r\n`;
    const { isChunked, length } = headers;
    const hasBody = isChunked || Number(length ?? 0) > 0;
    const begin = (to: GatewayRoute): void =>
      new ProxiedRequest({ request, response, route: to, head, hasBody, isChunked }, this.pool).start();
    const refuse = (error: Error): void =>
      sendErrorPage(request, response, unreachablePage(route, error.message));
    if (this.wakes.isAwake(route)) begin(route);
    else this.wakes.awake(route).then(begin, refuse);
  }

  private onUpgrade(server: http.Server, request: IncomingMessage, early: Buffer): void {
    this.adoptUpgraded(request.socket);
    this.pipeline.enqueueUpgrade(request.socket, early, (all) => this.carryUpgrade(server, request, all));
  }

  /**
   * Takes over a socket that the server has released. A reset of it must not throw, and `close` must end it.
   */
  private adoptUpgraded(socket: Duplex): void {
    if (this.upgradeSockets.has(socket)) return;
    this.upgradeSockets.add(socket);
    socket.on('close', () => this.upgradeSockets.delete(socket));
    socket.on('error', () => socket.destroy());
  }

  private carryUpgrade(server: http.Server, request: IncomingMessage, early: Buffer): void {
    const { socket } = request;
    const headers = parseRequestHeaders(request.rawHeaders, this.settings.tokens);
    if (!asksForWebSocket(request, headers)) {
      declineUpgrade(server, request, early);
      return;
    }
    if (headers.isChunked || headers.length !== undefined)
      headers.malformedReason = 'It has a body and wants a WebSocket';
    const stopReading = readAhead(socket, early);
    this.find(headers, request.url ?? '', (found) => {
      const all = stopReading();
      if ('status' in found) {
        // A client's disconnect is only noticed while the socket is read.
        socket.resume();
        socket.end(upgradeRefusal(found, headers.accept));
      } else this.openTunnel(request, headers, found, all);
    });
  }

  private openTunnel(
    request: IncomingMessage,
    headers: RequestHeaders,
    route: GatewayRoute,
    early: Buffer,
  ): void {
    const { socket } = request;
    const head = `${headFor(request, headers, route)}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    const unreachable = (error: Error): string =>
      upgradeRefusal(unreachablePage(route, error.message), headers.accept);
    const dial = async () => this.dialer.dial(await this.wakes.awake(route));
    void openTunnel({ dial, hostname: route.hostname, socket, head, early, unreachable });
  }
}
