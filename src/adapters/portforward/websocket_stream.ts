// Port forwarding where SPDY is not to be had, not even in a WebSocket: one WebSocket per connection, `v4.channel.k8s.io`.
// Two channels, for data and for errors; on each the first message begins with the port, little endian. There is no way to
// half-close.
import { TETHER } from '../../settings/limits.ts';
import { type WebSocket, webSocketOver } from '../websocket.ts';
import type { SpareConnection } from './spare_connection.ts';
import { upgradeError } from './spdy_dialer.ts';
import {
  dialError,
  errorLine,
  type ForwardError,
  type ForwardStream,
  type ForwardStreamEvents,
  forwardPath,
  type PodName,
  podError,
} from './transport.ts';

/** WebSocket.OPEN. */
const OPEN = 1;
const DATA_CHANNEL = 0;
const ERROR_CHANNEL = 1;
const MAX_ERROR_BYTES = 4 * 1024;
/** Servers send 32 KiB at most. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Opens a stream to `port` of the pod on a WebSocket of its own. Nothing is told before this has returned. */
export function openWebSocketStream(
  spareConnection: SpareConnection,
  pod: PodName,
  port: number,
  events: ForwardStreamEvents,
): ForwardStream {
  const forward = new WebSocketStream(port, events);
  void forward.dial(spareConnection, pod);
  return forward;
}

class WebSocketStream implements ForwardStream {
  private readonly port: number;
  private events: ForwardStreamEvents | null;
  private socket: WebSocket | null = null;
  private readonly abort = new AbortController();
  /** Bytes of the port still to come, per channel. */
  private readonly missingPortBytes = [2, 2];
  private hasReceivedData = false;
  private isFull = false;
  private errorText = '';
  private timer: NodeJS.Timeout | null = null;
  private keepAliveTimer: NodeJS.Timeout | undefined;

  constructor(port: number, events: ForwardStreamEvents) {
    this.port = port;
    this.events = events;
  }

  async dial(spareConnection: SpareConnection, pod: PodName): Promise<void> {
    const signal = AbortSignal.any([this.abort.signal, AbortSignal.timeout(TETHER.dialTimeoutMs)]);
    try {
      const { dialer } = spareConnection;
      const headers = { ...dialer.headers(), host: dialer.host };
      const connection = await spareConnection.connect(signal);
      if (!this.events) {
        connection.destroy();
        return;
      }
      const path = `${forwardPath(dialer, pod)}?ports=${this.port}`;
      const protocol = 'v4.channel.k8s.io';
      this.listen(webSocketOver({ connection, path, headers, protocol, maxMessageBytes: MAX_MESSAGE_BYTES }));
    } catch (error) {
      this.fail(dialError(error));
    }
  }

  private listen(socket: WebSocket): void {
    this.socket = socket;
    const lost: ForwardError = { code: 'lost', text: 'the API server closed the connection' };
    this.timer = setTimeout(
      () => this.fail({ code: 'unreachable', text: 'the API server does not answer' }),
      TETHER.dialTimeoutMs,
    );
    socket.on('open', () => {
      this.stopTimer();
      // Nodes close what is idle for hours and proxies much sooner; an empty message counts for both and means nothing.
      this.keepAliveTimer = setInterval(
        () => socket.bufferedAmount === 0 && socket.send(Buffer.alloc(0)),
        TETHER.pingIntervalMs,
      );
      this.events?.onOpened();
    });
    socket.on('message', (message: Buffer, isBinary) => {
      const wrong = isBinary ? this.onMessage(message) : 'a text message';
      if (wrong) this.fail({ code: 'hostile', text: `the server broke the protocol: ${wrong}` });
    });
    socket.on(
      'unexpected-response',
      (_, response) => void upgradeError(response).then((setback) => this.fail(setback)),
    );
    socket.on('error', (error) => this.fail({ ...lost, text: errorLine(error.message) }));
    socket.on('close', (code) => {
      if (this.errorText !== '') this.fail(podError(this.errorText, this.hasReceivedData));
      else if (code === 1006) this.fail(lost);
      else this.release()?.onEnded();
    });
  }

  /** The answer names what no server may send. */
  private onMessage(message: Buffer): string | null {
    const channel = message[0];
    if (channel === undefined) return 'an empty message';
    if (channel !== DATA_CHANNEL && channel !== ERROR_CHANNEL) return `channel ${channel}`;
    let at = 1;
    for (; at < message.length && (this.missingPortBytes[channel] ?? 0) > 0; at += 1) {
      const shift = (2 - (this.missingPortBytes[channel] ?? 0)) * 8;
      if (message[at] !== ((this.port >> shift) & 0xff)) return 'another port than the one asked for';
      this.missingPortBytes[channel] = (this.missingPortBytes[channel] ?? 0) - 1;
    }
    if (at === message.length) return null;
    if (channel === DATA_CHANNEL) {
      this.hasReceivedData = true;
      this.events?.onData(message.subarray(at));
      return null;
    }
    if (this.errorText.length < MAX_ERROR_BYTES) this.errorText += message.toString('utf8', at);
    // The end follows the text; should it not, the text is enough.
    this.timer ??= setTimeout(
      () => this.fail(podError(this.errorText, this.hasReceivedData)),
      TETHER.errorStreamTimeoutMs,
    );
    return null;
  }

  write(bytes: Buffer): boolean {
    const socket = this.socket;
    if (!socket) return true;
    const message = Buffer.allocUnsafe(bytes.length + 1);
    message[0] = DATA_CHANNEL;
    bytes.copy(message, 1);
    socket.send(message, () => {
      if (!this.isFull || socket.bufferedAmount > TETHER.maxBufferedBytes / 2) return;
      this.isFull = false;
      this.events?.onDrained();
    });
    this.isFull ||= socket.bufferedAmount > TETHER.maxBufferedBytes;
    return !this.isFull;
  }

  end(): void {
    this.socket?.close(1000);
    this.timer ??= setTimeout(() => this.release()?.onEnded(), TETHER.errorStreamTimeoutMs);
  }

  pause(): void {
    this.socket?.pause();
  }

  resume(): void {
    this.socket?.resume();
  }

  destroy(): void {
    const socket = this.socket;
    this.events = null;
    if (socket?.readyState !== OPEN) {
      this.release();
      return;
    }
    // In order behind what is still to be sent; what comes meanwhile is dropped.
    socket.resume();
    socket.close(1000);
    this.stopTimer();
    this.timer = setTimeout(() => this.release(), TETHER.errorStreamTimeoutMs);
  }

  private fail(error: ForwardError): void {
    this.release()?.onFailed(error);
  }

  /** Lets go of everything; whoever gets the listener tells it the end. */
  private release(): ForwardStreamEvents | null {
    const events = this.events;
    this.events = null;
    this.stopTimer();
    clearInterval(this.keepAliveTimer);
    this.abort.abort();
    this.socket?.terminate();
    return events;
  }

  private stopTimer(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }
}
