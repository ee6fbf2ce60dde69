// The gateway's listener: who is asked for, may they be, and then bytes both ways with back pressure.

import type { IncomingMessage, ServerResponse } from 'node:http';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import { fail } from '../../protocol/errors.ts';
import type { GatewayRoute } from '../../protocol/gateway.ts';
import type { ErrorPage } from './error_pages.ts';
import {
  forbiddenPage,
  loopPage,
  malformedPage,
  sendErrorPage,
  stoppedPage,
  unknownAgentPage,
  unreachablePage,
  upgradeRefusal,
} from './error_pages.ts';
import { ProxiedRequest } from './proxied_request.ts';
import type { RequestHeaders } from './request_headers.ts';
import { forwardedHead, hostnameOf, isAllowedOrigin, parseRequestHeaders } from './request_headers.ts';
import { openTunnel, readAhead } from './tunnel.ts';
import { UpstreamPool } from './upstream_pool.ts';

const HEAD_MS = 10_000;
/** How often it is looked for heads that take longer. */
const CHECK_MS = 1_000;
/** So many requests may wait on one connection for the answer to the first. */
const MAX_PIPELINED = 512;

export interface GatewaySettings {
  agentDomain: string;
  allowedExtensions: string[];
  tokens: string[];
}

export interface Gateway {
  /** Listens on the loopback addresses; resolves with the port. Fails port_in_use. */
  listen(port: number): Promise<number>;
  setRoutes(rows: readonly GatewayRoute[]): void;
  settings: GatewaySettings;
  close(): Promise<void>;
}

/**
 * Any other protocol than WebSocket is declined as HTTP has it: the request is read again without its Upgrade, with its body
 * and what follows. Carried on blindly, `h2c` would take further requests past every check.
 */
function declineUpgrade(server: http.Server, request: IncomingMessage, early: Buffer): void {
  const { method, url, httpVersion, rawHeaders, socket } = request;
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== 'upgrade')
      head += `${rawHeaders[index]}: ${rawHeaders[index + 1]}\r\n`;
  }
  // The end of the answer before it has begun to count down the keep-alive, which the new reader does not know to stop.
  socket.setTimeout(0);
  socket.pause();
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), early]));
  server.emit('connection', socket);
  socket.resume();
}

/** RFC 6455, 4.1: with GET and HTTP/1.1. Elsewhere an Upgrade says nothing. */
const asksForWebSocket = (request: IncomingMessage, { upgrade }: RequestHeaders): boolean =>
  upgrade?.toLowerCase() === 'websocket' && request.method === 'GET' && request.httpVersion === '1.1';

/** What one client connection has asked for. */
interface PipelineState {
  /** The answer to its last request. */
  last: ServerResponse | undefined;
  /** Requests that wait for the answers before theirs. */
  waiting: number;
}

