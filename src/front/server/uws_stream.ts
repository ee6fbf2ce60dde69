// What goes on after the head, on uWebSockets.js: answers that are written bit by bit, and WebSockets.
import type { HttpResponse, WebSocket, WebSocketBehavior } from 'uWebSockets.js';
import { KIB } from '../../settings/limits.ts';
import type { ResponseStream, ServerWebSocket, WebSocketHandlers } from './http_server.ts';

/** After a blocked write this much is given at a time, so that little is out of our sight. */
const SLICE_BYTES = 64 * KIB;

/**
 * Once `write` has returned false, uWebSockets.js would buffer without bound: from then on it is queued here until
 * `onWritable`. A write smaller than its cork buffer may be blocked and still return true; the next one tells.
 */
export class UwsStream implements ResponseStream {
  bufferedBytes = 0;
  onDrain: (() => void) | null = null;
  onClose: (() => void) | null = null;
  private readonly res: HttpResponse;
  private readonly keepAliveBytes: Uint8Array;
  private readonly onOver: () => void;
  private queue: Uint8Array[] = [];
  private blocked = false;
  private closed = false;
  private nextWrite: Uint8Array = new Uint8Array();
  private wasAccepted = true;

  /** `over` is called when we end it: the response may not be touched any more. */
  constructor(res: HttpResponse, keepAliveBytes: Uint8Array, onOver: () => void) {
    this.res = res;
    this.keepAliveBytes = keepAliveBytes;
    this.onOver = onOver;
  }

  /** Sends status and headers with the first write. */
  start(statusAndHeaders: string): void {
    this.res.onWritable(() => this.drainQueue());
    this.res.cork(() => this.res.writeStatus(statusAndHeaders));
  }

  write(bytes: Uint8Array): void {
    if (this.closed) return;
    if (this.blocked) this.queue.push(bytes);
    else if (this.tryWrite(bytes)) return;
    this.bufferedBytes += bytes.length;
  }

  /** It closes a blocked connection after ten seconds without a write: a filler says that we know. */
  keepAlive(): void {
    if (!this.closed && this.tryWrite(this.keepAliveBytes) && this.bufferedBytes > 0) this.drainQueue();
  }

  end(): void {
    if (this.closed) return;
    const rest = this.queue;
    this.markClosed();
    this.onOver();
    this.res.cork(() => {
      for (const bytes of rest) this.res.write(bytes);
      this.res.end();
    });
  }

  destroy(): void {
    if (this.closed) return;
    this.markClosed();
    this.onOver();
    this.res.close();
  }

  markClosed(): void {
    if (this.closed) return;
    this.closed = true;
    this.queue = [];
    this.bufferedBytes = 0;
    this.onClose?.();
  }

  // One closure for the life of the stream instead of one per write: fan-outs write a million times.
  private readonly writeCorked = (): void => {
    this.wasAccepted = this.res.write(this.nextWrite);
  };

  /** Whether all that was written so far has been taken. */
  private tryWrite(bytes: Uint8Array): boolean {
    this.nextWrite = bytes;
    this.res.cork(this.writeCorked);
    this.blocked = !this.wasAccepted;
    return this.wasAccepted;
  }

  /** The connection takes something again. Writing is also what makes uWebSockets.js empty its own buffer. */
  private drainQueue(): boolean {
    while (!this.closed) {
      const bytes = this.queue.length > 0 ? this.takeSlice() : this.keepAliveBytes;
      if (!this.tryWrite(bytes)) return false;
      this.bufferedBytes = this.queue.reduce((sum, part) => sum + part.length, 0);
      if (this.queue.length > 0) continue;
      this.onDrain?.();
      return true;
    }
    return true;
  }

  /** The next queued bytes, at least one whole write and up to `SLICE_BYTES`. */
  private takeSlice(): Uint8Array {
    let count = 1;
    let size = this.queue[0]?.length ?? 0;
    while (count < this.queue.length && size + (this.queue[count]?.length ?? 0) <= SLICE_BYTES) {
      size += this.queue[count]?.length ?? 0;
      count += 1;
    }
    const parts = this.queue.splice(0, count);
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }
}

/** Travels through the handshake: what is to be told, once the socket is open. */
export interface UpgradeContext {
  open: (socket: ServerWebSocket) => WebSocketHandlers;
  events: WebSocketHandlers | null;
}
export interface WebSocketUserData {
  upgradeContext: UpgradeContext;
}

class UwsWebSocket implements ServerWebSocket {
  /** null once it is closed: touching it then would throw. */
  private ws: WebSocket<WebSocketUserData> | null;

  constructor(ws: WebSocket<WebSocketUserData>) {
    this.ws = ws;
  }

  get bufferedBytes(): number {
    return this.ws?.getBufferedAmount() ?? 0;
  }

  send(data: string | Uint8Array): void {
    const { ws } = this;
    ws?.cork(() => ws.send(data, typeof data !== 'string'));
  }

  close(code: number, reason = ''): void {
    this.ws?.end(code, reason);
  }

  markClosed(): void {
    this.ws = null;
  }
}

/** `maxBackpressure: 0`: with its default messages to a slow reader are dropped without a word; callers watch `waiting`. */
export function webSocketBehavior(
  maxMessageBytes: number,
  onDefect: (error: unknown) => void,
): WebSocketBehavior<WebSocketUserData> {
  const sockets = new WeakMap<UpgradeContext, UwsWebSocket>();
  const guarded = (ws: WebSocket<WebSocketUserData>, tell: (events: WebSocketHandlers) => void): void => {
    try {
      const { events } = ws.getUserData().upgradeContext;
      if (events) tell(events);
    } catch (error) {
      onDefect(error);
      ws.end(1011);
    }
  };
  return {
    maxPayloadLength: maxMessageBytes,
    maxBackpressure: 0,
    idleTimeout: 120,
    sendPingsAutomatically: true,
    open: (ws) => {
      const { upgradeContext } = ws.getUserData();
      const socket = new UwsWebSocket(ws);
      sockets.set(upgradeContext, socket);
      try {
        upgradeContext.events = upgradeContext.open(socket);
      } catch (error) {
        onDefect(error);
        ws.end(1011);
      }
    },
    message: (ws, message, isBinary) =>
      guarded(ws, (events) => events.message(new Uint8Array(message.slice(0)), isBinary)),
    drain: (ws) => guarded(ws, (events) => events.drain()),
    close: (ws, code) => {
      const { upgradeContext } = ws.getUserData();
      sockets.get(upgradeContext)?.markClosed();
      try {
        upgradeContext.events?.close(code);
      } catch (error) {
        onDefect(error);
      }
    },
  };
}
