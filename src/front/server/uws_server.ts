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
import { areDescriptorsUsed } from '../../adapters/process/open_files_limit.ts';
import { DESCRIPTORS, HTTP, KIB } from '../../settings/limits.ts';
import type { BodyBudget, BodyLimits, IncomingBody } from './body_budget.ts';
import {
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
import { type HeadFacts, HeadReader } from './request_head.ts';
import { TurnBudget } from './turn_budget.ts';
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

/** The most that uWebSockets.js adds to the head of an answer: the status line and the length. */
const HEAD_BYTES = 128;
/**
 * How much of a connection's answers uWebSockets.js collects before it writes. If the connection does not
 * take all of that, it loses the piece that no longer fits. An `end` lost in this way leaves the request
 * unanswered, which ends the process; `tryEnd` reports it and is repeated.
 */
const CORK_BYTES = 16 * KIB;
/** In a turn over its time, a body with more chunks than this closes its connection. */
const CHUNKS_AT_ONCE = 4_096;
const nextSampleDistance = (): number => Math.random() * 2 * HTTP.readCheckBytes;
let bytesUntilSample = nextSampleDistance();

/**
 * Whether to check at this answer of `bytes` that its client reads what it asks for. A check at each answer
 * would cost a tenth of the throughput. The distance is random, because otherwise one connection could get
 * all the checks while another piles up answers.
 */
function isSampled(bytes: number): boolean {
  bytesUntilSample -= bytes;
  if (bytesUntilSample > 0) return false;
  bytesUntilSample = nextSampleDistance();
  return true;
}

/** Shared by all requests, because each is read completely in one go. */
const headReader = new HeadReader();

function readHead(req: HttpRequest): HeadFacts {
  headReader.begin();
  req.forEach(headReader.note);
  return headReader.finish();
}

/** uWebSockets.js treats every request with a Sec-WebSocket-Key as an upgrade. */
const isUpgrade = (req: HttpRequest): boolean =>
  req.getHeader('upgrade').toLowerCase() === 'websocket' &&
  /(?:^|,)\s*upgrade\s*(?:,|$)/i.test(req.getHeader('connection'));

class UwsExchange implements HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly isHandshake: boolean;
  readonly head: HeadFacts;
  private readonly res: HttpResponse;
  private readonly bodies: BodyBudget;
  private readonly turn: TurnBudget;
  /** The turn is over its time: this request is answered in the next one. */
  private readonly isLate: boolean;
  /** null once the handler has returned, when uWebSockets.js frees the request. */
  private req: HttpRequest | null;
  private readonly context: us_socket_context_t | null;
  /** The request has been answered, or the client has disconnected. */
  private ended = false;
  /** uWebSockets.js still holds the response, so it requires a listener for a disconnect. */
  private needsAbortHandler = true;
  private onAborted: (() => void) | null = null;
  private body: IncomingBody | null = null;

  constructor(
    { bodies, turn }: { bodies: BodyBudget; turn: TurnBudget },
    res: HttpResponse,
    req: HttpRequest,
    context: us_socket_context_t | null,
    method: string,
  ) {
    this.bodies = bodies;
    this.turn = turn;
    this.isLate = turn.count();
    this.res = res;
    this.req = req;
    this.context = context;
    this.head = readHead(req);
    this.method = method;
    this.path = req.getUrl();
    this.isHandshake = context !== null && isUpgrade(req);
  }

  query(): string {
    return this.request().getQuery() ?? '';
  }

  header(name: string): string {
    const request = this.request();
    // The head reader still holds this request, because handlers run one after another. Asking the binary
    // costs more.
    return headReader.value(name) ?? request.getHeader(name);
  }

  peerAddress(): string {
    return Buffer.from(this.res.getRemoteAddressAsText()).toString();
  }

  readBody(limits: BodyLimits): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const body = this.bodies.receive(limits, resolve, reject);
      this.body = body;
      this.onAborted = () => body.cut();
      let chunks = 0;
      this.res.onData((chunk, isLast) => {
        chunks += 1;
        if (this.turn.count() && chunks > CHUNKS_AT_ONCE && !isLast) {
          this.res.close();
          return;
        }
        body.add(new Uint8Array(chunk));
        if (!isLast) return;
        this.body = null;
        body.end();
      });
    });
  }

  send(status: number, head: ResponseHeaders, body: ResponseBody, close = false): void {
    if (this.ended) return;
    this.ended = true;
    const isLast = close || this.isLast();
    if (isLast || (this.isLate && this.req)) {
      this.sendLater(status, head, body, isLast);
      return;
    }
    this.needsAbortHandler = false;
    // The connection is corked until the handler returns.
    if (this.req) this.write(status, head, body, false);
    else this.res.cork(() => this.write(status, head, body, false));
  }

  startStream(head: ResponseHeaders, filler: Uint8Array): ResponseStream | null {
    if (this.ended) return null;
    const onEnded = (): void => {
      this.needsAbortHandler = false;
    };
    const stream = new UwsStream(this.res, filler, this.isLast(), onEnded);
    this.ended = true;
    this.onAborted = () => stream.markClosed();
    stream.start(head.block(200));
    return stream;
  }

  whenGone(onGone: () => void): void {
    if (this.ended) onGone();
    else this.onAborted = onGone;
  }

  /**
   * The number of strangers is not limited here: uWebSockets.js does not say which connection a request came
   * on.
   */
  markTrusted(): void {}

  acceptWebSocket(protocol: string, open: (socket: ServerWebSocket) => WebSocketHandlers): void {
    const { req, context } = this;
    if (this.ended || !context) return;
    // A later upgrade would need a cork, at whose end this binary mistakes the upgraded socket for a
    // response.
    if (!req) throw new Error('a WebSocket is accepted before its handler returns');
    this.ended = true;
    this.needsAbortHandler = false;
    const key = this.header('sec-websocket-key');
    const userData: UpgradeData = { upgraded: new UwsWebSocket(open) };
    this.res.upgrade(userData, key, protocol, this.header('sec-websocket-extensions'), context);
  }

  /**
   * Whether the connection ends with this answer. uWebSockets.js takes an empty chunk size for the last
   * chunk, and any two bytes for the line end after a chunk, neither of which can be detected here. A proxy
   * in front might see what follows as part of the body, so it is never read as a request.
   */
  private isLast(): boolean {
    return this.head.isChunked || this.body !== null;
  }

  /**
   * Answers in a later turn, because promises settle while uWebSockets.js is still parsing what has arrived.
   * Meanwhile the response is open, and a connection on which another request follows is closed. This also
   * stops floods of pipelined requests, and delays a client that waits for its answer by a turn.
   */
  private sendLater(status: number, head: ResponseHeaders, body: ResponseBody, close: boolean): void {
    let isOpen = true;
    this.onAborted = () => {
      isOpen = false;
    };
    setImmediate(() => {
      if (!isOpen) return;
      this.needsAbortHandler = false;
      this.res.cork(() => this.write(status, head, body, close));
    });
  }

  /** The handler has returned. Unless it has answered, listens for a disconnect. */
  onHandlerReturned(): void {
    this.req = null;
    if (!this.needsAbortHandler) return;
    // Adding the listener to requests that are answered at once, too, would cost a quarter of all throughput.
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
      const block = head.block(status);
      res.writeStatus(block);
      const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
      const bytes = HEAD_BYTES + block.length + length;
      const corked = this.req ? this.turn.answer(bytes) : bytes;
      if (close || body.length === 0 || (corked <= CORK_BYTES && !isSampled(bytes))) res.end(body, close);
      else this.end(body);
      return;
    }
    // With a length, `endWithoutBody` would not end the response and the process would abort. So the length
    // is sent as a header of our own.
    const length = isData ? null : body.length;
    const full = length === null ? head : head.with('Content-Length', String(length));
    if (close || isSampled(HEAD_BYTES))
      this.endAndClose(full.with('Date', new Date().toUTCString()).block(status));
    else {
      res.writeStatus(full.block(status));
      res.endWithoutBody();
    }
  }

  /**
   * uWebSockets.js does not report whether the connection has taken an answer without a body. So this answer
   * is the last on its connection, which is closed after it. The response stays open, so another request
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
   * Ends the answer once the connection has taken it; the rest is not copied meanwhile. A client that sends
   * its next request before that is not reading, and uWebSockets.js closes its connection.
   */
  private end(body: Uint8Array | string): void {
    const { res } = this;
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    if (res.tryEnd(bytes, bytes.length)[1]) return;
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
  private readonly turn = new TurnBudget();
  private readonly budgets: { bodies: BodyBudget; turn: TurnBudget };

  constructor(options: ServerOptions) {
    this.options = options;
    this.budgets = { bodies: options.bodies, turn: this.turn };
    const { webSocketPaths, maxMessageBytes, maxConnections = Number.POSITIVE_INFINITY, onDefect } = options;
    this.app = uWS.App();
    let connections = 0;
    const count = (res: HttpResponse, change: unknown): void => {
      connections += Number(change);
      if (change === 1 && (connections > maxConnections || areDescriptorsUsed(DESCRIPTORS.acceptRequests)))
        res.close();
    };
    this.app.filter(count);
    for (const path of webSocketPaths) {
      this.app.ws(path, {
        ...webSocketBehavior(maxMessageBytes, this.turn, onDefect),
        upgrade: (res, req, context) => this.serve(res, req, context),
      });
    }
    this.app.get('/*', (res, req) => this.serve(res, req, null, 'GET'));
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
  private serve(
    res: HttpResponse,
    req: HttpRequest,
    context: us_socket_context_t | null,
    method = req.getCaseSensitiveMethod(),
  ): void {
    const exchange = new UwsExchange(this.budgets, res, req, context, method);
    try {
      this.options.handle(exchange);
    } catch (error) {
      this.options.onDefect(error);
      exchange.send(500, NO_HEADERS, '');
    }
    exchange.onHandlerReturned();
  }
}

/** Why uWebSockets.js could not listen, which only node:net reports. */
function listenRefusal(host: string, port: number): Promise<ListenRefusal> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.on('error', (error: NodeJS.ErrnoException) => resolve({ refused: error.code ?? 'EADDRINUSE' }));
    // The port was released meanwhile, or is held in a way that excludes only uWebSockets.js.
    probe.listen({ host, port, exclusive: true }, () =>
      probe.close(() => resolve({ refused: 'EADDRINUSE' })),
    );
  });
}
