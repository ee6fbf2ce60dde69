// A request and its whole answer over a plain socket, for the calls of a command: loading and starting
// node:http takes longer than the call itself. Implements HTTP/1.1 (RFC 9112) for a client that sends the
// next request after the answer.
import type { Socket } from 'node:net';
import { unbracketedHost } from '../adapters/url_host.ts';
import type { HttpRequest } from './transport.ts';

export interface BufferedAnswer {
  status: number;
  headers: ReadonlyMap<string, string>;
  body: string;
}

const HEAD_END = '\r\n\r\n';
/** No answer that is read as a whole has nearly as much. */
export const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

interface ParsedHead {
  status: number;
  headers: Map<string, string>;
  /** Offset of the body. */
  bodyAt: number;
}

/** Parses the head; undefined while it is incomplete. Throws when it is invalid. */
function parseHead(bytes: Buffer): ParsedHead | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(first) ?? [];
  if (status === undefined) throw new Error('the answer is no HTTP');
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return { status: Number(status), headers, bodyAt: end + HEAD_END.length };
}

/** The body of a chunked answer; undefined while it is incomplete. Throws when it is invalid. */
function decodeChunked(bytes: Buffer, from: number): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const [, digits] = /^([0-9a-f]{1,8})\s*(?:;|$)/i.exec(bytes.toString('latin1', at, lineEnd)) ?? [];
    if (digits === undefined) throw new Error('the answer is no HTTP');
    const size = Number.parseInt(digits, 16);
    const start = lineEnd + 2;
    // The last chunk is empty. Trailers may follow, which nothing here needs.
    if (size === 0) return bytes.indexOf(HEAD_END, lineEnd) < 0 ? undefined : Buffer.concat(parts);
    if (bytes.length < start + size + 2) return undefined;
    parts.push(bytes.subarray(start, start + size));
    at = start + size + 2;
  }
}

/** The whole answer in `bytes`; undefined while it is incomplete. `ended`: no more bytes will arrive. */
function parseAnswer(bytes: Buffer, ended: boolean): BufferedAnswer | undefined {
  const head = parseHead(bytes);
  if (!head) return undefined;
  const { status, headers, bodyAt } = head;
  const length = headers.get('content-length');
  const isChunked = headers.get('transfer-encoding')?.toLowerCase() === 'chunked';
  let body: Buffer | undefined;
  if (isChunked) body = decodeChunked(bytes, bodyAt);
  else if (length === undefined) body = ended ? bytes.subarray(bodyAt) : undefined;
  else if (bytes.length >= bodyAt + Number(length)) body = bytes.subarray(bodyAt, bodyAt + Number(length));
  return body && { status, headers, body: body.toString() };
}

interface SentRequest extends Omit<HttpRequest, 'access' | 'isBuffered'> {
  /** Another request follows on this connection. */
  isKept?: boolean;
}

function requestBytes({ method, url, headers, body, isKept = false }: SentRequest): string {
  const { pathname, search, host } = new URL(url);
  const lines = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    ...(isKept ? [] : ['Connection: close']),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined && method === 'GET' ? [] : [`Content-Length: ${Buffer.byteLength(body ?? '')}`]),
  ];
  return lines.join('\r\n') + HEAD_END + (body ?? '');
}

/** Opens a connection to the server of an http: address. An error of it comes with the first request. */
export const connectTo = (url: URL): Socket =>
  process.getBuiltinModule('node:net').connect(Number(url.port || 80), unbracketedHost(url));

/**
 * Sends `request` on `socket` and resolves with the whole answer; the socket stays open and without
 * listeners. Rejects with the error of the socket, or with the reason of an aborted signal.
 */
export function requestOn(socket: Socket, request: SentRequest): Promise<BufferedAnswer> {
  const { signal } = request;
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const finish = (settle: () => void): void => {
      signal?.removeEventListener('abort', aborted);
      socket.off('data', taken).off('end', ended).off('error', failed).off('close', closed);
      settle();
    };
    const aborted = (): void => finish(() => reject(signal?.reason));
    const failed = (error: unknown): void => finish(() => reject(error));
    const tryParse = (isEnd: boolean): void => {
      try {
        const answer = parseAnswer(Buffer.concat(parts), isEnd);
        if (answer) finish(() => resolve(answer));
        else if (isEnd) failed(new Error('the connection was closed before the answer'));
      } catch (error) {
        failed(error);
      }
    };
    let size = 0;
    const taken = (part: Buffer): void => {
      size += part.length;
      parts.push(part);
      if (size > MAX_ANSWER_BYTES) failed(new Error(`its answer has more than ${MAX_ANSWER_BYTES} bytes`));
      else tryParse(false);
    };
    const ended = (): void => tryParse(true);
    const closed = (): void => failed(new Error('the connection is closed'));
    if (signal?.aborted) return aborted();
    // A closed socket tells nobody that it cannot write.
    if (socket.destroyed) return closed();
    signal?.addEventListener('abort', aborted);
    socket.on('data', taken).on('end', ended).on('error', failed).on('close', closed);
    socket.write(requestBytes(request));
  });
}
