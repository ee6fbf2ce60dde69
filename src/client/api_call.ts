// One call of an operation: sends address, token, query and body; returns the decoded answer or throws a
// BerthError.
import type { AnswerOf, InputOf, Operation, QueryInputOf } from '../api/operation.ts';
import { REQUIRED_FIELDS } from '../api/required_fields.ts';
import { MAY_TAKE_EFFECT } from '../protocol/errors.ts';
import { BerthError, errorFromAnswer, isBerthError } from './errors.ts';
import type { Access } from './prove_server.ts';
import type { HttpAnswer, Transport } from './transport.ts';

/**
 * The endpoint of one half of the API (daemon or cloud). The getters run for every call, because a daemon may
 * come back at another address.
 */
export interface Endpoint {
  transport: Transport;
  /** Without a trailing slash. */
  url: () => string;
  /** null: no token is sent, and no proof is asked for. */
  access: () => Access | null | Promise<Access | null>;
  /** Rereads the settings that `access` comes from. Absent: it does not change. */
  rereadAccess?: () => Promise<void>;
  /** The agent from within which a person forces a change: docs/reference.md "Agent tokens". */
  forcedIn?: string;
  /** The deadline of a call that does not wait for a state, in milliseconds; infinite: none. */
  deadlineMs: number;
  /** How long a call is retried while the daemon is busy, in milliseconds. The daemon sets the pauses. */
  busyRetryMs: number;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface ChangeOptions extends CallOptions {
  /** A request with the same key as an earlier one gets the same answer, and is not carried out again. */
  idempotencyKey?: string | undefined;
}

/** The input of an operation, typed by it. */
export type ApiRequest<O extends Operation = Operation> = ChangeOptions & {
  /** `{name}` of the path. */
  name?: string;
  query?: QueryInputOf<O>;
} & ([InputOf<O>] extends [undefined] ? unknown : { body: InputOf<O> });

/** An ApiRequest of any operation. */
interface AnyRequest extends ChangeOptions {
  name?: string;
  query?: Readonly<Record<string, unknown>>;
  body?: unknown;
}

/**
 * The path of `operation` with `name`, encoded. Throws `invalid_spec` for the names `.` and `..`: URLs
 * resolve them, also when encoded, so that the request would reach another operation.
 */
export function pathOf({ path }: Operation, name = ''): string {
  if (name === '.' || name === '..')
    throw new BerthError('invalid_spec', `"${name}" cannot be a name`, {
      status: 400,
      hint: 'Give the name of one that exists.',
    });
  return path.replace(/\{\w+\}/, () => encodeURIComponent(name));
}

/** Omits undefined and null values and empty lists. The items of a list are joined with commas. */
export function queryString(query: AnyRequest['query'] = {}): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value != null && !(Array.isArray(value) && value.length === 0))
    .map(([key, value]) => [key, String(value)]);
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : '';
}

/** The access after the settings were read again; undefined: it is the same as `access`. */
export async function changedAccess(
  endpoint: Endpoint,
  access: Access | null,
): Promise<Access | null | undefined> {
  await endpoint.rereadAccess?.();
  const current = await endpoint.access();
  return JSON.stringify(current) === JSON.stringify(access) ? undefined : current;
}

/**
 * Sends a request. If it is refused for its token, and the settings have another one by now, sends it once
 * more with that. A change that has begun is not repeated.
 */
async function sendWithAccess(
  endpoint: Endpoint,
  isRead: boolean,
  send: (access: Access | null) => Promise<HttpAnswer>,
): Promise<HttpAnswer> {
  const access = await endpoint.access();
  if (!endpoint.rereadAccess) return send(access);
  let refusal: HttpAnswer | BerthError;
  try {
    const answer = await send(access);
    if (answer.status !== 401) return answer;
    const text = await answer.text();
    refusal = { ...answer, text: async () => text };
    if (!isRead && text.includes(MAY_TAKE_EFFECT)) return refusal;
  } catch (error) {
    if (!isBerthError(error) || error.code !== 'unproven') throw error;
    refusal = error;
  }
  const current = await changedAccess(endpoint, access);
  if (current !== undefined) return send(current);
  if (isBerthError(refusal)) throw refusal;
  return refusal;
}

/**
 * Sends a request and resolves with the head of its answer, whatever its status. `isBuffered`: the body will
 * be read as one text.
 */
