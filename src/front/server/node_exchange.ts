// One request, its stream or its WebSocket, on node:http.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from '../../adapters/websocket.ts';
import type { BodyBudget, BodyLimits, IncomingBody } from './body_budget.ts';
import type {
  HttpExchange,
  ResponseBody,
  ResponseHeaders,
  ResponseStream,
  ServerWebSocket,
  WebSocketHandlers,
} from './http_server.ts';
import { type HeadFacts, HeadReader } from './request_head.ts';

/** For errors of a connection that is closed right after them. */
export const ignoreError = (): void => {};

/** Completes a handshake. */
type CompleteHandshake = (protocol: string, open: (socket: ServerWebSocket) => WebSocketHandlers) => void;

class NodeStream implements ResponseStream {
  onDrain: (() => void) | null = null;
  onClose: (() => void) | null = null;
  private readonly res: ServerResponse;
  private readonly keepAliveBytes: Uint8Array;
  isOpen = true;

  constructor(res: ServerResponse, keepAliveBytes: Uint8Array) {
    this.res = res;
    this.keepAliveBytes = keepAliveBytes;
    res.on('drain', () => this.onDrain?.());
    res.on('close', () => this.markClosed());
  }

  get bufferedBytes(): number {
    return this.isOpen && this.res.writableNeedDrain ? this.res.writableLength : 0;
  }

  write(bytes: Uint8Array): void {
    if (this.isOpen) this.res.write(bytes);
  }

  keepAlive(): void {
    if (this.bufferedBytes === 0) this.write(this.keepAliveBytes);
  }

  end(): void {
    this.res.end();
    this.markClosed();
  }

  destroy(): void {
    this.markClosed();
    this.res.destroy();
  }

  markClosed(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.onClose?.();
  }
}

interface ExchangeOptions {
  bodies: BodyBudget;
  onTrusted: () => void;
}

/** Shared by all requests, because each is read completely in one go. */
const headReader = new HeadReader();

function readHead({ rawHeaders }: IncomingMessage): HeadFacts {
  headReader.begin();
  for (let index = 0; index < rawHeaders.length; index += 2)
    headReader.note((rawHeaders[index] ?? '').toLowerCase(), rawHeaders[index + 1] ?? '');
  return headReader.finish();
}

/** A request of node:http; `upgrade` is null unless it asks for a WebSocket. */
export class NodeExchange implements HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly isHandshake: boolean;
  readonly head: HeadFacts;
  private readonly bodies: BodyBudget;
  private readonly req: IncomingMessage;
  private readonly res: ServerResponse;
  private readonly onTrusted: () => void;
  private readonly upgrade: CompleteHandshake | null;
  private readonly search: string;
  private ended = false;
  private body: IncomingBody | null = null;

  constructor(
    { bodies, onTrusted }: ExchangeOptions,
    req: IncomingMessage,
    res: ServerResponse,
    upgrade: CompleteHandshake | null,
  ) {
    const url = req.url ?? '/';
    const mark = url.indexOf('?');
    this.bodies = bodies;
    this.onTrusted = onTrusted;
    this.head = readHead(req);
    this.req = req;
    this.res = res;
    this.upgrade = upgrade;
    this.method = req.method ?? 'GET';
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.search = mark < 0 ? '' : url.slice(mark + 1);
    this.isHandshake = upgrade !== null;
  }

  query(): string {
    return this.search;
  }

  header(name: string): string {
    return this.req.headersDistinct[name]?.[0] ?? '';
  }

  peerAddress(): string {
    return this.req.socket.remoteAddress ?? '';
  }

  readBody(limits: BodyLimits): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const body = this.bodies.receive(limits, resolve, reject);
      this.body = body;
      this.req.on('data', (chunk: Buffer) => body.add(chunk));
      this.req.on('end', () => {
        this.body = null;
        body.end();
      });
      // Has no effect after the end of the body.
      this.req.on('close', () => body.cut());
    });
  }

  send(status: number, head: ResponseHeaders, body: ResponseBody, close = false): void {
    if (this.ended || this.res.destroyed) return;
    this.ended = true;
    const pairs = [...head.pairs];
    const isData = typeof body === 'string' || body instanceof Uint8Array;
    const length = isData ? Buffer.byteLength(body) : body.length;
    if (length !== null && status !== 204 && status !== 304) pairs.push('Content-Length', String(length));
    if (close || this.body !== null) pairs.push('Connection', 'close');
    this.res.writeHead(status, pairs);
    this.res.end(isData ? body : undefined);
  }

  startStream(head: ResponseHeaders, filler: Uint8Array): ResponseStream | null {
    if (this.ended || this.res.destroyed) return null;
    const stream = new NodeStream(this.res, filler);
    this.res.writeHead(200, [...head.pairs]).flushHeaders();
    this.ended = true;
    return stream;
  }

  whenGone(onGone: () => void): void {
    if (this.res.destroyed) onGone();
    else
      this.res.on('close', () => {
        if (!this.ended) onGone();
      });
  }

  markTrusted(): void {
    this.onTrusted();
  }

  acceptWebSocket(protocol: string, open: (socket: ServerWebSocket) => WebSocketHandlers): void {
    if (this.ended || this.res.destroyed) return;
    this.ended = true;
    this.upgrade?.(protocol, open);
  }
}

class NodeWebSocket implements ServerWebSocket {
  private readonly ws: WebSocket;

  constructor(ws: WebSocket) {
    this.ws = ws;
  }

  get bufferedBytes(): number {
    return this.isOpen() ? this.ws.bufferedAmount : 0;
  }

  send(data: string | Uint8Array): void {
    if (this.isOpen()) this.ws.send(data, { binary: typeof data !== 'string' });
  }

  close(code: number, reason = ''): void {
    this.ws.close(code, reason);
  }

  private isOpen(): boolean {
    return this.ws.readyState === this.ws.OPEN;
  }
}

/** Connects an accepted WebSocket with the handlers that `open` returns. */
export function bindWebSocket(
  ws: WebSocket,
  raw: Duplex,
  open: (socket: ServerWebSocket) => WebSocketHandlers,
  onDefect: (error: unknown) => void,
): void {
  const guarded = (tell: () => void): void => {
    try {
      tell();
    } catch (error) {
      onDefect(error);
      ws.close(1011);
    }
  };
  guarded(() => {
    const events = open(new NodeWebSocket(ws));
    ws.on('message', (data: Buffer, isBinary) =>
      guarded(() => events.message(new Uint8Array(data), isBinary)),
    );
    ws.on('close', (code) => guarded(() => events.close(code)));
    // An unhandled error would end the process; `close` follows with its reason.
    ws.on('error', ignoreError);
    raw.on('drain', () => guarded(() => events.drain()));
  });
}
