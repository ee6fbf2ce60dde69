// A proxy in front of the real API server that knows only HTTP and WebSocket and ends the tunnels, which the
// test cluster is too old for: like newer API servers, it unwraps SPDY from WebSocket messages and passes it
// on.
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { createServer, type RequestOptions, request } from 'node:https';
import type { Duplex } from 'node:stream';
import { createWebSocketStream, WebSocketServer } from 'ws';
import { afterThisTest } from '../../kit/actors.ts';
import { certificate } from '../../kit/certificates.ts';
import { access } from './tether_kit.ts';

const TUNNEL = 'SPDY/3.1+portforward.k8s.io';

export interface TunnelProxy {
  server: string;
  ca: string;
  /** The requested upgrades, in order. */
  asked: ('spdy' | 'tunnel' | 'websocket')[];
  /** Breaks all open connections. */
  cut(): void;
}

export interface ProxyOptions {
  /** Handling of a request for SPDY. */
  spdy: 'refused' | 'cut';
  /** Whether tunnels end here, or are passed to the API server. */
  tunnels: boolean;
}

/** A request to the API server, with the client's account, else the administrator's. */
function passedOn({ method, url }: IncomingMessage, headers: IncomingHttpHeaders): RequestOptions {
  const { server, ca, credential } = access();
  const { hostname, port } = new URL(server);
  const identity =
    credential.kind === 'certificate' && headers.authorization === undefined
      ? { cert: credential.certificate, key: credential.key }
      : {};
  return { hostname, port, method, path: url, headers, agent: false, ...(ca ? { ca } : {}), ...identity };
}

const headOf = ({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string => {
  const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
  return `${[`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines].join('\r\n')}\r\n\r\n`;
};

const join = (one: Duplex, other: Duplex): void => {
  one.on('error', () => other.destroy()).on('close', () => other.destroy());
  other.on('error', () => one.destroy()).on('close', () => one.destroy());
  one.pipe(other).pipe(one);
};

/**
 * Asks the API server; hands an upgrade to `taken`, and passes any other response to the client unchanged.
 */
function upgrade(
  options: RequestOptions,
  near: Duplex,
  taken: (far: Duplex, answer: IncomingMessage) => void,
): void {
  const asked = request(options);
  asked.on('error', () => near.destroy());
  asked.on('upgrade', (answer, far, head) => {
    far.unshift(head);
    taken(far, answer);
  });
  asked.on('response', (answer) => {
    near.write(headOf(answer));
    answer.pipe(near);
  });
  asked.end();
}

/** The proxy; it ends with the test. */
export async function webSocketsOnly({ spdy, tunnels }: ProxyOptions): Promise<TunnelProxy> {
  const issuer = certificate({ commonName: 'proxy CA' });
  const own = certificate({ commonName: 'proxy', names: ['127.0.0.1'], issuer });
  const asked: TunnelProxy['asked'] = [];
  const sockets = new Set<Duplex>();
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  // The protocol's name has a slash, which ws rejects, so ws does not get to see it.
  wss.on('headers', (headers) => headers.push(`Sec-WebSocket-Protocol: ${TUNNEL}`));

  const tunnel = (incoming: IncomingMessage, near: Duplex, head: Buffer): void => {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'SPDY/3.1',
      'x-stream-protocol-version': 'portforward.k8s.io',
    };
    // An account that may open a tunnel needs no right to create forwards: the API server uses its own
    // account with the node.
    upgrade({ ...passedOn(incoming, headers), method: 'POST' }, near, (far) => {
      delete incoming.headers['sec-websocket-protocol'];
      wss.handleUpgrade(incoming, near, head, (socket) => join(createWebSocketStream(socket), far));
    });
  };
  const listener = createServer({ cert: own.cert, key: own.key }, (incoming, outgoing) => {
    const sent = request(passedOn(incoming, incoming.headers), (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.on('error', () => outgoing.destroy()).pipe(outgoing);
    });
    sent.on('error', () => outgoing.destroy());
    outgoing.on('close', () => sent.destroy());
    incoming.pipe(sent);
  });
  listener.on('upgrade', (incoming, near, head) => {
    near.on('error', () => undefined);
    if (incoming.headers.upgrade !== 'websocket') {
      asked.push('spdy');
      if (spdy === 'cut') near.destroy();
      else near.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>');
      return;
    }
    const isTunnel = incoming.headers['sec-websocket-protocol'] === TUNNEL;
    asked.push(isTunnel ? 'tunnel' : 'websocket');
    if (isTunnel && tunnels) tunnel(incoming, near, head);
    else
      upgrade(passedOn(incoming, incoming.headers), near, (far, answer) => {
        near.write(headOf(answer));
        join(near, far);
      });
  });
  listener.on('secureConnection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  afterThisTest(async () => {
    cut();
    await new Promise((resolve) => listener.close(resolve));
  });
  const address = listener.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { server: `https://127.0.0.1:${port}`, ca: issuer.cert, asked, cut };
}
