// Calls to one cluster's API server over pooled connections. The only file that imports undici.
//
// A cluster may be anybody's and may be down: every call has a deadline and a limit for its answer, few are open at once,
// few may wait, and a cluster that does not answer is left alone for a while, so that none of them can hold up the others.
import { setTimeout as sleep } from 'node:timers/promises';
import ask from 'undici/lib/api/api-request.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import { fail } from '../../protocol/errors.ts';
import { type Failure, isFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/limits.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';
import { LineTooLong, lineSplitter } from './line_splitter.ts';
import { type KubeStatus, kubeStatusOf, parseJson, WireError } from './parse_objects.ts';

export interface KubeRequest {
  /** For people, as in `patch deployments.apps in namespace web`. */
  action: string;
  method?: 'GET' | 'POST' | 'PATCH';
  /** Below the server's prefix, names in it checked. */
  path: string;
  query?: Record<string, string>;
  body?: object;
  maxBytes?: number;
  deadlineMs?: number;
  /** Gives the call up. */
  signal?: AbortSignal;
}

/** An answer of the API that is no success, to a request for `what`. */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly action: string;
  readonly status: KubeStatus;
  constructor(what: string, status: KubeStatus) {
    super(status.message || status.reason || `status ${status.status}`);
    this.action = what;
    this.status = status;
  }
}

export interface KubeHttp {
  /** The body of the answer. Fails with a KubeError, or with cluster_unreachable or daemon_busy. 429 is tried again in time. */
  call(request: KubeRequest): Promise<Buffer>;
  /** As `call`, with the body given in pieces as it comes; what `onChunk` throws ends it. */
  read(request: KubeRequest, onChunk: (chunk: Uint8Array) => void): Promise<void>;
  /**
   * Gives every line of an answer that does not end to `onLine`, until the server ends it. Fails as `call`, with what
   * `onLine` throws, and when `signal` aborts.
   */
  stream(request: KubeRequest, onLine: (line: Uint8Array) => void, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const CONTENT_TYPES = { GET: '', POST: 'application/json', PATCH: 'application/merge-patch+json' } as const;
/** An error's body is a Status: small. */
const MAX_STATUS_BYTES = 256 * 1024;

/** Counts calls without any answer; open, it refuses at once until the pause is over, then lets one try. */
class CircuitBreaker {
  private failures = 0;
  private openUntil = 0;
  private reason = '';

  check(): void {
    if (performance.now() >= this.openUntil) return;
    throw fail('cluster_unreachable', `${this.reason} (it is tried again shortly)`);
  }
  onAnswer(): void {
    this.failures = 0;
    this.openUntil = 0;
  }
  onNoAnswer(reason: string): void {
    const { failureThreshold, initialOpenMs, maxOpenMs } = CLOUD.circuitBreaker;
    // Calls that were under way when it opened tell nothing new.
    if (performance.now() < this.openUntil) return;
    this.failures += 1;
    if (this.failures < failureThreshold) return;
    this.reason = reason;
    this.openUntil =
      performance.now() + Math.min(initialOpenMs * 2 ** (this.failures - failureThreshold), maxOpenMs);
  }
}

async function readChunks(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  onChunk: (chunk: Uint8Array) => void,
): Promise<void> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // Leaving the loop destroys the body and with it the connection.
    if (size > maxBytes) throw new WireError(`the answer has more than ${maxBytes} bytes`);
    onChunk(chunk);
  }
}

async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  await readChunks(body, maxBytes, (chunk) => chunks.push(chunk));
  return Buffer.concat(chunks);
}

function kubeErrorOf(action: string, statusCode: number, retryAfter: unknown, body: Buffer): KubeError {
  if (statusCode < 400) {
    const message = 'a redirect, which is not followed';
    return new KubeError(action, { status: statusCode, reason: '', message, retryAfterMs: null });
  }
  let status: unknown;
  try {
    status = parseJson(body);
  } catch {
    // A proxy's page: the number alone has to do.
  }
  return new KubeError(action, kubeStatusOf(status, statusCode, retryAfter));
}

/** The cluster has answered, if not as hoped. */
const isAnswer = (error: unknown): boolean =>
  error instanceof KubeError || error instanceof WireError || error instanceof LineTooLong;

const TIMED_OUT = new Error('no answer in time');

/** Says for people what went wrong without an answer. */
function noAnswerFailure(host: string, error: unknown): Failure {
  if (isFailure(error)) return error;
  return fail(
    'cluster_unreachable',
    `${host} does not answer: ${error instanceof Error ? error.message : error}`,
  );
}

