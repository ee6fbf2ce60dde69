// The HTTP server interface of the front. uws_server.ts and node_server.ts implement it, and pass the same
// tests.
import type { ListenRefusal } from '../../adapters/loopback_listener.ts';
import type { TlsFiles } from '../../adapters/tls_files.ts';
import type { BodyBudget, BodyLimits } from './body_budget.ts';
import type { Forwarder } from './forwarding.ts';
import type { HeadFacts } from './request_head.ts';

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
  [422, 'Unprocessable Content'],
  [500, 'Internal Server Error'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [505, 'HTTP Version Not Supported'],
]);

/** The headers of an answer, created once and sent often. */
export class ResponseHeaders {
  /** Name, value, name, value: the form of `node:http`. */
  readonly pairs: readonly string[];
  private readonly blocks = new Map<number, string>();

  constructor(pairs: readonly string[]) {
    this.pairs = pairs;
  }

  /** These headers followed by `pairs`. */
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

/** A body, or the Content-Length in the answer to a HEAD (null: none). */
export type ResponseBody = Uint8Array | string | { length: number | null };

/** A streamed answer. Bytes that a slow reader has not taken stay in memory: watch `bufferedBytes`. */
export interface ResponseStream {
  /** True until either side ends the stream. */
  readonly isOpen: boolean;
  write(bytes: Uint8Array): void;
  /** An upper bound of the bytes that the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /**
   * If necessary, writes bytes that have no meaning. Called every few seconds, it keeps a blocked connection
   * alive.
   */
  keepAlive(): void;
  /** Called when `bufferedBytes` has fallen to 0. */
  onDrain: (() => void) | null;
  /** Called once, when either side has ended the stream. */
  onClose: (() => void) | null;
  /** Ends the stream after the buffered bytes. */
  end(): void;
  /** Cuts the connection and drops the buffered bytes. */
  destroy(): void;
}

/** A WebSocket, open until its handler `close` is called. */
export interface ServerWebSocket {
  /** Sends a string as a text frame, bytes as a binary one. */
  send(data: string | Uint8Array): void;
  /** Bytes that the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /** Sends a close frame; the handler `close` is called later. */
  close(code: number, reason?: string): void;
}

export interface WebSocketHandlers {
  /** `data` belongs to the receiver. */
  message(data: Uint8Array, binary: boolean): void;
  /** `bufferedBytes` has fallen. */
  drain(): void;
  /** Called once; the socket must not be used afterwards. */
  close(code: number): void;
}

/**
 * One request and its answer. The methods that read the request, and `acceptWebSocket`, may be called only
 * until the handler returns, because uWebSockets.js then frees the request. One call of `send`, `startStream`
 * or `acceptWebSocket` answers it; all three do nothing when the client has disconnected.
 */
export interface HttpExchange {
  /** In upper case: `GET`, never `get`. */
  readonly method: string;
  /** Without the query, still percent-encoded. */
  readonly path: string;
  /** Whether the request asks for a WebSocket on a path that has one. */
  readonly isHandshake: boolean;
  /** The body according to the headers, and whether the request is ambiguous. */
  readonly head: HeadFacts;
  /** Without the question mark; empty when absent. */
  query(): string;
  /** The first header with that (lower-case) name; empty when absent. */
  header(name: string): string;
  /** The peer's IP address. */
  peerAddress(): string;
  /**
   * Rejects with payload_too_large, daemon_busy or request_timeout; the latter also when the client has
   * disconnected.
   */
  readBody(limits: BodyLimits): Promise<Uint8Array>;
  /**
   * `close`: closes the connection after this answer, and handles nothing that follows on it. So does every
   * answer that comes before the end of a body that is being read.
   */
  send(status: number, headers: ResponseHeaders, body: ResponseBody, close?: boolean): void;
  /**
   * `keepAliveBytes` must be meaningless to the client anywhere in the stream. null: the client has
   * disconnected.
   */
  startStream(headers: ResponseHeaders, keepAliveBytes: Uint8Array): ResponseStream | null;
  /** Calls `onGone` when the client disconnects before its answer has begun; at once when it has. */
  whenGone(onGone: () => void): void;
  /** The client has presented a valid token, so its connection no longer counts as a stranger's. */
  markTrusted(): void;
  /** Completes the handshake with `protocol` as the chosen subprotocol. */
  acceptWebSocket(protocol: string, open: (socket: ServerWebSocket) => WebSocketHandlers): void;
}

export interface ServerOptions {
  /** Called once per request and per WebSocket handshake. An exception is answered with a bare 500. */
  handle: (exchange: HttpExchange) => void;
  /**
   * node:http only: called before `handle`, which waits for it, with the body unread. null: nothing to wait
   * for. Resolves with false if the request has already been answered. Never rejects.
   */
  prepare?: (exchange: HttpExchange) => Promise<boolean> | null;
  /**
   * Paths where a WebSocket may be opened, with `:name` for one segment, such as `/v1/agents/:name/attach`.
   */
  webSocketPaths: readonly string[];
  /** Largest message of a WebSocket client, in bytes. */
  maxMessageBytes: number;
  /** The memory of all bodies that are being received. Servers of one process share it. */
  bodies: BodyBudget;
  /** The most connections that are open at once; further ones are closed at once. Absent: any number. */
  maxConnections?: number;
  /** node:http only: the most open connections not marked as trusted; above it, the oldest one is closed. */
  maxStrangers?: number;
  /** node:http only: forwards requests to another Berth; absent: none are. */
  forwarder?: Forwarder;
  /** node:http only: PEM files; absent: plain HTTP. */
  tls?: TlsFiles;
  /** Called with exceptions of `handle` and of WebSocket handlers. */
  onDefect: (error: unknown) => void;
}

export interface HttpServer {
  /** The name in the version endpoint and in the log. */
  readonly name: 'uWebSockets.js' | 'node:http';
  /** Listens exclusively on one address; port 0: any free port. May be called once per address. */
  listen(host: string, port: number): Promise<{ port: number } | ListenRefusal>;
  /** Stops accepting connections; open ones continue. */
  stopListening(): void;
  /** Cuts every connection. Afterwards the server no longer keeps the event loop alive. */
  close(): void;
}

/** Creates a server that does not listen yet. */
export type CreateServer = (options: ServerOptions) => HttpServer;
