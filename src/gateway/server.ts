// The gateway's listener: who is asked for, may they be, and then bytes both ways with back pressure.

import type { IncomingMessage, ServerResponse } from 'node:http';
import http from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { fail } from '../protocol/errors.ts';
import type { GatewayRoute } from '../protocol/gateway.ts';
import type { Page } from './pages.ts';
import { answer, answerUpgrade, forbidden, loop, refused, stopped, unknownAgent } from './pages.ts';
import { endToEnd, hostnameOf, mayCall, requestHeaders } from './rules.ts';
import { tunnel } from './tunnel.ts';
import type { Upstream } from './upstream.ts';
import { UpstreamPool } from './upstream.ts';

const HEAD_MS = 10_000;

export interface GatewaySettings {
  agentDomain: string;
  allowedExtensions: string[];
  tokens: string[];
}

export interface Gateway {
  /** Listens on the loopback addresses; resolves with the port. Fails port_in_use. */
  listen(port: number): Promise<number>;
  route(rows: readonly GatewayRoute[]): void;
  settings: GatewaySettings;
  close(): Promise<void>;
}

function headLines(request: IncomingMessage, headers: readonly string[]): string {
  let text = `${request.method} ${request.url} HTTP/1.1\r\n`;
  for (let index = 0; index < headers.length; index += 2)
    text += `${headers[index]}: ${headers[index + 1]}\r\n`;
  return text;
}

/** Sends the body of `request` as it comes: with its length, or in chunks where it had none. */
function sendBody(request: IncomingMessage, upstream: Upstream): void {
  const isChunked = request.headers['content-length'] === undefined;
  request.on('data', (bytes: Buffer) => {
    if (isChunked) upstream.socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
    const accepted = upstream.socket.write(bytes);
    if (isChunked) upstream.socket.write('\r\n', 'latin1');
    if (!accepted) request.pause();
  });
  request.on('end', () => {
    if (isChunked) upstream.socket.write('0\r\n\r\n', 'latin1');
  });
}

interface Passage {
  request: IncomingMessage;
  response: ServerResponse;
  route: GatewayRoute;
  head: string;
  hasBody: boolean;
}

function exchange(passage: Passage, upstream: Upstream, pool: UpstreamPool, retry: () => void): void {
  const { request, response, route, hasBody } = passage;
  const abandon = (): void => upstream.destroy();
  response.on('close', abandon);
  upstream.begin(request.method === 'HEAD', {
    head: ({ status, reason, headers }) => {
      response.sendDate = false;
      response.writeHead(status, reason, endToEnd(headers));
    },
    body: (bytes) => {
      if (response.write(bytes)) return;
      upstream.socket.pause();
      response.once('drain', () => upstream.socket.resume());
    },
    end: (reusable) => {
      response.off('close', abandon);
      response.end();
      // A request whose body the agent did not wait for leaves the connection in the middle of it.
      if (reusable && (!hasBody || request.complete)) pool.release(route.port, upstream);
      else upstream.destroy();
    },
    failed: (error) => {
      response.off('close', abandon);
      upstream.destroy();
      if (response.headersSent) response.destroy();
      else if (upstream.used && !upstream.answered && !hasBody) retry();
      else answer(request, response, refused(route.name, route.port, error.message));
    },
    drained: () => request.resume(),
  });
  upstream.socket.write(passage.head, 'latin1');
  if (hasBody) sendBody(request, upstream);
}

async function pass(passage: Passage, pool: UpstreamPool, isRetry = false): Promise<void> {
  const { request, response, route } = passage;
  try {
    const taken = isRetry ? pool.fresh(route.port) : pool.take(route.port);
    const upstream = taken instanceof Promise ? await taken : taken;
    if (response.destroyed) pool.release(route.port, upstream);
    else exchange(passage, upstream, pool, () => void pass(passage, pool, true));
  } catch (error) {
    answer(request, response, refused(route.name, route.port, (error as Error).message));
  }
}

/** Makes a gateway; nothing listens before `listen`. */
export function createGateway(initial: GatewaySettings): Gateway {
  const pool = new UpstreamPool();
  const routes = new Map<string, GatewayRoute>();
  const servers: http.Server[] = [];
  const tunnels = new Set<Socket | Duplex>();
  let ownPort = 0;

  /** Contract section 6, Gateway, (2) and (3), in this order. */
  const judge = (request: IncomingMessage): GatewayRoute | Page => {
    const hostname = hostnameOf(request.headers.host, ownPort);
    const route = hostname === undefined ? undefined : routes.get(hostname);
    if (!route) return unknownAgent(hostname ?? '');
    const { agentDomain, allowedExtensions } = gateway.settings;
    if (!mayCall(request.headers.origin, agentDomain, allowedExtensions)) return forbidden;
    if (request.headers.via?.includes('berth') || route.port === ownPort) return loop;
    return route.active ? route : stopped(route.name);
  };

  const headersFor = (request: IncomingMessage, route: GatewayRoute): string[] => {
    const host = request.headers.host ?? '';
    const peer = request.socket.remoteAddress ?? '127.0.0.1';
    return requestHeaders(request.rawHeaders, {
      host,
      peer,
      tokens: gateway.settings.tokens,
      upstreamHost: route.host ?? host,
    });
  };

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const found = judge(request);
    if ('status' in found) {
      answer(request, response, found);
      return;
    }
    const isChunked = request.headers['transfer-encoding'] !== undefined;
    const hasBody = isChunked || Number(request.headers['content-length'] ?? 0) > 0;
    const chunked = isChunked ? 'Transfer-Encoding: chunked\r\n' : '';
    const head = `${headLines(request, headersFor(request, found))}${chunked}\r\n`;
    void pass({ request, response, route: found, head, hasBody }, pool);
  };

  const onUpgrade = (request: IncomingMessage, socket: Duplex, first: Buffer): void => {
    const found = judge(request);
    if ('status' in found) {
      socket.end(answerUpgrade(found, request.headers.accept));
      return;
    }
    const upgrade = `Connection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\n`;
    const head = `${headLines(request, headersFor(request, found))}${upgrade}`;
    const unreachable = (error: Error): string =>
      answerUpgrade(refused(found.name, found.port, error.message), request.headers.accept);
    tunnels.add(socket);
    socket.on('close', () => tunnels.delete(socket));
    void tunnel({ port: found.port, socket, head, first, unreachable });
  };

  const listenOn = (host: string, port: number): Promise<http.Server> =>
    new Promise((resolve, reject) => {
      const server = http.createServer(
        { headersTimeout: HEAD_MS, requestTimeout: 0, keepAlive: true },
        onRequest,
      );
      server.on('upgrade', onUpgrade);
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
    route: (rows) => {
      routes.clear();
      for (const row of rows) routes.set(row.hostname.toLowerCase(), row);
      pool.keepOnly(new Set(rows.filter((row) => row.active).map((row) => row.port)));
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
