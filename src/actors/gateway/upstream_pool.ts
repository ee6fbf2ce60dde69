// Keep-alive connections to the ports of agents. Each carries one request at a time, and is reused after a
// response that has ended cleanly.
import type net from 'node:net';
import type { DialTarget, ServiceDialer } from '../../adapters/service_dialer.ts';
import type { ResponseHead, ResponseReceiver } from './response_parser.ts';
import { BadResponse, ResponseParser } from './response_parser.ts';

const IDLE_PER_PORT = 64;
/**
 * Less than the 5 s after which a Node server closes an idle connection, so that few are reused at that
 * moment.
 */
const IDLE_MS = 4_000;

/** A request carried on a connection, as the connection sees it. */
export interface GatewayExchange extends ResponseReceiver {
  /** Whether the request has a body, which the agent may leave unread. */
  readonly hasBody: boolean;
  /** All bytes that have arrived so far have been passed on. */
  flush(): void;
  /**
   * The connection failed before the response was complete. `isStale`: it had carried a request before and no
   * byte of this response has arrived, so the agent may merely have closed it while it was idle.
   */
  onFailed(error: Error, isStale: boolean): void;
  /** The connection accepts more of the body. */
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
  /** Whether it has carried an exchange before. */
  private isReused = false;

  private constructor(socket: net.Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('drain', () => {
      if (this.state.is === 'busy') this.state.exchange.onDrained();
    });
    socket.on('error', (error) => this.onSocketError(error));
    socket.on('end', () => this.onSocketEnd());
    socket.on('close', () => this.fail(new Error('it closed the connection')));
  }

  /** Connects to an agent. Rejects as `dial` does. */
  static async connect(dialer: ServiceDialer, agent: DialTarget): Promise<UpstreamConnection> {
    let upstream: UpstreamConnection | undefined;
    const socket = await dialer.dial(agent, { onData: (bytes) => upstream?.onData(bytes) });
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

  /** Ends the connection. Its exchange gets no further events. */
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

  /** A close with an unread body is a reset: it, too, ends an answer without a length. */
  private onSocketError(error: NodeJS.ErrnoException): void {
    const isEnd = error.code === 'ECONNRESET' && this.state.is === 'busy' && this.state.exchange.hasBody;
    if (!isEnd || !this.parser.finish()) this.fail(error);
  }

  private onSocketEnd(): void {
    if (!this.parser.finish())
      this.fail(new Error('it closed the connection before its answer was complete'));
    this.socket.destroy();
  }

  private fail(error: Error): void {
    const { state } = this;
    this.state = { is: 'over' };
    if (state.is === 'busy') state.exchange.onFailed(error, this.isReused && !state.hasAnswerBytes);
  }
}

/** The idle connections to all agents. */
export class UpstreamPool {
  private readonly idle = new Map<number, UpstreamConnection[]>();
  /** One sweep for all: a timer per connection and request would cost more than the request itself. */
  private readonly sweep = setInterval(() => this.dropExpired(), IDLE_MS).unref();
  private readonly dialer: ServiceDialer;

  constructor(dialer: ServiceDialer) {
    this.dialer = dialer;
  }

  /** Takes an idle connection to `port`; undefined if there is none. */
  takeIdle(port: number): UpstreamConnection | undefined {
    const idle = this.idle.get(port);
    const oldest = performance.now() - IDLE_MS;
    for (let upstream = idle?.pop(); upstream; upstream = idle?.pop()) {
      if (upstream.isIdleAfter(oldest)) return upstream;
      upstream.destroy();
    }
    return undefined;
  }

  /** Opens a connection to an agent. Rejects with the reason if it cannot. */
  connect(agent: DialTarget): Promise<UpstreamConnection> {
    return UpstreamConnection.connect(this.dialer, agent);
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
