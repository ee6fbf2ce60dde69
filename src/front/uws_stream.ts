// What goes on after the head, on uWebSockets.js: answers that are written bit by bit, and WebSockets.
import type { HttpResponse, WebSocket, WebSocketBehavior } from 'uWebSockets.js';
import { KIB } from '../limits.ts';
import type { Socket, SocketEvents, Stream } from './server.ts';

/** After a blocked write this much is given at a time, so that little is out of our sight. */
const SLICE_BYTES = 64 * KIB;

/**
 * Once `write` has returned false, uWebSockets.js would buffer without bound: from then on it is queued here until
 * `onWritable`. A write smaller than its cork buffer may be blocked and still return true; the next one tells.
 */
export class UwsStream implements Stream {
  waiting = 0;
  onDrain: (() => void) | null = null;
  onClose: (() => void) | null = null;
  private readonly res: HttpResponse;
  private readonly filler: Uint8Array;
  private readonly over: () => void;
  private queue: Uint8Array[] = [];
  private blocked = false;
  private closed = false;
  private next: Uint8Array = new Uint8Array();
  private taken = true;

  /** `over` is called when we end it: the response may not be touched any more. */
  constructor(res: HttpResponse, filler: Uint8Array, over: () => void) {
    this.res = res;
    this.filler = filler;
    this.over = over;
  }

  /** Sends status and headers with the first write. */
  begin(block: string): void {
    this.res.onWritable(() => this.writable());
    this.res.cork(() => this.res.writeStatus(block));
  }

  write(bytes: Uint8Array): void {
    if (this.closed) return;
    if (this.blocked) this.queue.push(bytes);
    else if (this.push(bytes)) return;
    this.waiting += bytes.length;
  }

  /** It closes a blocked connection after ten seconds without a write: a filler says that we know. */
  touch(): void {
    if (!this.closed && this.push(this.filler) && this.waiting > 0) this.writable();
  }

  end(): void {
    if (this.closed) return;
    const rest = this.queue;
    this.gone();
    this.over();
    this.res.cork(() => {
      for (const bytes of rest) this.res.write(bytes);
      this.res.end();
    });
  }

  destroy(): void {
    if (this.closed) return;
    this.gone();
    this.over();
    this.res.close();
  }

  gone(): void {
    if (this.closed) return;
    this.closed = true;
    this.queue = [];
    this.waiting = 0;
    this.onClose?.();
  }

  // One closure for the life of the stream instead of one per write: fan-outs write a million times.
  private readonly corked = (): void => {
    this.taken = this.res.write(this.next);
  };

  /** Whether all that was written so far has been taken. */
  private push(bytes: Uint8Array): boolean {
    this.next = bytes;
    this.res.cork(this.corked);
    this.blocked = !this.taken;
    return this.taken;
  }

  /** The connection takes something again. Writing is also what makes uWebSockets.js empty its own buffer. */
  private writable(): boolean {
    while (!this.closed) {
      const bytes = this.queue.length > 0 ? this.slice() : this.filler;
      if (!this.push(bytes)) return false;
      this.waiting = this.queue.reduce((sum, part) => sum + part.length, 0);
      if (this.queue.length > 0) continue;
      this.onDrain?.();
      return true;
    }
    return true;
  }

  /** The next queued bytes, at least one whole write and up to `SLICE_BYTES`. */
  private slice(): Uint8Array {
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
export interface Holder {
  open: (socket: Socket) => SocketEvents;
  events: SocketEvents | null;
}
interface Carried {
  holder: Holder;
}

class UwsSocket implements Socket {
  /** null once it is closed: touching it then would throw. */
  private ws: WebSocket<Carried> | null;

  constructor(ws: WebSocket<Carried>) {
    this.ws = ws;
  }

  get waiting(): number {
    return this.ws?.getBufferedAmount() ?? 0;
  }

  send(data: string | Uint8Array): void {
    const { ws } = this;
    ws?.cork(() => ws.send(data, typeof data !== 'string'));
  }

  close(code: number, reason = ''): void {
    this.ws?.end(code, reason);
  }

  forget(): void {
    this.ws = null;
  }
}

/** `maxBackpressure: 0`: with its default messages to a slow reader are dropped without a word; callers watch `waiting`. */
export function webSocketBehavior(
  messageBytes: number,
  onDefect: (error: unknown) => void,
): WebSocketBehavior<Carried> {
  const sockets = new WeakMap<Holder, UwsSocket>();
  const guarded = (ws: WebSocket<Carried>, tell: (events: SocketEvents) => void): void => {
    try {
      const { events } = ws.getUserData().holder;
      if (events) tell(events);
    } catch (error) {
      onDefect(error);
      ws.end(1011);
    }
  };
  return {
    maxPayloadLength: messageBytes,
    maxBackpressure: 0,
    idleTimeout: 120,
    sendPingsAutomatically: true,
    open: (ws) => {
      const { holder } = ws.getUserData();
      const socket = new UwsSocket(ws);
      sockets.set(holder, socket);
      try {
        holder.events = holder.open(socket);
      } catch (error) {
        onDefect(error);
        ws.end(1011);
      }
    },
    message: (ws, message, isBinary) =>
      guarded(ws, (events) => events.message(new Uint8Array(message.slice(0)), isBinary)),
    drain: (ws) => guarded(ws, (events) => events.drain()),
    close: (ws, code) => {
      const { holder } = ws.getUserData();
      sockets.get(holder)?.forget();
      try {
        holder.events?.close(code);
      } catch (error) {
        onDefect(error);
      }
    },
  };
}