/** What a client is told of an error of `KubeHttp`: cluster_denied, cluster_unreachable, or the Failure it is. */
export function kubeFailure(error: unknown): Failure {
  if (isFailure(error)) return error;
  if (!(error instanceof KubeError)) {
    const reason = error instanceof Error ? error.message : String(error);
    return fail('cluster_unreachable', `The cluster does not speak the Kubernetes API: ${reason}.`);
  }
  const { status, message } = error.status;
  const said = message === '' ? '' : `: ${message}`;
  if (status === 401)
    return fail(
      'cluster_denied',
      `The cluster does not know the account (401) that wants to ${error.action}${said}`,
    );
  if (status === 403) return fail('cluster_denied', `The account may not ${error.action}${said}`);
  return fail(
    'cluster_unreachable',
    `The cluster answered ${status} to the request to ${error.action}${said}`,
  );
}

type BodyReader<T> = (body: AsyncIterable<Uint8Array>, mostBytes: number) => Promise<T>;

/** Opens nothing before the first call. */
export function createKubeHttp(dialer: ClusterDialer): KubeHttp {
  const origin = `https://${dialer.host}`;
  const connect: NonNullable<Pool.Options['connect']> = (_, callback) => {
    dialer.connect().then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
  const shared = { connect, keepAliveTimeout: 30_000, pipelining: 1, headersTimeout: CLOUD.headersTimeoutMs };
  const calls = new Pool(origin, {
    ...shared,
    connections: CLOUD.maxConcurrentCalls,
    bodyTimeout: CLOUD.headersTimeoutMs,
  });
  // Watches stay open: they must not take the places of calls. Whoever watches knows when silence is too long.
  const streams = new Pool(origin, { ...shared, bodyTimeout: 0 });
  const breaker = new CircuitBreaker();
  let underWay = 0;

  async function send(pool: Pool, request: KubeRequest, signal: AbortSignal) {
    const method = request.method ?? 'GET';
    const answer = await ask.call(pool, {
      method,
      path: `${dialer.prefix}${request.path}?${new URLSearchParams(request.query)}`,
      headers: {
        accept: 'application/json',
        'user-agent': 'berth',
        ...(request.body ? { 'content-type': CONTENT_TYPES[method] } : {}),
        ...dialer.headers(),
      },
      body: request.body ? JSON.stringify(request.body) : null,
      signal,
    });
    breaker.onAnswer();
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer.body;
    const body = await readBody(answer.body, MAX_STATUS_BYTES);
    throw kubeErrorOf(request.action, answer.statusCode, answer.headers['retry-after'], body);
  }

  /** Runs `work` with the breaker around it: what is no answer at all becomes cluster_unreachable. */
  async function guarded<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    breaker.check();
    try {
      return await work();
    } catch (error) {
      // A caller who has left says nothing about the cluster.
      if (isAnswer(error) || (signal.aborted && signal.reason !== TIMED_OUT)) throw error;
      const failure = noAnswerFailure(dialer.host, error);
      breaker.onNoAnswer(failure.message);
      throw failure;
    }
  }

  /** Sends it, again after each 429 while there is time, and gives the body to `take`. */
  async function attempt<T>(request: KubeRequest, take: BodyReader<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      try {
        const body = await send(calls, request, signal);
        return await take(body, request.maxBytes ?? CLOUD.maxObjectBytes);
      } catch (error) {
        if (!(error instanceof KubeError) || error.status.status !== 429) throw error;
        const pauseMs = Math.max(error.status.retryAfterMs ?? 1_000, CLOUD.minRetryAfterMs);
        await sleep(pauseMs, undefined, { signal }).catch(() => {
          throw error;
        });
      }
    }
  }

  async function call<T>(request: KubeRequest, take: BodyReader<T>): Promise<T> {
    if (underWay >= CLOUD.maxConcurrentCalls + CLOUD.maxQueuedCalls)
      throw fail('daemon_busy', `${dialer.host}: too many calls are waiting for it`);
    underWay += 1;
    // Not AbortSignal.any: a signal that lives as long as its actor would remember every call.
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(TIMED_OUT), request.deadlineMs ?? CLOUD.callTimeoutMs);
    const leave = (): void => abort.abort(request.signal?.reason);
    request.signal?.addEventListener('abort', leave);
    try {
      return await guarded(abort.signal, () => attempt(request, take, abort.signal));
    } finally {
      clearTimeout(timer);
      request.signal?.removeEventListener('abort', leave);
      underWay -= 1;
    }
  }

  return {
    call: (request) => call(request, readBody),
    read: (request, onChunk) => call(request, (body, mostBytes) => readChunks(body, mostBytes, onChunk)),
    async stream(request, onLine, signal) {
      const split = lineSplitter(CLOUD.maxWatchLineBytes);
      await guarded(signal, async () => {
        for await (const chunk of await send(streams, request, signal))
          for (const line of split(chunk)) onLine(line);
      });
    },
    async close() {
      await Promise.all([calls.destroy(), streams.destroy()]);
    },
  };
}
