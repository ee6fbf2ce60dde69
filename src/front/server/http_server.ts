// What an HTTP server is to the front. Two files implement it, uws.ts and node.ts, and the same tests run against both.

const REASONS: ReadonlyMap<number, string> = new Map([
  [200, 'OK'],
  [201, 'Created'],
  [202, 'Accepted'],
  [204, 'No Content'],
  [304, 'Not Modified'],
  [400, 'Bad Request'],
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'Not Found'],
  [405, 'Method Not Allowed'],
  [408, 'Request Timeout'],
  [409, 'Conflict'],
  [413, 'Payload Too Large'],
  [415, 'Unsupported Media Type'],
  [500, 'Internal Server Error'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [505, 'HTTP Version Not Supported'],
]);

/** The headers of an answer, made once and sent often: each server keeps them in the form it sends. */
export class ResponseHeaders {
  /** Name, value, name, value: as `node:http` takes them. */
  readonly pairs: readonly string[];
  private readonly blocks = new Map<number, string>();

  constructor(pairs: readonly string[]) {
    this.pairs = pairs;
  }

  with(...pairs: string[]): ResponseHeaders {
    return new ResponseHeaders([...this.pairs, ...pairs]);
  }

  /** Status and headers as one text: one call into uWebSockets.js instead of one per header. */
  block(status: number): string {
    let block = this.blocks.get(status);
    if (block === undefined) {
      block = `${status} ${REASONS.get(status) ?? 'Unknown'}`;
      for (let index = 0; index < this.pairs.length; index += 2)
        block += `\r\n${this.pairs[index]}: ${this.pairs[index + 1]}`;
      this.blocks.set(status, block);
    }
    return block;
  }
}

/** A body, or the length that a HEAD is told (null: it has none to tell). */
export type ResponseBody = Uint8Array | string | { length: number | null };

export interface BodyLimits {
  bytes: number;
  /** Milliseconds after the head within which the body must be complete. */
  ms: number;
}

/** An answer that goes on. What a slow reader has not taken yet waits in memory: watch `waiting`. */
export interface ResponseStream {
  write(bytes: Uint8Array): void;
  /** An upper bound of the bytes that the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /** Writes the filler if nothing was written lately. Called every few seconds it keeps a blocked connection alive. */
  keepAlive(): void;
  /** Called when `waiting` has fallen to nothing after it had grown. */
  onDrain: (() => void) | null;
  /** Called once, when the reader or either side has ended it. */
  onClose: (() => void) | null;
  /** Ends it in order. */
  end(): void;
  /** Cuts the connection: what waits is dropped. */
  destroy(): void;
}

/** A WebSocket, open from `accept` until its `close`. */
export interface ServerWebSocket {
  /** A string goes as a text frame, bytes as a binary one. */
  send(data: string | Uint8Array): void;
  /** Bytes that the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /** Sends a close frame; `events.close` follows. */
  close(code: number, reason?: string): void;
}

export interface WebSocketHandlers {
  /** `data` belongs to the receiver. */
  message(data: Uint8Array, binary: boolean): void;
  /** `waiting` has fallen. */
  drain(): void;
  /** Once; the socket may not be used any more. */
  close(code: number): void;
}

/**
 * One request and its answer. `path` and `method` stay; `query`, `header`, `count`, `peer`, `body` and `accept` may be
 * called only until the handler returns (uWebSockets.js takes the request away then). Exactly one of `send`, `stream` and `accept`
 * ends it; all of them do nothing when the client has gone.
 */
export interface HttpExchange {
  /** As sent: `GET`, never `get`. */
  readonly method: string;
  /** Without the query, still percent-encoded. */
  readonly path: string;
  /** Whether this asks for a WebSocket on a path that has one. */
  readonly isHandshake: boolean;
  /** Without the question mark; empty when there is none. */
  query(): string;
  /** The first header of that (lower-case) name; empty when there is none. */
  header(name: string): string;
  /** How often that header came. */
  countHeader(name: string): number;
  /** The address of the peer as text. */
  peerAddress(): string;
  /** Rejects with payload_too_large or request_timeout; the latter also when the client has gone. */
  readBody(limits: BodyLimits): Promise<Uint8Array>;
  /** `close`: the connection ends with it. */
  send(status: number, headers: ResponseHeaders, body: ResponseBody, close?: boolean): void;
  /** `filler` may be written at any time without meaning, to keep a blocked connection alive. null: the client has gone. */
  startStream(headers: ResponseHeaders, keepAliveBytes: Uint8Array): ResponseStream | null;
  /** Completes the handshake, with `protocol` as the chosen subprotocol. */
  acceptWebSocket(protocol: string, open: (socket: ServerWebSocket) => WebSocketHandlers): void;
}

export interface ServerOptions {
  /** Called once per request, also for a WebSocket's handshake. What it throws is answered with a bare 500. */
  handle: (exchange: HttpExchange) => void;
  /** Paths where a WebSocket may be opened, with `:name` for one segment, such as `/v1/agents/:name/attach`. */
  webSocketPaths: readonly string[];
  /** The largest message a WebSocket may send us, in bytes. */
  maxMessageBytes: number;
  /** Files in PEM; absent: plain HTTP. */
  tls?: { cert: string; key: string };
  /** Told of what `handle` threw and of other defects. */
  onDefect: (error: unknown) => void;
}

/** Why an address could not be listened on: an errno name such as EADDRINUSE. */
export interface ListenRefusal {
  refused: string;
}

export interface HttpServer {
  /** What the version endpoint and the log call it. */
  readonly name: 'uWebSockets.js' | 'node:http';
  /** Listens on one address, exclusively; port 0: any free one. May be called once per address. */
  listen(host: string, port: number): Promise<{ port: number } | ListenRefusal>;
  /** Accepts nothing more; what is open goes on. */
  stopListening(): void;
  /** Cuts every connection. After it the server holds nothing of the event loop. */
  close(): void;
}

export type CreateServer = (options: ServerOptions) => HttpServer;
