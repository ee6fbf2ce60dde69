// The transport for Node: a socket for calls, node:http for streams; fetch would cost a command 60 ms.
// Built-in modules are loaded with getBuiltinModule: importing node:http from a module costs newer Node
// versions 40 ms, and bundlers for browsers find no import here.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { BerthError, isBerthError } from './errors.ts';
import { type Access, authorization, type ProofCrypto, proveServer } from './prove_server.ts';
import { connectTo, lengthHeader, MAX_ANSWER_BYTES, requestOn, toHttpAnswer } from './socket_request.ts';
import type { HttpAnswer, HttpRequest, Transport } from './transport.ts';

function streamedAnswer(message: IncomingMessage): HttpAnswer {
  message.setEncoding('utf8');
  return {
    status: message.statusCode ?? 0,
    header: (name) => {
      const value = message.headers[name.toLowerCase()];
      return value === undefined ? null : String(value);
    },
    text: async () => {
      let body = '';
      for await (const part of message) {
        body += part;
        if (body.length > MAX_ANSWER_BYTES)
          throw new BerthError('bad_answer', `the answer has more than ${MAX_ANSWER_BYTES} bytes`);
      }
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

const nodeCrypto: ProofCrypto = {
  nonce: () => process.getBuiltinModule('node:crypto').randomBytes(16).toString('base64url'),
  hmac: (secret, text) =>
    process.getBuiltinModule('node:crypto').createHmac('sha256', secret).update(text).digest('base64url'),
  sha256: (text) =>
    process.getBuiltinModule('node:crypto').createHash('sha256').update(text).digest('base64url'),
};

/** A connection to a server that has proven itself on this very connection. */
interface ProvenConnection {
  /**
   * null: the caller connects, because nothing has to be proven or the certificate is the proof. A caller
   * uses the socket in the same turn, so no error can get lost in between.
   */
  socket: Socket | null;
  bearer: string | null;
}

/** Connects to the server of `url`. Rejects with `unreachable` and `unproven`. */
async function connectProven(
  url: string,
  access: Access | null,
  signal: AbortSignal | undefined,
): Promise<ProvenConnection> {
  if (!access) return { socket: null, bearer: null };
  if (!url.startsWith('http:')) return { socket: null, bearer: access.key.secret };
  const to = new URL(url);
  const socket = connectTo(to);
  // Nobody else listens between two requests.
  socket.on('error', () => undefined);
  try {
    const ask = (path: string) =>
      requestOn(socket, {
        method: 'GET',
        url: to.origin + path,
        headers: [],
        isKept: true,
        ...(signal ? { signal } : {}),
      });
    return { socket, bearer: await proveServer(url, access, nodeCrypto, ask) };
  } catch (error) {
    socket.destroy();
    throw isBerthError(error) ? error : failureOf(url, error, signal);
  }
}

/** The error of a request: the reason of its signal, or `unreachable`. */
const failureOf = (url: string, error: unknown, signal: AbortSignal | undefined): unknown =>
  signal?.aborted ? signal.reason : unreachable(url, error);

/** Resolves with the head as soon as it arrives; the body follows as a stream. */
async function requestStreamed(asked: HttpRequest): Promise<HttpAnswer> {
  const { method, url, headers, body, signal, access } = asked;
  const { socket, bearer } = await connectProven(url, access, signal);
  const { request } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http');
  return new Promise((resolve, reject) => {
    const lines = [...headers, ...authorization(bearer), ...lengthHeader(method, body)].flat();
    // Given a list of headers, node:http adds none of its own.
    lines.push('Host', new URL(url).host);
    // No agent: a new connection on loopback is cheaper than detecting that a kept one was closed.
    const connection = socket ? { createConnection: () => socket } : { agent: false };
    const sent = request(url, { method, headers: lines, ...connection, ...(signal ? { signal } : {}) });
    sent.on('response', (message) => resolve(streamedAnswer(message)));
    sent.on('error', (error) => reject(failureOf(url, error, signal)));
    sent.end(body);
  });
}

async function requestBuffered(request: HttpRequest): Promise<HttpAnswer> {
  const { url, access, signal } = request;
  const proven = await connectProven(url, access, signal);
  const { bearer } = proven;
  const socket = proven.socket ?? connectTo(new URL(url));
  try {
    const sent = { ...request, headers: [...request.headers, ...authorization(bearer)] };
    return toHttpAnswer(await requestOn(socket, sent));
  } catch (error) {
    throw failureOf(url, error, signal);
  } finally {
    socket.destroy();
  }
}

/**
 * Requests over a socket, or with node:http and node:https. WebSockets use the package ws, loaded at the
 * first one. Every connection begins with the proof of the server, if there is a key.
 */
export const nodeTransport: Transport = {
  request: (request) =>
    request.isBuffered && request.url.startsWith('http:')
      ? requestBuffered(request)
      : requestStreamed(request),
  openWebSocket: async ({ url, protocols, access, deadlineMs }, listener) => {
    const { openWebSocket } = await import('../adapters/websocket.ts');
    const late = Number.isFinite(deadlineMs) ? AbortSignal.timeout(deadlineMs) : undefined;
    const proven = connectProven(url, access, late).catch((error: unknown) => {
      throw late?.aborted ? new BerthError('unreachable', `no proof comes from ${new URL(url).host}`) : error;
    });
    const { socket, bearer } = await proven;
    return openWebSocket(url.replace(/^http/, 'ws'), protocols(bearer), socket, listener);
  },
};
