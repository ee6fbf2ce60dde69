// Port forwarding where SPDY is not to be had, not even in a WebSocket: one WebSocket per connection, `v4.channel.k8s.io`.
// Two channels, for data and for errors; on each the first message begins with the port, little endian. There is no way to
// half-close.
import { TETHER } from '../../limits.ts';
import { type WebSocket, webSocketOver } from '../websocket.ts';
import { refusal } from './upgrade.ts';
import type { WarmDoor } from './warm.ts';
import {
  errorSetback,
  forwardPath,
  type PodName,
  podSetback,
  type Setback,
  type Stream,
  type StreamEvents,
  said,
} from './way.ts';

/** WebSocket.OPEN. */
const OPEN = 1;
const DATA = 0;
const ERRORS = 1;
const ERROR_BYTES = 4 * 1024;
/** Servers send 32 KiB at most. */
const MESSAGE_BYTES = 1024 * 1024;

/** Opens a stream to `port` of the pod on a WebSocket of its own. Nothing is told before this has returned. */
export function openOverWebSocket(door: WarmDoor, pod: PodName, port: number, events: StreamEvents): Stream {
  const forward = new WebSocketForward(port, events);
  void forward.dial(door, pod);
  return forward;
}

class WebSocketForward implements Stream {
  private readonly port: number;
  private events: StreamEvents | null;
  private socket: WebSocket | null = null;
  private readonly stop = new AbortController();
  /** Bytes of the port still to come, per channel. */
  private readonly portBytes = [2, 2];
  private seen = false;
  private isFull = false;
  private error = '';
  private timer: NodeJS.Timeout | null = null;
  private alive: NodeJS.Timeout | undefined;

  constructor(port: number, events: StreamEvents) {
    this.port = port;
    this.events = events;
  }

  async dial(warm: WarmDoor, pod: PodName): Promise<void> {
    const signal = AbortSignal.any([this.stop.signal, AbortSignal.timeout(TETHER.dialMs)]);
    try {
      const { door } = warm;
      const headers = { ...door.headers(), host: door.host };
      const connection = await warm.connect(signal);
      if (!this.events) {
        connection.destroy();
        return;
      }
      const path = `${forwardPath(door, pod)}?ports=${this.port}`;
      const protocol = 'v4.channel.k8s.io';
      this.listen(webSocketOver({ connection, path, headers, protocol, messageBytes: MESSAGE_BYTES }));
    } catch (error) {
      this.fail(errorSetback(error));
    }
  }

  private listen(socket: WebSocket): void {
    this.socket = socket;
    const lost: Setback = { code: 'lost', text: 'the API server closed the connection' };
    this.timer = setTimeout(
      () => this.fail({ code: 'unreachable', text: 'the API server does not answer' }),
      TETHER.dialMs,
    );
    socket.on('open', () => {
      this.stopTimer();
      // Nodes close what is idle for hours and proxies much sooner; an empty message counts for both and means nothing.
      this.alive = setInterval(
        () => socket.bufferedAmount === 0 && socket.send(Buffer.alloc(0)),
        TETHER.pingMs,
      );
      this.events?.opened();
    });
    socket.on('message', (message: Buffer, isBinary) => {
      const wrong = isBinary ? this.message(message) : 'a text message';
      if (wrong) this.fail({ code: 'hostile', text: `the server broke the protocol: ${wrong}` });
    });
    socket.on(
      'unexpected-response',
      (_, response) => void refusal(response).then((setback) => this.fail(setback)),
    );
    socket.on('error', (error) => this.fail({ ...lost, text: said(error.message) }));
    socket.on('close', (code) => {
      if (this.error !== '') this.fail(podSetback(this.error, this.seen));
      else if (code === 1006) this.fail(lost);
      else this.finish()?.ended();
    });
  }

  /** The answer names what no server may send. */
  private message(message: Buffer): string | null {
    const channel = message[0];
    if (channel === undefined) return 'an empty message';
    if (channel !== DATA && channel !== ERRORS) return `channel ${channel}`;
    let at = 1;
    for (; at < message.length && (this.portBytes[channel] ?? 0) > 0; at += 1) {
      const shift = (2 - (this.portBytes[channel] ?? 0)) * 8;
      if (message[at] !== ((this.port >> shift) & 0xff)) return 'another port than the one asked for';
      this.portBytes[channel] = (this.portBytes[channel] ?? 0) - 1;
    }
    if (at === message.length) return null;
    if (channel === DATA) {
      this.seen = true;
      this.events?.data(message.subarray(at));
      return null;
    }
    if (this.error.length < ERROR_BYTES) this.error += message.toString('utf8', at);
    // The end follows the text; should it not, the text is enough.
    this.timer ??= setTimeout(() => this.fail(podSetback(this.error, this.seen)), TETHER.errorMs);
    return null;
  }

  write(bytes: Buffer): boolean {
    const socket = this.socket;
    if (!socket) return true;
    const message = Buffer.allocUnsafe(bytes.length + 1);
    message[0] = DATA;
    bytes.copy(message, 1);
    socket.send(message, () => {
      if (!this.isFull || socket.bufferedAmount > TETHER.bufferBytes / 2) return;
      this.isFull = false;
      this.events?.drained();
    });
    this.isFull ||= socket.bufferedAmount > TETHER.bufferBytes;
    return !this.isFull;
  }

  end(): void {
    this.socket?.close(1000);
    this.timer ??= setTimeout(() => this.finish()?.ended(), TETHER.errorMs);
  }

  pause(): void {
    this.socket?.pause();
  }

  resume(): void {
    this.socket?.resume();
  }

  leave(): void {
    const socket = this.socket;
    this.events = null;
    if (socket?.readyState !== OPEN) {
      this.finish();
      return;
    }
    // In order behind what is still to be sent; what comes meanwhile is dropped.
    socket.resume();
    socket.close(1000);
    this.stopTimer();
    this.timer = setTimeout(() => this.finish(), TETHER.errorMs);
  }

  private fail(setback: Setback): void {
    this.finish()?.failed(setback);
  }

  /** Lets go of everything; whoever gets the listener tells it the end. */
  private finish(): StreamEvents | null {
    const events = this.events;
    this.events = null;
    this.stopTimer();
    clearInterval(this.alive);
    this.stop.abort();
    this.socket?.terminate();
    return events;
  }

  private stopTimer(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }
}