export async function sendRequest(
  endpoint: Endpoint,
  operation: Operation,
  request: AnyRequest,
  { lastEventId = null, isBuffered = false }: { lastEventId?: string | null; isBuffered?: boolean } = {},
): Promise<HttpAnswer> {
  const { name, query, body, signal, idempotencyKey } = request;
  const headers: [string, string][] = [];
  if (body !== undefined) headers.push(['Content-Type', 'application/json']);
  if (endpoint.forcedIn !== undefined) headers.push(['Berth-Agent', endpoint.forcedIn]);
  if (idempotencyKey !== undefined) headers.push(['Idempotency-Key', idempotencyKey]);
  if (lastEventId) headers.push(['Last-Event-ID', lastEventId]);
  const send = (access: Access | null): Promise<HttpAnswer> =>
    endpoint.transport.request({
      method: operation.method,
      url: endpoint.url() + pathOf(operation, name) + queryString(query),
      headers,
      isBuffered,
      access,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  // A page's session needs no token only because the daemon checks its bearer separately.
  const isRead = operation.method === 'GET';
  return operation.isPublic && isRead ? send(null) : sendWithAccess(endpoint, isRead, send);
}

/** The deadline of clients that set none. */
export const DEFAULT_DEADLINE_MS = 30_000;

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
export const call = async <O extends Operation>(
  endpoint: Endpoint,
  operation: O,
  request: ApiRequest<O>,
): Promise<AnswerOf<O>> => (await callForPage(endpoint, operation, request)).page;

/** One page of a list, and the value of `continue` for the next one; null: it is the last. */
export interface Page<T> {
  page: T;
  next: string | null;
}

/** Like `call`, for a list in pages: docs/reference.md "Lists of workloads". */
export async function callForPage<O extends Operation>(
  endpoint: Endpoint,
  operation: O,
  request: ApiRequest<O>,
): Promise<Page<AnswerOf<O>>> {
  const until = performance.now() + endpoint.busyRetryMs;
  for (;;) {
    try {
      return await callOnce<AnswerOf<O>>(endpoint, operation, request);
    } catch (error) {
      const isBusy = isBerthError(error) && error.code === 'daemon_busy';
      const wait = isBusy ? (error.retryAfterMs ?? BUSY_PAUSE_MS) : Number.POSITIVE_INFINITY;
      if (performance.now() + wait > until) throw error;
      await delay(wait, request.signal);
    }
  }
}

/** The value of `continue` in a header Link that names the next page. */
function nextPage(link: string | null): string | null {
  const target = /<([^>]*)>; rel="next"/.exec(link ?? '')?.[1];
  return target === undefined ? null : new URLSearchParams(target.split('?')[1]).get('continue');
}

async function callOnce<T>(endpoint: Endpoint, operation: Operation, request: AnyRequest): Promise<Page<T>> {
  const hasDeadline = operation.isPrompt && Number.isFinite(endpoint.deadlineMs);
  const late = hasDeadline ? AbortSignal.timeout(endpoint.deadlineMs) : undefined;
  const signals = [request.signal, late].filter((signal) => signal !== undefined);
  const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
  try {
    const answer = await sendRequest(endpoint, operation, { ...request, signal }, { isBuffered: true });
    const body = await answer.text();
    if (answer.status < 200 || answer.status > 299) {
      throw errorFromAnswer(answer.status, answer.header('retry-after'), body);
    }
    return { page: parseAnswer(operation, answer.status, body), next: nextPage(answer.header('link')) };
  } catch (error) {
    if (!late?.aborted || request.signal?.aborted) throw error;
    const target = pathOf(operation, request.name);
    const message = `no answer to ${operation.method} ${target} within ${endpoint.deadlineMs / 1000} s`;
    throw new BerthError('deadline', message, { hint: 'The daemon is running but does not respond.' });
  }
}

function isAnswerOf(operation: Operation, status: number, value: unknown): boolean {
  const { otherStatus, otherAnswer } = operation;
  const answer = (status === otherStatus ? otherAnswer : null) ?? operation.answer;
  const required = answer === null ? undefined : REQUIRED_FIELDS[answer];
  if (typeof value !== 'object' || value === null) return false;
  if (required === undefined) return true;
  return required === 'list' ? Array.isArray(value) : required.every((field) => field in value);
}

/** Parses an answer to `operation`. Throws bad_answer if it is not JSON, or lacks fields that Berth sends. */
function parseAnswer<T>(operation: Operation, status: number, body: string): T {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    const message = 'the answer is no JSON: is it berth that listens there?';
    throw new BerthError('bad_answer', message, { status }, { cause: error });
  }
  // The fields that were looked for tell the shape.
  if (isAnswerOf(operation, status, value)) return value as T;
  throw new BerthError('bad_answer', 'the answer lacks its fields: is it berth that listens there?', {
    status,
  });
}
