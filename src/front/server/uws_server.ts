// The front's HTTP server on uWebSockets.js. Each trap of the library is explained beside the code that
// avoids it.

import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket,
  us_socket_context_t,
} from 'uWebSockets.js';
import net from 'node:net';
import type { ListenRefusal } from '../../adapters/loopback_listener.ts';
import { fail } from '../../protocol/errors.ts';
import { HTTP } from '../../settings/limits.ts';
import {
  type BodyLimits,
  type CreateServer,
  type HttpExchange,
  type HttpServer,
  type ResponseBody,
  ResponseHeaders,
  type ResponseStream,
  type ServerOptions,
  type ServerWebSocket,
  type WebSocketHandlers,
} from './http_server.ts';
import { loadUws } from './uws_binary.ts';
import { UwsStream } from './uws_stream.ts';
import { type UpgradeData, UwsWebSocket, webSocketBehavior } from './uws_websocket.ts';

declare module 'uWebSockets.js' {
  interface TemplatedApp {
    /** The binary takes options for one address, which its own types leave out. */
    listen(
      host: string,
      port: number,
      options: ListenOptions,
      listening: (socket: us_listen_socket | false) => void,
    ): TemplatedApp;
  }
}

const uWS = loadUws();

/** Without this option two programs could listen on the same port. */
const EXCLUSIVE = 1;
/** For the answer to a defect of the front. */
const NO_HEADERS = new ResponseHeaders([]);

/** Bytes counted for the head of an answer. */
const HEAD_BYTES = 256;
const nextSampleDistance = (): number => Math.random() * 2 * HTTP.readCheckBytes;
let bytesUntilSample = nextSampleDistance();

/**
 * Whether to check at this answer of `bytes` that its client reads what it asks for: a check at each answer
 * would cost a tenth of the throughput. The distance is random, or one connection could get all checks while
 * another piles up answers.
 */
function isSampled(bytes: number): boolean {
  bytesUntilSample -= HEAD_BYTES + bytes;
  if (bytesUntilSample > 0) return false;
  bytesUntilSample = nextSampleDistance();
  return true;
}

class UwsExchange implements HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly isHandshake: boolean;
  private readonly res: HttpResponse;
  /** null once the handler has returned: uWebSockets.js takes the request away then. */
  private req: HttpRequest | null;
  private readonly context: us_socket_context_t | null;
  /** The request has been answered, or the client has gone. */
  private ended = false;
  /** uWebSockets.js still holds the response, so it demands a listener for the client's going. */
  private needsAbortHandler = true;
  private onAborted: (() => void) | null = null;

  constructor(res: HttpResponse, req: HttpRequest, context: us_socket_context_t | null) {
    this.res = res;
    this.req = req;
    this.context = context;
    this.method = req.getCaseSensitiveMethod();
    this.path = req.getUrl();
    this.isHandshake = context !== null;
  }

  query(): string {
    return this.request().getQuery() ?? '';
  }

  header(name: string): string {
    return this.request().getHeader(name);
  }

  countHeader(name: string): number {
    let count = 0;
    this.request().forEach((key) => {
      if (key === name) count += 1;
    });
    return count;
  }

  peerAddress(): string {
    return Buffer.from(this.res.getRemoteAddressAsText()).toString();
  }

  readBody({ bytes, ms }: BodyLimits): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      let size = 0;
      const late = (): void => reject(fail('request_timeout', `the body was not complete after ${ms} ms`));
      const timer = setTimeout(late, ms);
      this.onAborted = () => {
        clearTimeout(timer);
        late();
      };
      this.res.onData((chunk, isLast) => {
        size += chunk.byteLength;
        // Copied, because uWebSockets.js takes the chunk away when this function returns.
        if (size <= bytes) parts.push(Buffer.from(new Uint8Array(chunk)));
        if (!isLast && size <= bytes + HTTP.maxDrainBytes) return;
        clearTimeout(timer);
        if (size <= bytes) resolve(parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts));
        else reject(fail('payload_too_large', `the body is larger than ${bytes} bytes`));
      });
    });
  }

  send(status: number, head: ResponseHeaders, body: ResponseBody, close = false): void {
    if (this.ended) return;
    this.ended = true;
    this.needsAbortHandler = false;
    // The connection is corked until the handler returns.
    if (this.req) this.write(status, head, body, close);
    else this.res.cork(() => this.write(status, head, body, close));
  }

  startStream(head: ResponseHeaders, filler: Uint8Array): ResponseStream | null {
    if (this.ended) return null;
    const stream = new UwsStream(this.res, filler, () => {
      this.needsAbortHandler = false;
    });
    this.ended = true;
    this.onAborted = () => stream.markClosed();
    stream.start(head.block(200));
    return stream;
  }

  acceptWebSocket(protocol: string, open: (socket: ServerWebSocket) => WebSocketHandlers): void {
    const { req, context } = this;
    if (this.ended || !context) return;
    // A later upgrade would need a cork, and at its end this binary takes the upgraded socket for a response.
    if (!req) throw new Error('a WebSocket is accepted before its handler returns');
    this.ended = true;
    this.needsAbortHandler = false;
    const key = this.header('sec-websocket-key');
    const userData: UpgradeData = { upgraded: new UwsWebSocket(open) };
    this.res.upgrade(userData, key, protocol, this.header('sec-websocket-extensions'), context);
  }

  /** The handler has returned. If it has not answered yet, this listens for the client's going. */
  onHandlerReturned(): void {
    this.req = null;
    if (!this.needsAbortHandler) return;
    // For requests answered at once as well, the listener would cost a quarter of all requests per second.
    this.res.onAborted(() => {
      this.ended = true;
      this.onAborted?.();
    });
  }

  private request(): HttpRequest {
    if (!this.req) throw new Error('a request is read before its handler returns');
    return this.req;
  }

  private write(status: number, head: ResponseHeaders, body: ResponseBody, close: boolean): void {
    const { res } = this;
    const isData = typeof body === 'string' || body instanceof Uint8Array;
    if (isData && status !== 204 && status !== 304) {
      res.writeStatus(head.block(status));
      if (close || body.length === 0 || !isSampled(body.length)) res.end(body, close);
      else this.end(body);
      return;
    }
    // With a length `endWithoutBody` does not end the response and the process aborts, so the length is our
    // own header.
    const length = isData ? null : body.length;
    const full = length === null ? head : head.with('Content-Length', String(length));
    if (isSampled(0)) this.endAndClose(full.with('Date', new Date().toUTCString()).block(status));
    else {
      res.writeStatus(full.block(status));
      res.endWithoutBody();
    }
  }

  /**
   * uWebSockets.js does not say whether the connection has taken an answer without a body. So this answer is
   * the last on its connection, which is closed after it. The response stays open, and a further request
   * closes the connection too.
   */
  private endAndClose(block: string): void {
    // uWebSockets.js adds the line end that completes the head.
    this.res.writeStatus(`${block}\r\nConnection: close\r\n`);
    this.needsAbortHandler = true;
    let isOpen = true;
    this.onAborted = () => {
      isOpen = false;
    };
    setImmediate(() => isOpen && this.res.close());
  }

  /**
   * Ends the answer when the connection has taken it; the rest is not copied meanwhile. A client that sends
   * its next request before that does not read what it asks for, and uWebSockets.js closes its connection.
   */
  private end(body: Uint8Array | string): void {
    const { res } = this;
    const [, isDone] = res.tryEnd(body, Buffer.byteLength(body));
    if (isDone) return;
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    res.onWritable((offset) => res.tryEnd(bytes.subarray(offset), bytes.length)[0]);
    this.needsAbortHandler = true;
  }
}

