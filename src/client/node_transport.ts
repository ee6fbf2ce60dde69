// The transport for Node: a socket for calls, node:http for streams; fetch would cost a command 60 ms.
// Built-in modules are loaded with getBuiltinModule: importing node:http from a module costs newer Node
// versions 40 ms, and bundlers for browsers find no import here.
import type { IncomingMessage } from 'node:http';
import { BerthError } from './errors.ts';
import { requestOverSocket } from './socket_request.ts';
import type { HttpAnswer, HttpRequest, Transport } from './transport.ts';

function toHttpAnswer(message: IncomingMessage): HttpAnswer {
  message.setEncoding('utf8');
  return {
    status: message.statusCode ?? 0,
    header: (name) => {
      const value = message.headers[name.toLowerCase()];
      return value === undefined ? null : String(value);
    },
    text: async () => {
      let body = '';
      for await (const part of message) body += part;
      return body;
    },
    chunks: () => message,
  };
}

/** Describes a connection error in words. */
function unreachable(url: string, error: unknown): BerthError {
  const { host } = new URL(url);
  const { code, message = String(error) } = error as NodeJS.ErrnoException;
  const why = code === 'ECONNREFUSED' ? 'nothing listens there' : (code ?? message);
  return new BerthError('unreachable', `no daemon answers at ${host}: ${why}`, {}, { cause: error });
}

/** Resolves with the head as soon as it arrives; the body follows as a stream. */
function requestStreamed({ method, url, headers, body, signal }: HttpRequest): Promise<HttpAnswer> {
  const { request } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http');
  return new Promise((resolve, reject) => {
    const lines = headers.flat();
    if (body !== undefined) lines.push('Content-Length', String(Buffer.byteLength(body)));
    // Given a list of headers, node:http adds none of its own.
    lines.push('Host', new URL(url).host);
    // No agent: a new connection on loopback is cheaper than detecting that a kept one was closed.
    const sent = request(url, { method, headers: lines, agent: false, ...(signal ? { signal } : {}) });
    sent.on('response', (message) => resolve(toHttpAnswer(message)));
    sent.on('error', (error) => reject(signal?.aborted ? signal.reason : unreachable(url, error)));
    sent.end(body);
  });
}

async function requestBuffered(request: HttpRequest): Promise<HttpAnswer> {
  try {
    const { status, headers, body } = await requestOverSocket(request);
    return {
      status,
      header: (name) => headers.get(name.toLowerCase()) ?? null,
      text: async () => body,
      chunks: async function* () {
        yield body;
      },
    };
  } catch (error) {
    throw request.signal?.aborted ? request.signal.reason : unreachable(request.url, error);
  }
}

/**
 * Requests over a socket, or with node:http and node:https. WebSockets use the package ws, loaded at the
 * first one.
 */
export const nodeTransport: Transport = {
  request: (request) =>
    request.isBuffered && request.url.startsWith('http:')
      ? requestBuffered(request)
      : requestStreamed(request),
  openWebSocket: async (url, protocols, listener) => {
    const { openWebSocket } = await import('../adapters/websocket.ts');
    return openWebSocket(url, protocols, listener);
  },
};
