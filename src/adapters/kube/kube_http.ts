// Calls to one cluster's API server over pooled connections. The only file that imports undici.
//
// A cluster may be anybody's and may be down. So every call has a deadline and a limit for its answer, few
// are open at once, few may wait, and a cluster that does not answer is left alone for a while: no cluster
// holds up the others.
import ask from 'undici/lib/api/api-request.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import { fail } from '../../protocol/errors.ts';
import { type Clock, type Failure, isFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/limits.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';
import { deadlineSignal } from '../deadline_signal.ts';
import { abortablePause } from './abortable_pause.ts';
import { CircuitBreaker } from './circuit_breaker.ts';
import { isTimeout, isTransportError, KubeError, WireError } from './kube_errors.ts';
import { lineSplitter } from './line_splitter.ts';
import { kubeStatusOf, parseJson } from './parse_objects.ts';

export interface KubeRequest {
  /** For people, as in `patch deployments.apps in namespace web`. */
  action: string;
  method?: 'GET' | 'POST' | 'PATCH';
  /** Below the server's prefix; names in it are checked. */
  path: string;
  query?: Record<string, string>;
  body?: object;
  maxBytes?: number;
  deadlineMs?: number;
  /** Gives the call up. */
  signal?: AbortSignal;
}

export interface KubeHttp {
  /**
   * The body of the answer. Fails with a KubeError, a WireError, cluster_unreachable, cluster_denied or
   * daemon_busy. After a 429 it tries again, as long as there is time.
   */
  call(request: KubeRequest): Promise<Buffer>;
  /** As `call`, with the body in pieces as it comes. What `onChunk` throws ends the call. */
  read(request: KubeRequest, onChunk: (chunk: Uint8Array) => void): Promise<void>;
  /**
   * Gives every line of an endless answer to `onLine`, until the server ends it. Fails as `call`, with what
   * `onLine` throws, and when `signal` aborts.
   */
  stream(request: KubeRequest, onLine: (line: Uint8Array) => void, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

type Body = AsyncIterable<Uint8Array>;

const CONTENT_TYPES = { GET: '', POST: 'application/json', PATCH: 'application/merge-patch+json' } as const;
/** An error's body is a Status: small. */
const MAX_STATUS_BYTES = 256 * 1024;
const KEEP_ALIVE_MS = 30_000;
const DEFAULT_RETRY_AFTER_MS = 1_000;

/** Throws a WireError for more than `maxBytes`. */
async function readChunks(body: Body, maxBytes: number, onChunk: (chunk: Uint8Array) => void): Promise<void> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // Leaving the loop destroys the body and with it the connection.
    if (size > maxBytes) throw new WireError(`the answer has more than ${maxBytes} bytes`);
    onChunk(chunk);
  }
}

async function readBody(body: Body, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  await readChunks(body, maxBytes, (chunk) => chunks.push(chunk));
  return Buffer.concat(chunks);
}

/** The Status in `body`; undefined for a proxy's page, of which only the HTTP status counts. */
function parseStatus(body: Buffer): unknown {
  try {
    return parseJson(body);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return undefined;
  }
}

function kubeErrorOf(action: string, statusCode: number, retryAfter: unknown, body: Buffer): KubeError {
  if (statusCode >= 400)
    return new KubeError(action, kubeStatusOf(parseStatus(body), statusCode, retryAfter));
  const message = 'a redirect, which is not followed';
  return new KubeError(action, { status: statusCode, reason: '', message, retryAfterMs: null });
}

/** The failure when there was no answer at all; null: there was one, or `error` is a defect. */
function noAnswerFailure(host: string, error: unknown): Failure | null {
  if (isFailure(error)) return error;
  const unanswered = (reason: string): Failure =>
    fail('cluster_unreachable', `${host} does not answer: ${reason}`);
  if (isTimeout(error)) return unanswered('no answer in time');
  return isTransportError(error) ? unanswered(error.message) : null;
}

/**
 * A pool whose connections `dialer` makes. `bodyTimeout`: the longest silence within an answer in ms, 0 for
 * any.
 */
function openPool(dialer: ClusterDialer, options: { connections?: number; bodyTimeout: number }): Pool {
  const connect: NonNullable<Pool.Options['connect']> = (_, callback) => {
    dialer.connect().then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
  return new Pool(`https://${dialer.host}`, {
    connect,
    keepAliveTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
    headersTimeout: CLOUD.headersTimeoutMs,
    ...options,
  });
}

class PooledKubeHttp implements KubeHttp {
  private readonly dialer: ClusterDialer;
  private readonly clock: Clock;
  private readonly breaker: CircuitBreaker;
  private readonly calls: Pool;
  /**
   * Watches stay open and must not take the places of calls. Whoever watches knows when silence is too long.
   */
  private readonly streams: Pool;
  private openCalls = 0;

  constructor(dialer: ClusterDialer, clock: Clock) {
    this.dialer = dialer;
    this.clock = clock;
    this.breaker = new CircuitBreaker(clock);
    this.calls = openPool(dialer, {
      connections: CLOUD.maxConcurrentCalls,
      bodyTimeout: CLOUD.headersTimeoutMs,
    });
    this.streams = openPool(dialer, { bodyTimeout: 0 });
  }

  call(request: KubeRequest): Promise<Buffer> {
    return this.callWith(request, readBody);
  }

  read(request: KubeRequest, onChunk: (chunk: Uint8Array) => void): Promise<void> {
    return this.callWith(request, (body, maxBytes) => readChunks(body, maxBytes, onChunk));
  }

  async stream(request: KubeRequest, onLine: (line: Uint8Array) => void, signal: AbortSignal): Promise<void> {
    const split = lineSplitter(CLOUD.maxWatchLineBytes);
    await this.guarded(signal, async () => {
      for await (const chunk of await this.send(this.streams, request, signal))
        for (const line of split(chunk)) onLine(line);
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.calls.destroy(), this.streams.destroy()]);
  }

  private async callWith<T>(
    request: KubeRequest,
    take: (body: Body, maxBytes: number) => Promise<T>,
  ): Promise<T> {
    if (this.openCalls >= CLOUD.maxConcurrentCalls + CLOUD.maxQueuedCalls)
      throw fail('daemon_busy', `${this.dialer.host}: too many calls are waiting for it`);
    this.openCalls += 1;
    const deadline = deadlineSignal(this.clock, request.deadlineMs ?? CLOUD.callTimeoutMs, request.signal);
    const work = (body: Body): Promise<T> => take(body, request.maxBytes ?? CLOUD.maxObjectBytes);
    try {
      return await this.guarded(deadline.signal, () => this.retryWhenBusy(request, work, deadline.signal));
    } finally {
      deadline.clear();
      this.openCalls -= 1;
    }
  }

  /** Runs `work` behind the breaker: no answer at all becomes cluster_unreachable. */
  private async guarded<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    this.breaker.check();
    try {
      return await work();
    } catch (error) {
      // A caller that has left says nothing about the cluster.
      if (signal.aborted && !isTimeout(signal.reason)) throw error;
      if (error instanceof KubeError) throw this.redacted(error);
      const failure = noAnswerFailure(this.dialer.host, error);
      if (!failure) throw error;
      this.breaker.onNoAnswer(failure.message);
      throw failure;
    }
  }

  /** `error` without the token that the request carried. */
  private redacted({ action, status }: KubeError): KubeError {
    const { dialer } = this;
    const [reason, message] = [dialer.redact(status.reason), dialer.redact(status.message)];
    return new KubeError(action, { ...status, reason, message });
  }

  /** Sends the request, again after each 429 until `signal` aborts, and gives the body to `take`. */
  private async retryWhenBusy<T>(
    request: KubeRequest,
    take: (body: Body) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    for (;;) {
      try {
        return await take(await this.send(this.calls, request, signal));
      } catch (error) {
        if (!(error instanceof KubeError) || error.status.status !== 429) throw error;
        const askedMs = error.status.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
        if (!(await abortablePause(this.clock, Math.max(askedMs, CLOUD.minRetryAfterMs), signal)))
          throw error;
      }
    }
  }

  /** The body of a success; any other answer is thrown as a KubeError. */
  private async send(pool: Pool, request: KubeRequest, signal: AbortSignal): Promise<Body> {
    const method = request.method ?? 'GET';
    const answer = await ask.call(pool, {
      method,
      path: `${this.dialer.prefix}${request.path}?${new URLSearchParams(request.query)}`,
      headers: {
        accept: 'application/json',
        'user-agent': 'berth',
        ...(request.body ? { 'content-type': CONTENT_TYPES[method] } : {}),
        ...this.dialer.headers(),
      },
      body: request.body ? JSON.stringify(request.body) : null,
      signal,
    });
    this.breaker.onAnswer();
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer.body;
    const body = await readBody(answer.body, MAX_STATUS_BYTES);
    throw kubeErrorOf(request.action, answer.statusCode, answer.headers['retry-after'], body);
  }
}

/** Calls over the connections of `dialer`; none is opened before the first call. */
export const createKubeHttp = (dialer: ClusterDialer, clock: Clock): KubeHttp =>
  new PooledKubeHttp(dialer, clock);
