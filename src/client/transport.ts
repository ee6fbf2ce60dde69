// How bytes get to a daemon and back: one interface, with one implementation for Node and one for browsers.

export interface HttpRequest {
  method: string;
  url: string;
  headers: readonly (readonly [name: string, value: string])[];
  body?: string;
  signal?: AbortSignal;
  /** The answer will be read as one text: it may be waited for as a whole. */
  isBuffered?: boolean;
}

export interface HttpAnswer {
  status: number;
  header(name: string): string | null;
  /** The whole body, decoded. */
  text(): Promise<string>;
  /** The body as it arrives, decoded; ending the loop ends the connection. */
  chunks(): AsyncIterable<string>;
}

/** What a WebSocket tells; `closed` is the last. */
export interface ClientWebSocketListener {
  opened(): void;
  text(message: string): void;
  bytes(message: Uint8Array): void;
  closed(code: number, reason: string): void;
  /**
   * The server refused the upgrade (a browser does not say with what: status 0). `closed` does not follow.
   */
  refused(status: number, body: string): void;
}

export interface ClientWebSocket {
  send(message: string | Uint8Array): void;
  close(): void;
}

export interface Transport {
  /** Resolves with the head of the answer. Rejects with a BerthError `unreachable` when there is none. */
  request(request: HttpRequest): Promise<HttpAnswer>;
  /** Opens a WebSocket; `listener` hears everything about it. */
  openWebSocket(
    url: string,
    protocols: string[],
    listener: ClientWebSocketListener,
  ): Promise<ClientWebSocket>;
}
