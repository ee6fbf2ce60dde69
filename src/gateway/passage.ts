// One request on its way to an agent and its answer on the way back, with back pressure in both directions.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayRoute } from '../protocol/gateway.ts';
import { answer, refused } from './pages.ts';
import type { ResponseHead } from './response_parser.ts';
import type { Exchange, Upstream, UpstreamPool } from './upstream.ts';

/** What is written as text goes out together with its head, in one system call. */
const TOGETHER_BYTES = 16 * 1024;
/** Without a body these may be asked twice (RFC 9110 section 9.2.2). */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/** What goes through: `head` as the agent gets it, and how its body is framed. */
export interface Asked {
  request: IncomingMessage;
  response: ServerResponse;
  route: GatewayRoute;
  head: string;
  hasBody: boolean;
  isChunked: boolean;
}

/** Carries one exchange. It ends by itself: every failure is an answer or, behind a head, a cut. */
export class Passage implements Exchange {
  private readonly asked: Asked;
  private readonly pool: UpstreamPool;
  private readonly mayRepeat: boolean;
  private upstream: Upstream | undefined;
  /** Read and not sent yet: the head, and what came of the body together with it. */
  private unsentHead: ResponseHead | undefined;
  private first: Buffer | undefined;

  constructor(asked: Asked, pool: UpstreamPool) {
    this.asked = asked;
    this.pool = pool;
    this.mayRepeat = !asked.hasBody && REPEATABLE.has(asked.request.method ?? '');
    asked.response.on('close', () => this.leave()?.destroy());
  }

  /** Takes an idle connection, at which the agent may be hanging up just now, only for what may be asked once more. */
  begin(): void {
    const idle = this.mayRepeat ? this.pool.take(this.asked.route.port) : undefined;
    if (idle) this.send(idle);
    else void this.dial();
  }

  private async dial(): Promise<void> {
    const { request, response, route } = this.asked;
    let fresh: Upstream;
    try {
      fresh = await this.pool.fresh(route.port);
    } catch (error) {
      answer(request, response, refused(route.name, route.port, (error as Error).message));
      return;
    }
    if (response.destroyed) this.pool.release(route.port, fresh);
    else this.send(fresh);
  }

  private send(upstream: Upstream): void {
    const { request, head, hasBody } = this.asked;
    this.upstream = upstream;
    upstream.begin(request.method === 'HEAD', this);
    upstream.socket.write(head, 'latin1');
    if (hasBody) this.sendBody(request);
  }

  /** Sends the body as it comes. What comes after the answer's end is read and dropped. */
  private sendBody(request: IncomingMessage): void {
    const { isChunked } = this.asked;
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
  private leave(): Upstream | undefined {
    const upstream = this.upstream;
    this.upstream = undefined;
    if (this.asked.hasBody) this.asked.request.resume();
    return upstream;
  }

  head(head: ResponseHead): void {
    this.unsentHead = head;
  }

  body(bytes: Buffer): void {
    if (this.unsentHead && !this.first) this.first = bytes;
    else {
      this.flush();
      this.write(bytes);
    }
  }

  flush(): void {
    if (!this.unsentHead) return;
    this.writeHead(this.unsentHead);
    if (this.first) this.write(this.first);
    else this.asked.response.flushHeaders();
    this.first = undefined;
  }

  end(reusable: boolean): void {
    const { request, response, hasBody, route } = this.asked;
    const upstream = this.leave();
    const isComplete = !hasBody || request.complete;
    if (this.first && this.first.length > TOGETHER_BYTES) this.flush();
    if (this.unsentHead) this.writeHead(this.unsentHead);
    if (this.first) this.writeNow(this.first);
    response.end();
    if (!upstream) return;
    // A request whose body the agent did not wait for leaves the connection in the middle of it.
    if (reusable && isComplete) this.pool.release(route.port, upstream);
    else upstream.destroy();
  }

  failed(error: Error): void {
    const { request, response, route } = this.asked;
    const upstream = this.leave();
    upstream?.destroy();
    if (response.headersSent) response.destroy();
    else if (upstream?.used && !upstream.answered && this.mayRepeat) void this.dial();
    else answer(request, response, refused(route.name, route.port, error.message));
  }

  drained(): void {
    this.asked.request.resume();
  }

  private writeHead({ status, reason, headers }: ResponseHead): void {
    const { response } = this.asked;
    this.unsentHead = undefined;
    response.sendDate = false;
    response.writeHead(status, reason, headers);
  }

  /** Head and body in one plain write: left to itself, `end` would add an empty one and take the slower way of several. */
  private writeNow(bytes: Buffer): void {
    const { response } = this.asked;
    const { socket } = response;
    socket?.cork();
    response.write(bytes.toString('latin1'), 'latin1');
    socket?.uncork();
  }

  /** The bytes are the connection's own: as text or in a copy they are ours. */
  private write(bytes: Buffer): void {
    const { response } = this.asked;
    const accepted =
      bytes.length <= TOGETHER_BYTES
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
