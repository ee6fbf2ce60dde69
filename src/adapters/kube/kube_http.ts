// Calls to one cluster's API server over pooled connections. The only file that imports undici.
//
// A cluster may be anyone's and may be down. So every call has a deadline and a limit for its answer, only a
// few are open at once, few may wait, and a cluster that does not answer is left alone for a while. No
// cluster delays the others.
import { setImmediate as nextTurn } from 'node:timers/promises';
import ask from 'undici/lib/api/api-request.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import { fail } from '../../protocol/errors.ts';
import { type Clock, type Failure, isFailure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';
import { deadlineSignal } from '../deadline_signal.ts';
import { abortablePause } from './abortable_pause.ts';
import { type AdmittedCall, CircuitBreaker } from './circuit_breaker.ts';
import { isTimeout, isTransportError, KubeError, WireError } from './kube_errors.ts';
import { lineSplitter } from './line_splitter.ts';
import { Pace } from './pace.ts';
import { kubeStatusOf, parseJson } from './parse_objects.ts';

export interface KubeRequest {
  /** For people, such as `patch deployments.apps in namespace web`. */
  action: string;
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Of the body, if it differs from the method's in `CONTENT_TYPES`. */
  contentType?: string;
  /** Below the server's prefix. Names in it must have been validated. */
  path: string;
  query?: Record<string, string>;
  body?: object;
  maxBytes?: number;
  deadlineMs?: number;
  /** Aborts the call. */
  signal?: AbortSignal;
  /** A stream follows: the call is made on a connection of the streams, which then serves both. */
  precedesStream?: boolean;
}

export interface KubeHttp {
  /**
   * The body of the answer. Fails with a KubeError, a WireError, cluster_unreachable, cluster_denied or
   * daemon_busy. Retries after a 429 while there is time; a GET also after a broken connection.
   */
  call(request: KubeRequest): Promise<Buffer>;
  /**
   * Like `call`, with the body in pieces as it arrives. Each attempt has a sink of its own. Whatever the sink
   * throws ends the call.
   */
  read<T>(request: KubeRequest, openSink: () => BodySink<T>): Promise<T>;
  /**
   * Passes every line of an endless answer to `sink`, until the server ends it. Fails as `call`, with
   * whatever `sink` throws, and when `signal` aborts.
   */
  stream(request: KubeRequest, sink: LineSink, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** Receives the body of an answer in pieces, and makes a value from it. */
export interface BodySink<T> {
  push(chunk: Uint8Array): void;
  end(): T;
}

/** Receives the lines of an endless answer. */
export interface LineSink {
  /** The answer has begun. */
  onOpen(): void;
  onLine(line: Uint8Array): void;
  /** Resolves when more lines are welcome; until then they stay in the socket. undefined: always. */
  whenReady?: (() => Promise<void>) | undefined;
}

type Body = AsyncIterable<Uint8Array>;

const CONTENT_TYPES = {
  GET: '',
  POST: 'application/json',
  PATCH: 'application/json-patch+json',
  DELETE: 'application/json',
} as const;
/**
 * Admission webhooks may delay a change. After that, the API server's answer names the one that did not
 * respond.
 */
const TIMEOUTS = {
  GET: { headersMs: CLOUD.headersTimeoutMs, callMs: CLOUD.callTimeoutMs },
  POST: { headersMs: CLOUD.headersTimeoutMs, callMs: CLOUD.callTimeoutMs },
  PATCH: { headersMs: CLOUD.changeTimeoutMs, callMs: CLOUD.changeTimeoutMs },
  DELETE: { headersMs: CLOUD.changeTimeoutMs, callMs: CLOUD.changeTimeoutMs },
} as const;
/** An error's body is a Status: small. */
const MAX_STATUS_BYTES = 256 * 1024;
const MAX_INTERIM_ANSWERS = 16;
const KEEP_ALIVE_MS = 30_000;
const DEFAULT_RETRY_AFTER_MS = 1_000;

function bufferSink(): BodySink<Buffer> {
  const chunks: Uint8Array[] = [];
  return { push: (chunk) => chunks.push(chunk), end: () => Buffer.concat(chunks) };
}

/** Throws a WireError for more than `maxBytes`. */
async function readBody<T>(body: Body, maxBytes: number, sink: BodySink<T>, pace: Pace): Promise<T> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // Leaving the loop destroys the body, and with it the connection.
    if (size > maxBytes) throw new WireError(`the answer has more than ${maxBytes} bytes`);
    await pace.run(() => sink.push(chunk));
  }
  return sink.end();
}

/** Throws a WireError at one interim answer (1xx) too many, because a server could send them forever. */
function interimAnswers(): () => void {
  let count = 0;
  return () => {
    count += 1;
    if (count > MAX_INTERIM_ANSWERS)
      throw new WireError(`more than ${MAX_INTERIM_ANSWERS} interim answers (1xx)`);
  };
}

/**
 * JSON as Go writes it. API servers compare the value of a patch's test as text with their own encoding. To
 * an older one `a<b` differs from `a<b`, because it writes `a\u003cb`.
 */
const jsonText = (value: object): string =>
  JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

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

/** The failure for a missing answer; null: there was an answer, or `error` is a defect. */
function noAnswerFailure(host: string, error: unknown): Failure | null {
  if (isFailure(error)) return error;
  const unanswered = (reason: string): Failure =>
    fail('cluster_unreachable', `${host} does not answer: ${reason}`);
  if (isTimeout(error)) return unanswered('no answer in time');
  return isTransportError(error) ? unanswered(error.message) : null;
}

const BROKEN_CONNECTION_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** Whether a connection broke during a call, which may succeed on another connection. */
const isBrokenConnection = (error: unknown): boolean =>
  isTransportError(error) && error.code !== undefined && BROKEN_CONNECTION_CODES.has(error.code);

/**
 * A pool whose connections are made by `dialer`. `bodyTimeout`: the longest silence within an answer in ms;
 * 0: no limit.
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
   * Watches stay open, so they must not use up the connections of calls. Watchers decide themselves when
   * silence is too long.
   */
  private readonly streams: Pool;
  private readonly assertMayChange: () => void;
  private openCalls = 0;

  constructor(dialer: ClusterDialer, clock: Clock, assertMayChange: () => void) {
    this.assertMayChange = assertMayChange;
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
    return this.read(request, bufferSink);
  }

  async read<T>(request: KubeRequest, openSink: () => BodySink<T>): Promise<T> {
    if (this.openCalls >= CLOUD.maxConcurrentCalls + CLOUD.maxQueuedCalls)
      throw fail('daemon_busy', `${this.dialer.host}: too many calls are waiting for it`);
    this.openCalls += 1;
    const { callMs } = TIMEOUTS[request.method ?? 'GET'];
    const deadline = deadlineSignal(this.clock, request.deadlineMs ?? callMs, request.signal);
    try {
      const value = await this.attempts(request, openSink, deadline.signal);
      // undici reuses a connection only from the turn of the event loop after its answer.
      if (request.precedesStream) await nextTurn();
      return value;
    } finally {
      deadline.clear();
      this.openCalls -= 1;
    }
  }

  async stream(request: KubeRequest, sink: LineSink, signal: AbortSignal): Promise<void> {
    const split = lineSplitter(CLOUD.maxWatchLineBytes);
    await this.guarded(signal, async (onAnswer) => {
      const body = await this.send(this.streams, request, signal, onAnswer);
      sink.onOpen();
      const pace = new Pace(this.clock, signal);
      for await (const chunk of body) {
        const lines = await pace.run(() => split(chunk));
        for (const line of lines) await pace.run(() => sink.onLine(line));
        await sink.whenReady?.();
      }
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.calls.destroy(), this.streams.destroy()]);
  }

  /**
   * Sends the request, and retries after each 429 until `signal` aborts; a GET also after a broken
   * connection.
   */
  private async attempts<T>(
    request: KubeRequest,
    openSink: () => BodySink<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const method = request.method ?? 'GET';
    const maxBytes = request.maxBytes ?? CLOUD.maxObjectBytes;
    let isBroken = false;
    for (let broken = 0; ; broken += isBroken ? 1 : 0) {
      try {
        return await this.guarded(signal, async (onAnswer) => {
          try {
            return await readBody(
              await this.send(request.precedesStream ? this.streams : this.calls, request, signal, onAnswer),
              maxBytes,
              openSink(),
              new Pace(this.clock, signal),
            );
          } catch (error) {
            isBroken = isBrokenConnection(error);
            throw error;
          }
        });
      } catch (error) {
        const isRepeatable = isBroken && method === 'GET' && broken < CLOUD.maxReadRetries;
        const busy = error instanceof KubeError && error.status.status === 429 ? error.status : null;
        if (!isRepeatable && !busy) throw error;
        const askedMs = busy ? (busy.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS) : 0;
        if (!(await abortablePause(this.clock, Math.max(askedMs, CLOUD.minRetryAfterMs), signal)))
          throw error;
      }
    }
  }

  /**
   * Runs `work` behind the breaker: no answer at all becomes cluster_unreachable. `work` reports when the
   * cluster begins to answer.
   */
  private async guarded<T>(signal: AbortSignal, work: (onAnswer: () => void) => Promise<T>): Promise<T> {
    let call: AdmittedCall | null = null;
    try {
      call = await this.breaker.admit(signal);
      const { onAnswer } = call;
      return await work(onAnswer);
    } catch (error) {
      // A caller that has given up says nothing about the cluster.
      if (signal.aborted && !isTimeout(signal.reason)) throw error;
      if (error instanceof KubeError) throw this.redacted(error);
      const failure = noAnswerFailure(this.dialer.host, error);
      if (!failure) throw error;
      // A change that this Berth may not make says nothing about the cluster.
      if (failure.code !== 'standing_by') call?.onNoAnswer(failure.message);
      throw failure;
    } finally {
      call?.onGivenUp();
    }
  }

  /** `error` without the token that the request contained. */
  private redacted({ action, status }: KubeError): KubeError {
    const { dialer } = this;
    const [reason, message] = [dialer.redact(status.reason), dialer.redact(status.message)];
    return new KubeError(action, { ...status, reason, message });
  }

  /** The body of a success; any other answer is thrown as a KubeError. */
  private async send(
    pool: Pool,
    request: KubeRequest,
    signal: AbortSignal,
    onAnswer: () => void,
  ): Promise<Body> {
    const method = request.method ?? 'GET';
    // Nothing may be awaited between this check and the request.
    if (method !== 'GET') this.assertMayChange();
    const answer = await ask.call(pool, {
      method,
      path: `${this.dialer.prefix}${request.path}?${new URLSearchParams(request.query)}`,
      headers: {
        accept: 'application/json',
        'user-agent': 'berth',
        ...(request.body ? { 'content-type': request.contentType ?? CONTENT_TYPES[method] } : {}),
        ...this.dialer.headers(),
      },
      body: request.body ? jsonText(request.body) : null,
      headersTimeout: TIMEOUTS[method].headersMs,
      onInfo: interimAnswers(),
      signal,
    });
    onAnswer();
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer.body;
    const body = await readBody(answer.body, MAX_STATUS_BYTES, bufferSink(), new Pace(this.clock, signal));
    throw kubeErrorOf(request.action, answer.statusCode, answer.headers['retry-after'], body);
  }
}

/**
 * Calls over the connections of `dialer`, which are opened from the first call on. `assertMayChange` is
 * called right before each request other than GET, and whatever it throws ends the call.
 */
export const createKubeHttp = (
  dialer: ClusterDialer,
  clock: Clock,
  assertMayChange: () => void = () => undefined,
): KubeHttp => new PooledKubeHttp(dialer, clock, assertMayChange);
