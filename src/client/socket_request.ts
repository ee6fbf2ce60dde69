// A request and its whole answer over a plain socket, for the calls of a command: loading and starting
// node:http takes longer than the call itself. Implements HTTP/1.1 (RFC 9112) for a client that sends the
// next request after the answer.
import type { Socket } from 'node:net';
import { unbracketedHost } from '../adapters/url_host.ts';
import { AnswerReader, type BufferedAnswer, HEAD_END } from './answer_reader.ts';
import type { HttpAnswer, HttpRequest } from './transport.ts';

/** No complete answer is nearly this large. */
export const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

interface SentRequest extends Omit<HttpRequest, 'access' | 'isBuffered'> {
  /** Another request follows on this connection. */
  isKept?: boolean;
}

/**
 * The header with the length of a body. A change without a body has the length 0: without this header,
 * node:http would send an empty chunked body.
 */
export const lengthHeader = (method: string, body: string | undefined): HttpRequest['headers'] =>
  body === undefined && method === 'GET' ? [] : [['Content-Length', String(Buffer.byteLength(body ?? ''))]];

function requestBytes({ method, url, headers, body, isKept = false }: SentRequest): string {
  const { pathname, search, host } = new URL(url);
  const lines = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    ...(isKept ? [] : ['Connection: close']),
    ...[...headers, ...lengthHeader(method, body)].map(([name, value]) => `${name}: ${value}`),
  ];
  return lines.join('\r\n') + HEAD_END + (body ?? '');
}

/** Opens a connection to the server of an http: address. Errors are reported with the first request. */
export const connectTo = (url: URL): Socket =>
  process.getBuiltinModule('node:net').connect(Number(url.port || 80), unbracketedHost(url));

/**
 * Sends `request` on `socket` and resolves with the whole answer; the socket stays open and without
 * listeners. Rejects with the error of the socket, or with the reason of an aborted signal.
 */
export function requestOn(socket: Socket, request: SentRequest): Promise<BufferedAnswer> {
  const { signal } = request;
  return new Promise((resolve, reject) => {
    const reader = new AnswerReader();
    const finish = (settle: () => void): void => {
      signal?.removeEventListener('abort', aborted);
      socket.off('data', taken).off('end', ended).off('error', failed).off('close', closed);
      settle();
    };
    const aborted = (): void => finish(() => reject(signal?.reason));
    const failed = (error: unknown): void => finish(() => reject(error));
    const settleWith = (read: () => BufferedAnswer | null): void => {
      try {
        const answer = read();
        if (answer) finish(() => resolve(answer));
      } catch (error) {
        failed(error);
      }
    };
    const taken = (part: Buffer): void => {
      if (reader.size + part.length > MAX_ANSWER_BYTES)
        failed(new Error(`its answer has more than ${MAX_ANSWER_BYTES} bytes`));
      else settleWith(() => reader.push(part));
    };
    const ended = (): void => settleWith(() => reader.end());
    const closed = (): void => failed(new Error('the connection is closed'));
    if (signal?.aborted) return aborted();
    // A closed socket does not report that it cannot write.
    if (socket.destroyed) return closed();
    signal?.addEventListener('abort', aborted);
    socket.on('data', taken).on('end', ended).on('error', failed).on('close', closed);
    socket.write(requestBytes(request));
  });
}

/** The answer as a transport gives it. */
export const toHttpAnswer = ({ status, headers, body }: BufferedAnswer): HttpAnswer => ({
  status,
  header: (name) => headers.get(name.toLowerCase()) ?? null,
  text: async () => body,
  chunks: async function* () {
    yield body;
  },
});
