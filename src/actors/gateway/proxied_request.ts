// Forwards one request to an agent and returns its response, with back pressure in both directions.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayRoute } from '../../protocol/gateway.ts';
import { sendErrorPage, unreachablePage } from './error_pages.ts';
import { withOwnCookies } from './response_headers.ts';
import type { ResponseHead } from './response_parser.ts';
import type { GatewayExchange, UpstreamConnection, UpstreamPool } from './upstream_pool.ts';

/** A body up to this size is sent as text, together with its head in one system call. */
const COALESCE_BYTES = 16 * 1024;
/** Requests with these methods, without a body, may be repeated (RFC 9110 section 9.2.2). */
const IDEMPOTENT_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/** A request of a client. */
export interface InboundRequest {
  request: IncomingMessage;
  response: ServerResponse;
  route: GatewayRoute;
  /** The head as sent to the agent. */
  head: string;
  hasBody: boolean;
  isChunked: boolean;
}

/** How much of the response has been read and sent. */
type AnswerProgress =
  | { is: 'awaited' }
  /** The head has been read but not sent, so that it can go out with the beginning of the body. */
  | { is: 'held'; head: ResponseHead; firstChunk: Buffer | undefined }
  | { is: 'sent' };

/** Forwards one exchange. A failure becomes a response or, once a head was sent, closes the connection. */
export class ProxiedRequest implements GatewayExchange {
  readonly hasBody: boolean;
  private readonly inbound: InboundRequest;
  private readonly pool: UpstreamPool;
  private readonly mayRetry: boolean;
  private upstream: UpstreamConnection | undefined;
  /**
   * Whether the whole request was sent to the agent. The end of reading is not enough, because bytes that
   * were read may still wait.
   */
  private isSent: boolean;
  private answer: AnswerProgress = { is: 'awaited' };

  constructor(inbound: InboundRequest, pool: UpstreamPool) {
    this.hasBody = inbound.hasBody;
    this.inbound = inbound;
    this.isSent = !inbound.hasBody;
    this.pool = pool;
    this.mayRetry = !inbound.hasBody && IDEMPOTENT_METHODS.has(inbound.request.method ?? '');
    inbound.response.on('close', () => this.detachUpstream()?.destroy());
  }

  /**
   * Sends the request. An idle connection is used only if the request may be repeated, because the agent may
   * be closing the connection right now.
   */
  start(): void {
    const idle = this.mayRetry ? this.pool.takeIdle(this.inbound.route.port) : undefined;
    if (idle) this.send(idle);
    else void this.dial();
  }

  private async dial(): Promise<void> {
    const { request, response, route } = this.inbound;
    let fresh: UpstreamConnection;
    try {
      fresh = await this.pool.connect(route);
    } catch (error) {
      sendErrorPage(request, response, unreachablePage(route, (error as Error).message));
      return;
    }
    if (response.destroyed) this.pool.release(route.port, fresh);
    else this.send(fresh);
  }

  private send(upstream: UpstreamConnection): void {
    const { request, head, hasBody } = this.inbound;
    this.upstream = upstream;
    upstream.begin(request.method === 'HEAD', this);
    upstream.socket.write(head, 'latin1');
    if (hasBody) this.sendBody(request);
  }

  /** Sends the body as it arrives. Bytes that arrive after the end of the response are dropped. */
  private sendBody(request: IncomingMessage): void {
    const { isChunked } = this.inbound;
    request.on('data', (bytes: Buffer) => {
      const socket = this.upstream?.socket;
      if (!socket) return;
      if (isChunked) socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
      const accepted = socket.write(bytes);
      if (isChunked) socket.write('\r\n', 'latin1');
      if (!accepted) request.pause();
    });
    request.on('end', () => {
      if (!this.upstream) return;
      if (isChunked) this.upstream.socket.write('0\r\n\r\n', 'latin1');
      this.isSent = true;
    });
  }

  /** Releases the connection, and resumes a body waiting for it. */
  private detachUpstream(): UpstreamConnection | undefined {
    const upstream = this.upstream;
    this.upstream = undefined;
    if (this.inbound.hasBody) this.inbound.request.resume();
    return upstream;
  }

  onHead(head: ResponseHead): void {
    const { hostname } = this.inbound.route;
    const own = head.setsCookies ? { ...head, headers: withOwnCookies(head.headers, hostname) } : head;
    this.answer = { is: 'held', head: own, firstChunk: undefined };
  }

  onBody(bytes: Buffer): void {
    if (this.answer.is === 'held' && !this.answer.firstChunk) this.answer.firstChunk = bytes;
    else {
      this.flush();
      this.write(bytes);
    }
  }

  flush(): void {
    if (this.answer.is !== 'held') return;
    const { head, firstChunk } = this.answer;
    this.writeHead(head);
    if (firstChunk) this.write(firstChunk);
    else this.inbound.response.flushHeaders();
  }

  onEnd(isReusable: boolean): void {
    const { response, route } = this.inbound;
    const upstream = this.detachUpstream();
    this.writeHeld();
    response.end();
    if (!upstream) return;
    // If the agent did not wait for the whole body, the connection is still in the middle of it.
    if (isReusable && this.isSent) this.pool.release(route.port, upstream);
    else upstream.destroy();
  }

  onFailed(error: Error, isStale: boolean): void {
    const { request, response, route } = this.inbound;
    const upstream = this.detachUpstream();
    upstream?.destroy();
    if (response.headersSent) response.destroy();
    else if (upstream && isStale && this.mayRetry) void this.dial();
    else sendErrorPage(request, response, unreachablePage(route, error.message));
  }

  onDrained(): void {
    this.inbound.request.resume();
  }

  /** Sends the part of the response that was held back, at the end of the response. */
  private writeHeld(): void {
    if (this.answer.is !== 'held') return;
    const { head, firstChunk } = this.answer;
    if (firstChunk && firstChunk.length > COALESCE_BYTES) {
      this.flush();
      return;
    }
    this.writeHead(head);
    if (firstChunk) this.writeCoalesced(firstChunk);
  }

  private writeHead({ status, reason, headers }: ResponseHead): void {
    const { response } = this.inbound;
    this.answer = { is: 'sent' };
    response.sendDate = false;
    response.writeHead(status, reason, headers);
  }

  /**
   * Sends head and body in one plain write. `end` with a body would add an empty write, and several writes
   * are slower.
   */
  private writeCoalesced(bytes: Buffer): void {
    const { response } = this.inbound;
    const { socket } = response;
    socket?.cork();
    response.write(bytes.toString('latin1'), 'latin1');
    socket?.uncork();
  }

  /** Sends part of the body as text or as a copy, because the next read overwrites `bytes`. */
  private write(bytes: Buffer): void {
    const { response } = this.inbound;
    const accepted =
      bytes.length <= COALESCE_BYTES
        ? response.write(bytes.toString('latin1'), 'latin1')
        : response.write(Buffer.from(bytes));
    const upstream = this.upstream;
    if (accepted || !upstream) return;
    upstream.socket.pause();
    response.once('drain', () => {
      if (this.upstream === upstream) upstream.socket.resume();
    });
  }
}
