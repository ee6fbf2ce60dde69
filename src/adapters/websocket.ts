// WebSockets (the package ws): a client with the shape of the typed client's transport, and the server's side.
import type { Socket as Connection } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

/** The other side, for the front where uWebSockets.js does not load. */
export { type WebSocket, WebSocketServer };

/** What a socket tells: `opened`, messages, `closed`; or `refused` alone, with the answer the server gave instead. */
interface WebSocketListener {
  opened(): void;
  text(message: string): void;
  bytes(message: Uint8Array): void;
  closed(code: number, reason: string): void;
  refused(status: number, body: string): void;
}

interface WebSocketHandle {
  send(message: string | Uint8Array): void;
  close(): void;
}

const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

/** Opens a WebSocket. No promise of its own: `listener` hears of everything, a refusal too. */
export function openWebSocket(
  url: string,
  protocols: string[],
  listener: WebSocketListener,
): WebSocketHandle {
  const socket = new WebSocket(url, protocols, { perMessageDeflate: false, maxPayload: MAX_MESSAGE_BYTES });
  let opened = false;
  let told = false;
  const refuse = (status: number, body: string): void => {
    if (told) return;
    told = true;
    listener.refused(status, body);
  };
  socket.on('open', () => {
    opened = true;
    listener.opened();
  });
  socket.on('message', (data: Buffer, isBinary) =>
    isBinary ? listener.bytes(data) : listener.text(data.toString()),
  );
  socket.on('unexpected-response', (request, response) => {
    let body = '';
    response.setEncoding('utf8');
    response.on('data', (part: string) => {
      body += part;
    });
    // The connection is one that could be used again: nobody else closes it.
    const done = (): void => {
      refuse(response.statusCode ?? 0, body);
      request.socket?.destroy();
    };
    response.on('end', done);
    response.on('close', done);
  });
  // The reason follows in `close`; before the socket is open there is nothing but this.
  socket.on('error', () => {
    if (!opened) refuse(0, '');
  });
  socket.on('close', (code, reason) => {
    if (opened) listener.closed(code, reason.toString());
  });
  return { send: (message) => socket.send(message), close: () => socket.close(1000) };
}

/** How to open a WebSocket on a connection that is there already. */
export interface WebSocketOverOptions {
  connection: Connection;
  /** Path and query. */
  path: string;
  /** `host` among them. */
  headers: Record<string, string>;
  /** Which the server has to agree to; null: whoever opens it sees to that. */
  protocol: string | null;
  maxMessageBytes: number;
}

/**
 * The socket itself, for who needs to hold it back: it is listened to at once, its `error` too. It sends no pong by
 * itself: servers built on golang.org/x/net/websocket end the connection at one.
 */
export function webSocketOver({
  connection,
  path,
  headers,
  protocol,
  maxMessageBytes,
}: WebSocketOverOptions): WebSocket {
  return new WebSocket(`wss://berth.invalid${path}`, protocol === null ? [] : [protocol], {
    createConnection: () => connection,
    headers,
    autoPong: false,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
  });
}
