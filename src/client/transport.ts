// The connection to a daemon: one interface, with one implementation for Node and one for browsers.
import type { Access } from './prove_server.ts';

export interface HttpRequest {
  method: string;
  url: string;
  headers: readonly (readonly [name: string, value: string])[];
  body?: string;
  signal?: AbortSignal;
  /** The credentials to send once the server has proven itself; null: none. */
  access: Access | null;
  /** The answer will be read as one text, so it may be buffered. */
  isBuffered?: boolean;
}

export interface HttpAnswer {
  status: number;
  header(name: string): string | null;
  /** The whole body, decoded. */
  text(): Promise<string>;
  /** The body as it arrives, decoded. Leaving the loop closes the connection. */
  chunks(): AsyncIterable<string>;
}

/** The events of a WebSocket; `closed` is the last. */
export interface ClientWebSocketListener {
  opened(): void;
  text(message: string): void;
  bytes(message: Uint8Array): void;
  closed(code: number, reason: string): void;
  /** The server refused the upgrade. Browsers hide the status, which is 0 then. `closed` does not follow. */
  refused(status: number, body: string): void;
}

export interface ClientWebSocket {
  /** Drops the message when the connection is closing or closed. */
  send(message: string | Uint8Array): void;
  close(): void;
}

/** A WebSocket to open. */
export interface WebSocketRequest {
  /** http: or https: */
  url: string;
  /** The protocols to offer, one of which may carry the bearer; null: there is none. */
  protocols: (bearer: string | null) => string[];
  access: Access | null;
  /** The deadline of the server's proof, in milliseconds; infinite: none. */
  deadlineMs: number;
}

export interface Transport {
  /**
   * Resolves with the head of the answer. Rejects with a BerthError: `unreachable` when there is no answer,
   * `unproven` when the server does not prove itself.
   */
  request(request: HttpRequest): Promise<HttpAnswer>;
  /** Opens a WebSocket; `listener` receives all its events. */
  openWebSocket(request: WebSocketRequest, listener: ClientWebSocketListener): Promise<ClientWebSocket>;
}
