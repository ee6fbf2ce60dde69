// Keep-alive connections to the agents' ports: one request at a time on each, used again when its answer has ended cleanly.
import net from 'node:net';
import type { ResponseHead, ResponseReceiver } from './response_parser.ts';
import { BadResponse, ResponseParser } from './response_parser.ts';

const IDLE_PER_PORT = 64;
/** Shorter than the 5 s after which a Node server closes an idle connection, so that the race is rare. */
const IDLE_MS = 4_000;

/** One buffer for all that agents send: it is passed on or copied before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

export interface GatewayExchange extends ResponseReceiver {
  /** All that has come is told. */
  flush(): void;
  /** The connection failed before the answer was complete. */
  onFailed(error: Error): void;
  /** The connection takes more of the body. */
  onDrained(): void;
}

/** One connection, busy with one exchange or idle in its pool. */
export class UpstreamConnection {
  readonly socket: net.Socket;
  /** It has carried an exchange before: a failure may only mean that the agent closed it while it was idle. */
  isReused = false;
  /** Bytes of the present answer have come. */
  hasAnswerBytes = false;
  /** Monotonic milliseconds; when it was last put back. */
  idleSince = 0;
  private readonly parser = new ResponseParser(this);
  private exchange: GatewayExchange | undefined;

  private constructor(socket: net.Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('drain', () => this.exchange?.onDrained());
    socket.on('error', (error) => this.failExchange(error));
    socket.on('end', () => this.onSocketEnd());
    socket.on('close', () => this.failExchange(new Error('the agent closed the connection')));
  }

  static async connect(port: number): Promise<UpstreamConnection> {
    let upstream: UpstreamConnection | undefined;
    const socket = await dialAgent(port, (bytes) => upstream?.data(bytes));
    upstream = new UpstreamConnection(socket);
    return upstream;
  }

  begin(isHead: boolean, exchange: GatewayExchange): void {
    this.exchange = exchange;
    this.hasAnswerBytes = false;
    this.parser.expect(isHead);
  }

  /** Ends the connection; its exchange hears nothing more. */
  destroy(): void {
    this.exchange = undefined;
    this.socket.destroy();
  }

  onHead(head: ResponseHead): void {
    this.exchange?.onHead(head);
  }

  onBody(bytes: Buffer): void {
    this.exchange?.onBody(bytes);
  }

  onEnd(reusable: boolean): void {
    const exchange = this.exchange;
    this.exchange = undefined;
    this.isReused = true;
    exchange?.onEnd(reusable);
  }

  data(bytes: Buffer): void {
    this.hasAnswerBytes = true;
    try {
      this.parser.feed(bytes);
      this.exchange?.flush();
    } catch (error) {
      if (!(error instanceof BadResponse)) throw error;
      this.failExchange(error);
      this.socket.destroy();
    }
  }

  private onSocketEnd(): void {
    if (!this.parser.finish())
      this.failExchange(new Error('the agent closed the connection before its answer was complete'));
    this.socket.destroy();
  }

  private failExchange(error: Error): void {
    const exchange = this.exchange;
    this.exchange = undefined;
    exchange?.onFailed(error);
  }
}

/**
 * Dials an agent's port: 127.0.0.1, then ::1 for programs that listen there only. With `onData` what comes is given to it,
 * valid until it returns, and never to the socket's readers.
 */
export function dialAgent(port: number, onData?: (bytes: Buffer) => void): Promise<net.Socket> {
  const callback = (length: number): boolean => {
    onData?.(readBuffer.subarray(0, length));
    return true;
  };
  const onread = onData && { onread: { buffer: readBuffer, callback } };
  const attempt = (host: string): Promise<net.Socket> =>
    new Promise((resolve, reject) => {
      const socket = net.connect({ port, host, ...onread });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(socket);
      });
    });
  return attempt('127.0.0.1').catch((first) => attempt('::1').catch(() => Promise.reject(first)));
}

export class UpstreamPool {
  private readonly idle = new Map<number, UpstreamConnection[]>();
  /** One sweep for all: a timer per connection and request would cost more than the request. */
  private readonly sweep = setInterval(() => this.dropExpired(), IDLE_MS).unref();

  /** An idle connection, if there is one. */
  takeIdle(port: number): UpstreamConnection | undefined {
    const idle = this.idle.get(port);
    const oldest = performance.now() - IDLE_MS;
    for (let upstream = idle?.pop(); upstream; upstream = idle?.pop()) {
      if (upstream.idleSince > oldest && upstream.socket.readyState === 'open') return upstream;
      upstream.destroy();
    }
    return undefined;
  }

  connect(port: number): Promise<UpstreamConnection> {
    return UpstreamConnection.connect(port);
  }

  release(port: number, upstream: UpstreamConnection): void {
    let idle = this.idle.get(port);
    if (!idle) {
      idle = [];
      this.idle.set(port, idle);
    }
    if (idle.length >= IDLE_PER_PORT) {
      upstream.destroy();
      return;
    }
    if (upstream.socket.isPaused()) upstream.socket.resume();
    upstream.idleSince = performance.now();
    idle.push(upstream);
  }

  /** Forgets the connections to ports that no agent has any more. */
  keepOnly(ports: ReadonlySet<number>): void {
    for (const [port, idle] of this.idle) {
      if (ports.has(port)) continue;
      for (const upstream of idle) upstream.destroy();
      this.idle.delete(port);
    }
  }

  close(): void {
    clearInterval(this.sweep);
    this.keepOnly(new Set());
  }

  private dropExpired(): void {
    const oldest = performance.now() - IDLE_MS;
    for (const [port, idle] of this.idle) {
      const young = idle.filter((upstream) => upstream.idleSince > oldest);
      for (const upstream of idle) if (upstream.idleSince <= oldest) upstream.destroy();
      this.idle.set(port, young);
    }
  }
}
