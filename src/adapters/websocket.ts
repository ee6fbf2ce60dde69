// WebSockets (the package ws): a client with the shape of the typed client's transport, and the server's
// side.
import type { Socket as Connection } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

/** The server's side, for the front where uWebSockets.js does not load. */
export { type WebSocket, WebSocketServer };

/** Events of a socket: `opened`, messages, `closed`; or only `refused`, with the answer of the server. */
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
/** For the answer that refuses an upgrade; the daemon's errors are smaller. */
const MAX_REFUSAL_CHARS = 64 * 1024;

/** Opens a WebSocket, on `connection` if given. `listener` gets all events, including a refusal. */
export function openWebSocket(
  url: string,
  protocols: string[],
  connection: Connection | null,
  listener: WebSocketListener,
): WebSocketHandle {
  const socket = new WebSocket(url, protocols, {
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    ...(connection ? { createConnection: () => connection } : {}),
  });
  let isOpened = false;
  let isRefused = false;
  const refuse = (status: number, body: string): void => {
    if (isRefused) return;
    isRefused = true;
    listener.refused(status, body);
  };
  socket.on('open', () => {
    isOpened = true;
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
      if (body.length > MAX_REFUSAL_CHARS) done();
    });
    // The connection would be kept for reuse, so nothing else closes it.
    const done = (): void => {
      refuse(response.statusCode ?? 0, body);
      request.socket?.destroy();
    };
    response.on('end', done);
    response.on('close', done);
  });
  // The reason follows in `close`; before the socket is open this is the only event.
  socket.on('error', () => {
    if (!isOpened) refuse(0, '');
  });
  socket.on('close', (code, reason) => {
    if (isOpened) listener.closed(code, reason.toString());
  });
  return { send: (message) => socket.send(message), close: () => socket.close(1000) };
}

/** How to open a WebSocket on an existing connection. */
export interface WebSocketOverOptions {
  connection: Connection;
  /** Path and query. */
  path: string;
  /** With `host`. */
  headers: Record<string, string>;
  /** The protocol that the server must select; null: the caller checks that. */
  protocol: string | null;
  maxMessageBytes: number;
}

/**
 * Leaves bytes unmasked in effect, because masking costs both sides. Masks keep a page from writing what a
 * proxy would take for HTTP; here no page chooses what is sent, and no proxy sees into TLS.
 */
const zeroMask = (mask: Buffer): void => void mask.fill(0);

/**
 * The socket itself, for callers that pause it. They must add listeners at once, also for `error`. It sends
 * no pongs by itself: servers built on golang.org/x/net/websocket close the connection on one.
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
    generateMask: zeroMask,
    maxPayload: maxMessageBytes,
  });
}

/** How to dial a WebSocket. */
export interface WebSocketDial {
  url: string;
  protocol: string;
  headers: Record<string, string>;
  maxMessageBytes: number;
  timeoutMs: number;
}

/**
 * Dials, and resolves with the open socket. Rejects with what the server or network says, and after
 * `timeoutMs`, even if data keeps arriving that is not an answer.
 */
export function dialWebSocket(options: WebSocketDial): Promise<WebSocket> {
  const socket = new WebSocket(options.url, [options.protocol], {
    headers: options.headers,
    perMessageDeflate: false,
    generateMask: zeroMask,
    maxPayload: options.maxMessageBytes,
  });
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void => {
      clearTimeout(late);
      reject(error);
    };
    const late = setTimeout(() => {
      reject(new Error(`no answer in ${options.timeoutMs} ms`));
      socket.terminate();
    }, options.timeoutMs);
    socket.on('error', failed);
    socket.once('open', () => {
      clearTimeout(late);
      socket.off('error', failed);
      resolve(socket);
    });
  });
}