/** Makes a gateway; nothing listens before `listen`. */
export function createGateway(initial: GatewaySettings): Gateway {
  const pool = new UpstreamPool();
  const routes = new Map<string, GatewayRoute>();
  const servers: http.Server[] = [];
  const tunnels = new Set<Duplex>();
  const lines = new WeakMap<Duplex, PipelineState>();
  let ownPort = 0;

  const lineOf = (socket: Duplex): PipelineState => {
    let line = lines.get(socket);
    if (!line) {
      line = { last: undefined, waiting: 0 };
      lines.set(socket, line);
    }
    return line;
  };

  /** docs/reference.md "Gateway": its second and third check, in this order. */
  const judge = (headers: RequestHeaders, url: string): GatewayRoute | ErrorPage => {
    if (headers.malformedReason !== undefined) return malformedPage(headers.malformedReason);
    if (!/^[/*]/.test(url)) return malformedPage('What it asks for is no path');
    const hostname = hostnameOf(headers.host, ownPort);
    const route = hostname === undefined ? undefined : routes.get(hostname);
    if (!route) return unknownAgentPage(hostname ?? '');
    const { agentDomain, allowedExtensions } = gateway.settings;
    if (!isAllowedOrigin(headers.origin, agentDomain, allowedExtensions)) return forbiddenPage;
    if (headers.isLooped || route.port === ownPort) return loopPage;
    return route.isRunning ? route : stoppedPage(route.name);
  };

  const headFor = (request: IncomingMessage, headers: RequestHeaders, route: GatewayRoute): string => {
    const host = headers.host ?? '';
    const peer = request.socket.remoteAddress ?? '127.0.0.1';
    const { method = '', url = '' } = request;
    return forwardedHead({ method, url, peer, host, upstreamHost: route.hostHeader ?? host }, headers);
  };

  const carry = (request: IncomingMessage, response: ServerResponse): void => {
    const headers = parseRequestHeaders(request.rawHeaders, gateway.settings.tokens);
    const route = judge(headers, request.url ?? '');
    if ('status' in route) {
      sendErrorPage(request, response, route);
      return;
    }
    const head = `${headFor(request, headers, route)}\r\n`;
    const { isChunked, length } = headers;
    const hasBody = isChunked || Number(length ?? 0) > 0;
    new ProxiedRequest({ request, response, route, head, hasBody, isChunked }, pool).start();
  };

  /**
   * Of what a client sends at once, one request goes on at a time: the others would each hold a connection to the agent, and
   * nobody says to a response without a socket that the client has gone. What waits is judged when its turn comes. Who lets
   * too much wait is hung up on: a paused connection does not stay paused, as every end of a request has it read on.
   */
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const line = lineOf(request.socket);
    line.last = response;
    if (response.socket) {
      carry(request, response);
      return;
    }
    line.waiting += 1;
    if (line.waiting > MAX_PIPELINED) request.socket.destroy();
    response.once('socket', (socket) => {
      line.waiting -= 1;
      queueMicrotask(() => socket.destroyed || carry(request, response));
    });
  };

  /** The server has let go of the socket: without these a reset would be thrown, and the gateway's end would leave it open. */
  const adopt = (socket: Duplex): void => {
    if (tunnels.has(socket)) return;
    tunnels.add(socket);
    socket.on('close', () => tunnels.delete(socket));
    socket.on('error', () => socket.destroy());
  };

  /** An upgrade waits until everything that was asked before it on its connection is answered: the answers would mix. */
  const onUpgrade = (server: http.Server, request: IncomingMessage, first: Buffer): void => {
    const { socket } = request;
    adopt(socket);
    const { last } = lineOf(socket);
    if (!last || last.closed) {
      upgrade(server, request, socket, first);
      return;
    }
    const stopReading = readAhead(socket, first);
    last.once('close', () => {
      if (socket.writable) upgrade(server, request, socket, stopReading());
    });
  };

  const upgrade = (server: http.Server, request: IncomingMessage, socket: Duplex, first: Buffer): void => {
    const headers = parseRequestHeaders(request.rawHeaders, gateway.settings.tokens);
    if (!asksForWebSocket(request, headers)) {
      declineUpgrade(server, request, first);
      return;
    }
    if (headers.isChunked || headers.length !== undefined)
      headers.malformedReason = 'It has a body and wants a WebSocket';
    const route = judge(headers, request.url ?? '');
    if ('status' in route) {
      // Only a reader hears the client's end.
      socket.resume();
      socket.end(upgradeRefusal(route, headers.accept));
      return;
    }
    const head = `${headFor(request, headers, route)}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    const unreachable = (error: Error): string =>
      upgradeRefusal(unreachablePage(route.name, route.port, error.message), headers.accept);
    void openTunnel({ port: route.port, socket, head, early: first, unreachable });
  };

  const listenOn = (host: string, port: number): Promise<http.Server> =>
    new Promise((resolve, reject) => {
      const server = http.createServer(
        {
          headersTimeout: HEAD_MS,
          requestTimeout: 0,
          connectionsCheckingInterval: CHECK_MS,
          keepAlive: true,
        },
        onRequest,
      );
      // Left to itself it keeps the first 2,000 headers and obeys all of them. The size of the head bounds them anyway.
      server.maxHeadersCount = 0;
      server.on('upgrade', (request, _socket, first) => onUpgrade(server, request, first));
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, () => {
        server.off('error', reject);
        resolve(server);
      });
    });

  const gateway: Gateway = {
    settings: initial,
    listen: async (port) => {
      const first = await listenOn('127.0.0.1', port).catch((error: Error) => {
        throw fail('port_in_use', `the gateway's port ${port} cannot be had: ${error.message}`);
      });
      servers.push(first);
      const address = first.address();
      ownPort = typeof address === 'object' && address ? address.port : port;
      // Where the machine has no ::1, 127.0.0.1 alone serves.
      await listenOn('::1', ownPort).then(
        (server) => servers.push(server),
        () => undefined,
      );
      return ownPort;
    },
    setRoutes: (rows) => {
      routes.clear();
      for (const row of rows) routes.set(row.hostname.toLowerCase(), row);
      pool.keepOnly(new Set(rows.filter((row) => row.isRunning).map((row) => row.port)));
    },
    close: async () => {
      pool.close();
      for (const socket of tunnels) socket.destroy();
      await Promise.all(
        servers.map((server) => {
          const closed = new Promise((resolve) => server.close(resolve));
          server.closeAllConnections();
          return closed;
        }),
      );
    },
  };
  return gateway;
}
