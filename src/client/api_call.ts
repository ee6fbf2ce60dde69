// One call: address, token, query and body out; the decoded answer or a BerthError back.
import { BerthError, errorFromAnswer, isBerthError } from './errors.ts';
import type { HttpAnswer, Transport } from './transport.ts';

/** Where one half of the API (daemon or cloud) is reached; asked anew for every call, because a daemon may come back elsewhere. */
export interface Endpoint {
  transport: Transport;
  /** Without a slash at the end. */
  url: () => string;
  /** null: none is sent. */
  token: () => string | null;
  /** How long a call that does not wait for anything may take, in milliseconds. */
  deadlineMs: number;
  /** How long a call is made again, as the daemon asks, while that says it is busy, in milliseconds. */
  busyRetryMs: number;
}

export type Query = readonly (readonly [key: string, value: string | number | boolean | undefined])[];

export interface CallOptions {
  signal?: AbortSignal;
}

interface RequestDetail extends CallOptions {
  query?: Query;
  body?: unknown;
  /** The daemon answers when something has happened: no deadline of ours. */
  noDeadline?: boolean;
}

/** A path with every part encoded: `path('/v1/services', name, 'start')`. */
export const encodePath = (base: string, ...parts: string[]): string =>
  [base, ...parts.map(encodeURIComponent)].join('/');

function requestUrl(endpoint: Endpoint, target: string, query: Query): string {
  const given = query.filter(([, value]) => value !== undefined).map(([key, value]) => [key, String(value)]);
  const search = given.length > 0 ? `?${new URLSearchParams(given)}` : '';
  return endpoint.url() + target + search;
}

/** Sends a request and resolves with the head of its answer, whatever its status. */
export function sendRequest(
  endpoint: Endpoint,
  method: string,
  target: string,
  detail: {
    query?: Query;
    body?: unknown;
    lastEventId?: string | null;
    signal?: AbortSignal;
    whole?: boolean;
  } = {},
): Promise<HttpAnswer> {
  const { query = [], body, lastEventId, signal, whole = false } = detail;
  const headers: [string, string][] = [];
  const token = endpoint.token();
  if (token) headers.push(['Authorization', `Bearer ${token}`]);
  if (body !== undefined) headers.push(['Content-Type', 'application/json']);
  if (lastEventId) headers.push(['Last-Event-ID', lastEventId]);
  return endpoint.transport.request({
    method,
    url: requestUrl(endpoint, target, query),
    headers,
    isBuffered: whole,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
}

const BUSY_PAUSE_MS = 1_000;

/** Resolves after `ms`, at once when `signal` aborts. */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}

/**
 * Calls the API and resolves with the decoded body of a 2xx answer.
 * Rejects with a BerthError: the daemon's own, `unreachable`, `deadline` or `bad_answer`.
 */
export async function callApi<T>(
  endpoint: Endpoint,
  method: string,
  target: string,
  detail: RequestDetail = {},
): Promise<T> {
  const until = performance.now() + endpoint.busyRetryMs;
  for (;;) {
    try {
      return await callApiOnce<T>(endpoint, method, target, detail);
    } catch (error) {
      const isBusy = isBerthError(error) && error.code === 'daemon_busy';
      const wait = isBusy ? (error.retryAfterMs ?? BUSY_PAUSE_MS) : Number.POSITIVE_INFINITY;
      if (performance.now() + wait > until) throw error;
      await delay(wait, detail.signal);
    }
  }
}

async function callApiOnce<T>(
  endpoint: Endpoint,
  method: string,
  target: string,
  detail: RequestDetail,
): Promise<T> {
  const { signal: outer, noDeadline, ...rest } = detail;
  const late = noDeadline ? undefined : AbortSignal.timeout(endpoint.deadlineMs);
  const signals = [outer, late].filter((signal) => signal !== undefined);
  try {
    const signal = signals.length > 0 ? { signal: AbortSignal.any(signals) } : {};
    const answer = await sendRequest(endpoint, method, target, { ...rest, ...signal, whole: true });
    const body = await answer.text();
    if (answer.status < 200 || answer.status > 299) {
      throw errorFromAnswer(answer.status, answer.header('retry-after'), body);
    }
    return parseAnswer(answer.status, body);
  } catch (error) {
    if (!late?.aborted || outer?.aborted) throw error;
    const message = `no answer to ${method} ${target} within ${endpoint.deadlineMs / 1000} s`;
    throw new BerthError('deadline', message, { hint: 'The daemon is there but does not answer.' });
  }
}

function parseAnswer<T>(status: number, body: string): T {
  try {
    return JSON.parse(body);
  } catch (error) {
    const message = 'the answer is no JSON: is it berth that listens there?';
    throw new BerthError('bad_answer', message, { status }, { cause: error });
  }
}
