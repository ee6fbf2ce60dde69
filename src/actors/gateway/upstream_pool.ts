// Keep-alive connections to the ports of agents. Each carries one request at a time, and is reused after a
// response that has ended cleanly.
import net from 'node:net';
import type { ResponseHead, ResponseReceiver } from './response_parser.ts';
import { BadResponse, ResponseParser } from './response_parser.ts';

const IDLE_PER_PORT = 64;
/**
 * Shorter than the 5 s after which a Node server closes an idle connection, so that few are reused just then.
 */
const IDLE_MS = 4_000;

/** One buffer for all reads from agents: bytes are passed on or copied before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** A request that is carried on a connection, as the connection sees it. */
export interface GatewayExchange extends ResponseReceiver {
  /** All bytes that have arrived so far were passed on. */
  flush(): void;
  /**
   * The connection failed before the response was complete. `isStale`: it had carried a request before and no
   * byte of this response has arrived, so the agent may only have closed it while it was idle.
   */
  onFailed(error: Error, isStale: boolean): void;
  /** The connection takes more of the body. */
  onDrained(): void;
}

type ConnectionState =
  | { is: 'idle' /** Monotonic milliseconds. */; since: number }
  | { is: 'busy'; exchange: GatewayExchange; hasAnswerBytes: boolean }
  | { is: 'over' };

/** One connection to an agent: it carries one exchange, or is idle in its pool. */
export class UpstreamConnection {
  readonly socket: net.Socket;
  private readonly parser = new ResponseParser(this);
  private state: ConnectionState = { is: 'idle', since: 0 };
  /** It has carried an exchange before. */
  private isReused = false;

  private constructor(socket: net.Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('drain', () => {
      if (this.state.is === 'busy') this.state.exchange.onDrained();
    });
    socket.on('error', (error) => this.fail(error));
    socket.on('end', () => this.onSocketEnd());
    socket.on('close', () => this.fail(new Error('the agent closed the connection')));
  }

  /** Connects to an agent's port. Rejects with the error of the system. */
  static async connect(port: number): Promise<UpstreamConnection> {
    let upstream: UpstreamConnection | undefined;
    const socket = await dialAgent(port, (bytes) => upstream?.onData(bytes));
    upstream = new UpstreamConnection(socket);
    return upstream;
  }

  /** Carries `exchange` from now on. `isHead`: the method of its request is HEAD. */
  begin(isHead: boolean, exchange: GatewayExchange): void {
    this.state = { is: 'busy', exchange, hasAnswerBytes: false };
    this.parser.expect(isHead);
  }

  /** Makes the connection idle from `since`, in monotonic milliseconds. */
  rest(since: number): void {
    if (this.socket.isPaused()) this.socket.resume();
    this.state = { is: 'idle', since };
  }

  /** Whether it has been idle since a time after `time` and is open. */
  isIdleAfter(time: number): boolean {
    return this.state.is === 'idle' && this.state.since > time && this.socket.readyState === 'open';
  }

  /** Ends the connection. Its exchange hears nothing more. */
  destroy(): void {
    this.state = { is: 'over' };
    this.socket.destroy();
  }

  onHead(head: ResponseHead): void {
    if (this.state.is === 'busy') this.state.exchange.onHead(head);
  }

  onBody(bytes: Buffer): void {
    if (this.state.is === 'busy') this.state.exchange.onBody(bytes);
  }

  onEnd(isReusable: boolean): void {
    const { state } = this;
    this.state = { is: 'over' };
    this.isReused = true;
    if (state.is === 'busy') state.exchange.onEnd(isReusable);
  }

  private onData(bytes: Buffer): void {
    if (this.state.is === 'busy') this.state.hasAnswerBytes = true;
    try {
      this.parser.feed(bytes);
      if (this.state.is === 'busy') this.state.exchange.flush();
    } catch (error) {
      if (!(error instanceof BadResponse)) throw error;
      this.fail(error);
      this.socket.destroy();
    }
  }

  private onSocketEnd(): void {
    if (!this.parser.finish())
      this.fail(new Error('the agent closed the connection before its answer was complete'));
    this.socket.destroy();
  }

  private fail(error: Error): void {
    const { state } = this;
    this.state = { is: 'over' };
    if (state.is === 'busy') state.exchange.onFailed(error, this.isReused && !state.hasAnswerBytes);
  }
}

/**
 * Dials an agent's port on 127.0.0.1, then on ::1 for programs that listen only there. Rejects with the error
 * of the first. With `onData`, bytes are given to it, valid until it returns, and not to readers of the
 * socket.
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
  return attempt('127.0.0.1').catch(async (first: unknown) => {
    try {
      return await attempt('::1');
    } catch {
      throw first;
    }
  });
}

/** The idle connections to all agents. */
export class UpstreamPool {
  private readonly idle = new Map<number, UpstreamConnection[]>();
  /** One sweep for all: a timer per connection and request would cost more than the request. */
  private readonly sweep = setInterval(() => this.dropExpired(), IDLE_MS).unref();

  /** Takes an idle connection to `port`; undefined where there is none. */
  takeIdle(port: number): UpstreamConnection | undefined {
    const idle = this.idle.get(port);
    const oldest = performance.now() - IDLE_MS;
    for (let upstream = idle?.pop(); upstream; upstream = idle?.pop()) {
      if (upstream.isIdleAfter(oldest)) return upstream;
      upstream.destroy();
    }
    return undefined;
  }

  /** Opens a connection to `port`. Rejects with the error of the system. */
  connect(port: number): Promise<UpstreamConnection> {
    return UpstreamConnection.connect(port);
  }

  /** Keeps a connection to `port` for another request. */
  release(port: number, upstream: UpstreamConnection): void {
    const idle = this.idle.get(port) ?? [];
    this.idle.set(port, idle);
    if (idle.length >= IDLE_PER_PORT) {
      upstream.destroy();
      return;
    }
    upstream.rest(performance.now());
    idle.push(upstream);
  }

  /** Ends the idle connections to all other ports. */
  keepOnly(ports: ReadonlySet<number>): void {
    for (const [port, idle] of this.idle) {
      if (ports.has(port)) continue;
      for (const upstream of idle) upstream.destroy();
      this.idle.delete(port);
    }
  }

  /** Ends all idle connections. */
  close(): void {
    clearInterval(this.sweep);
    this.keepOnly(new Set());
  }

  private dropExpired(): void {
    const oldest = performance.now() - IDLE_MS;
    for (const [port, idle] of this.idle) {
      const kept = idle.filter((upstream) => upstream.isIdleAfter(oldest));
      for (const upstream of idle) if (!kept.includes(upstream)) upstream.destroy();
      this.idle.set(port, kept);
    }
  }
}