/** A server on uWebSockets.js. */
export const createUwsServer: CreateServer = (options) => new UwsServer(options);

class UwsServer implements HttpServer {
  readonly name = 'uWebSockets.js';
  private readonly options: ServerOptions;
  private readonly app: TemplatedApp;
  private readonly listening: us_listen_socket[] = [];

  constructor(options: ServerOptions) {
    this.options = options;
    const { tls, webSocketPaths, maxMessageBytes, onDefect } = options;
    this.app = tls ? uWS.SSLApp({ key_file_name: tls.key, cert_file_name: tls.cert }) : uWS.App();
    for (const path of webSocketPaths) {
      this.app.ws(path, {
        ...webSocketBehavior(maxMessageBytes, onDefect),
        upgrade: (res, req, context) => this.serve(res, req, context),
      });
    }
    this.app.any('/*', (res, req) => this.serve(res, req, null));
  }

  listen(host: string, port: number): Promise<{ port: number } | ListenRefusal> {
    return new Promise((resolve) => {
      this.app.listen(host, port, EXCLUSIVE, (socket) => {
        if (!socket) {
          resolve(listenRefusal(host, port));
          return;
        }
        this.listening.push(socket);
        resolve({ port: uWS.us_socket_local_port(socket) });
      });
    });
  }

  stopListening(): void {
    for (const socket of this.listening.splice(0)) uWS.us_listen_socket_close(socket);
  }

  close(): void {
    this.stopListening();
    this.app.close();
  }

  /** An exception, or a return without an answer and without a listener, would end the process. */
  private serve(res: HttpResponse, req: HttpRequest, context: us_socket_context_t | null): void {
    const exchange = new UwsExchange(res, req, context);
    try {
      this.options.handle(exchange);
    } catch (error) {
      this.options.onDefect(error);
      exchange.send(500, NO_HEADERS, '');
    }
    exchange.onHandlerReturned();
  }
}

/** The reason why uWebSockets.js could not listen, which only node:net tells. */
function listenRefusal(host: string, port: number): Promise<ListenRefusal> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.on('error', (error: NodeJS.ErrnoException) => resolve({ refused: error.code ?? 'EADDRINUSE' }));
    // The port was released meanwhile, or is held in a way that bars only uWebSockets.js.
    probe.listen({ host, port, exclusive: true }, () =>
      probe.close(() => resolve({ refused: 'EADDRINUSE' })),
    );
  });
}
