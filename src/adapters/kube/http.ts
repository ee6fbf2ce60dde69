// Calls to one cluster's API server over pooled connections. The only file that imports undici.
//
// A cluster may be anybody's and may be down: every call has a deadline and a limit for its answer, few are open at once,
// few may wait, and a cluster that does not answer is left alone for a while, so that none of them can hold up the others.
import { setTimeout as sleep } from 'node:timers/promises';
import ask from 'undici/lib/api/api-request.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import { CLOUD } from '../../limits.ts';
import { fail } from '../../protocol/errors.ts';
import { type Failure, isFailure } from '../../runtime/actor.ts';
import type { Door } from '../dial.ts';
import { LineTooLong, lineSplitter } from './newline.ts';
import { type KubeStatus, parseJson, statusOf, WireError } from './rows.ts';

export interface KubeRequest {
  /** For people, as in `patch deployments.apps in namespace web`. */
  what: string;
  method?: 'GET' | 'POST' | 'PATCH';
  /** Below the server's prefix, names in it checked. */
  path: string;
  query?: Record<string, string>;
  body?: object;
  mostBytes?: number;
  deadlineMs?: number;
  /** Gives the call up. */
  signal?: AbortSignal;
}

/** An answer of the API that is no success, to a request for `what`. */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly what: string;
  readonly status: KubeStatus;
  constructor(what: string, status: KubeStatus) {
    super(status.message || status.reason || `status ${status.status}`);
    this.what = what;
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
const STATUS_BYTES = 256 * 1024;

/** Counts calls without any answer; open, it refuses at once until the pause is over, then lets one try. */
class Breaker {
  private failures = 0;
  private until = 0;
  private reason = '';

  check(): void {
    if (performance.now() >= this.until) return;
    throw fail('cluster_unreachable', `${this.reason} (it is tried again shortly)`);
  }
  answered(): void {
    this.failures = 0;
    this.until = 0;
  }
  silent(reason: string): void {
    const { after, firstMs, maxMs } = CLOUD.breaker;
    // Calls that were under way when it opened tell nothing new.
    if (performance.now() < this.until) return;
    this.failures += 1;
    if (this.failures < after) return;
    this.reason = reason;
    this.until = performance.now() + Math.min(firstMs * 2 ** (this.failures - after), maxMs);
  }
}

async function pour(
  body: AsyncIterable<Uint8Array>,
  mostBytes: number,
  onChunk: (chunk: Uint8Array) => void,
): Promise<void> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // Leaving the loop destroys the body and with it the connection.
    if (size > mostBytes) throw new WireError(`the answer has more than ${mostBytes} bytes`);
    onChunk(chunk);
  }
}

async function bodyOf(body: AsyncIterable<Uint8Array>, mostBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  await pour(body, mostBytes, (chunk) => chunks.push(chunk));
  return Buffer.concat(chunks);
}

function errorOf(what: string, statusCode: number, retryAfter: unknown, body: Buffer): KubeError {
  if (statusCode < 400) {
    const message = 'a redirect, which is not followed';
    return new KubeError(what, { status: statusCode, reason: '', message, retryAfterMs: null });
  }
  let status: unknown;
  try {
    status = parseJson(body);
  } catch {
    // A proxy's page: the number alone has to do.
  }
  return new KubeError(what, statusOf(status, statusCode, retryAfter));
}

/** The cluster has answered, if not as hoped. */
const isAnswer = (error: unknown): boolean =>
  error instanceof KubeError || error instanceof WireError || error instanceof LineTooLong;

const TIMED_OUT = new Error('no answer in time');

/** Says for people what went wrong without an answer. */
function silence(host: string, error: unknown): Failure {
  if (isFailure(error)) return error;
  return fail(
    'cluster_unreachable',
    `${host} does not answer: ${error instanceof Error ? error.message : error}`,
  );
}

/** What a client is told of an error of `KubeHttp`: cluster_denied, cluster_unreachable, or the Failure it is. */
export function explain(error: unknown): Failure {
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
      `The cluster does not know the account (401) that wants to ${error.what}${said}`,
    );
  if (status === 403) return fail('cluster_denied', `The account may not ${error.what}${said}`);
  return fail('cluster_unreachable', `The cluster answered ${status} to the request to ${error.what}${said}`);
}

type Take<T> = (body: AsyncIterable<Uint8Array>, mostBytes: number) => Promise<T>;

/** Opens nothing before the first call. */
export function kubeHttp(door: Door): KubeHttp {
  const origin = `https://${door.host}`;
  const connect: NonNullable<Pool.Options['connect']> = (_, callback) => {
    door.connect().then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
  const shared = { connect, keepAliveTimeout: 30_000, pipelining: 1, headersTimeout: CLOUD.headersMs };
  const calls = new Pool(origin, { ...shared, connections: CLOUD.calls, bodyTimeout: CLOUD.headersMs });
  // Watches stay open: they must not take the places of calls. Whoever watches knows when silence is too long.
  const streams = new Pool(origin, { ...shared, bodyTimeout: 0 });
  const breaker = new Breaker();
  let underWay = 0;

  async function send(pool: Pool, request: KubeRequest, signal: AbortSignal) {
    const method = request.method ?? 'GET';
    const answer = await ask.call(pool, {
      method,
      path: `${door.prefix}${request.path}?${new URLSearchParams(request.query)}`,
      headers: {
        accept: 'application/json',
        'user-agent': 'berth',
        ...(request.body ? { 'content-type': CONTENT_TYPES[method] } : {}),
        ...door.headers(),
      },
      body: request.body ? JSON.stringify(request.body) : null,
      signal,
    });
    breaker.answered();
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer.body;
    const body = await bodyOf(answer.body, STATUS_BYTES);
    throw errorOf(request.what, answer.statusCode, answer.headers['retry-after'], body);
  }

  /** Runs `work` with the breaker around it: what is no answer at all becomes cluster_unreachable. */
  async function guarded<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    breaker.check();
    try {
      return await work();
    } catch (error) {
      // A caller who has left says nothing about the cluster.
      if (isAnswer(error) || (signal.aborted && signal.reason !== TIMED_OUT)) throw error;
      const failure = silence(door.host, error);
      breaker.silent(failure.message);
      throw failure;
    }
  }

  /** Sends it, again after each 429 while there is time, and gives the body to `take`. */
  async function attempt<T>(request: KubeRequest, take: Take<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      try {
        const body = await send(calls, request, signal);
        return await take(body, request.mostBytes ?? CLOUD.objectBytes);
      } catch (error) {
        if (!(error instanceof KubeError) || error.status.status !== 429) throw error;
        const pauseMs = Math.max(error.status.retryAfterMs ?? 1_000, CLOUD.againMs);
        await sleep(pauseMs, undefined, { signal }).catch(() => {
          throw error;
        });
      }
    }
  }

  async function call<T>(request: KubeRequest, take: Take<T>): Promise<T> {
    if (underWay >= CLOUD.calls + CLOUD.waiting)
      throw fail('daemon_busy', `${door.host}: too many calls are waiting for it`);
    underWay += 1;
    // Not AbortSignal.any: a signal that lives as long as its actor would remember every call.
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(TIMED_OUT), request.deadlineMs ?? CLOUD.callMs);
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
    call: (request) => call(request, bodyOf),
    read: (request, onChunk) => call(request, (body, mostBytes) => pour(body, mostBytes, onChunk)),
    async stream(request, onLine, signal) {
      const split = lineSplitter(CLOUD.watchLineBytes);
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
