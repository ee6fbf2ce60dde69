// One request on its way to an agent and its answer on the way back, with back pressure in both directions.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayRoute } from '../../protocol/gateway.ts';
import { sendErrorPage, unreachablePage } from './error_pages.ts';
import type { ResponseHead } from './response_parser.ts';
import type { GatewayExchange, UpstreamConnection, UpstreamPool } from './upstream_pool.ts';

/** What is written as text goes out together with its head, in one system call. */
const COALESCE_BYTES = 16 * 1024;
/** Without a body these may be asked twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/** What goes through: `head` as the agent gets it, and how its body is framed. */
export interface InboundRequest {
  request: IncomingMessage;
  response: ServerResponse;
  route: GatewayRoute;
  head: string;
  hasBody: boolean;
  isChunked: boolean;
}

/** Carries one exchange. It ends by itself: every failure is an answer or, behind a head, a cut. */
export class ProxiedRequest implements GatewayExchange {
  private readonly inbound: InboundRequest;
  private readonly pool: UpstreamPool;
  private readonly mayRetry: boolean;
  private upstream: UpstreamConnection | undefined;
  /** Read and not sent yet: the head, and what came of the body together with it. */
  private unsentHead: ResponseHead | undefined;
  private firstChunk: Buffer | undefined;

  constructor(inbound: InboundRequest, pool: UpstreamPool) {
    this.inbound = inbound;
    this.pool = pool;
    this.mayRetry = !inbound.hasBody && IDEMPOTENT_METHODS.has(inbound.request.method ?? '');
    inbound.response.on('close', () => this.detachUpstream()?.destroy());
  }

  /** Takes an idle connection, at which the agent may be hanging up just now, only for what may be asked once more. */
  start(): void {
    const idle = this.mayRetry ? this.pool.takeIdle(this.inbound.route.port) : undefined;
    if (idle) this.send(idle);
    else void this.dial();
  }

  private async dial(): Promise<void> {
    const { request, response, route } = this.inbound;
    let fresh: UpstreamConnection;
    try {
      fresh = await this.pool.connect(route.port);
    } catch (error) {
      sendErrorPage(request, response, unreachablePage(route.name, route.port, (error as Error).message));
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

  /** Sends the body as it comes. What comes after the answer's end is read and dropped. */
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
      if (isChunked) this.upstream?.socket.write('0\r\n\r\n', 'latin1');
    });
  }

  /** Lets go of the connection, and of a body that waited for it. */
  private detachUpstream(): UpstreamConnection | undefined {
    const upstream = this.upstream;
    this.upstream = undefined;
    if (this.inbound.hasBody) this.inbound.request.resume();
    return upstream;
  }

  onHead(head: ResponseHead): void {
    this.unsentHead = head;
  }

  onBody(bytes: Buffer): void {
    if (this.unsentHead && !this.firstChunk) this.firstChunk = bytes;
    else {
      this.flush();
      this.write(bytes);
    }
  }

  flush(): void {
    if (!this.unsentHead) return;
    this.writeHead(this.unsentHead);
    if (this.firstChunk) this.write(this.firstChunk);
    else this.inbound.response.flushHeaders();
    this.firstChunk = undefined;
  }

  onEnd(reusable: boolean): void {
    const { request, response, hasBody, route } = this.inbound;
    const upstream = this.detachUpstream();
    const isComplete = !hasBody || request.complete;
    if (this.firstChunk && this.firstChunk.length > COALESCE_BYTES) this.flush();
    if (this.unsentHead) this.writeHead(this.unsentHead);
    if (this.firstChunk) this.writeCoalesced(this.firstChunk);
    response.end();
    if (!upstream) return;
    // A request whose body the agent did not wait for leaves the connection in the middle of it.
    if (reusable && isComplete) this.pool.release(route.port, upstream);
    else upstream.destroy();
  }

  onFailed(error: Error): void {
    const { request, response, route } = this.inbound;
    const upstream = this.detachUpstream();
    upstream?.destroy();
    if (response.headersSent) response.destroy();
    else if (upstream?.isReused && !upstream.hasAnswerBytes && this.mayRetry) void this.dial();
    else sendErrorPage(request, response, unreachablePage(route.name, route.port, error.message));
  }

  onDrained(): void {
    this.inbound.request.resume();
  }

  private writeHead({ status, reason, headers }: ResponseHead): void {
    const { response } = this.inbound;
    this.unsentHead = undefined;
    response.sendDate = false;
    response.writeHead(status, reason, headers);
  }

  /** Head and body in one plain write: left to itself, `end` would add an empty one and take the slower way of several. */
  private writeCoalesced(bytes: Buffer): void {
    const { response } = this.inbound;
    const { socket } = response;
    socket?.cork();
    response.write(bytes.toString('latin1'), 'latin1');
    socket?.uncork();
  }

  /** The bytes are the connection's own: as text or in a copy they are ours. */
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
