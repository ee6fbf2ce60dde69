// The common part of all answers: headers, and errors as clients see them. docs/reference.md "Responses",
// "Errors".
import { ERRORS, type ErrorCode, type FailureDetail, fail, isErrorCode } from '../../protocol/errors.ts';
import { type Failure, isFailure } from '../../runtime/actor.ts';
import type { RequestCounts } from '../metrics/request_counts.ts';
import { type HttpExchange, ResponseHeaders, type ResponseStream } from '../server/http_server.ts';

/** These keep pages of other origins from reading an answer or reaching its window. */
export const ISOLATION_HEADERS: readonly string[] = [
  ...['X-Content-Type-Options', 'nosniff'],
  ...['Cross-Origin-Resource-Policy', 'same-origin'],
  ...['Cross-Origin-Opener-Policy', 'same-origin'],
];

/** For data rather than pages: keeps browsers from executing or framing it. */
export const DATA_POLICY: readonly string[] = [
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
];

const SAFE_HEADERS = ['Cache-Control', 'no-store', ...ISOLATION_HEADERS, ...DATA_POLICY];

export const EMPTY_HEADERS = new ResponseHeaders(SAFE_HEADERS);
/** The headers of an answer of `contentType`. */
export const headersOf = (contentType: string): ResponseHeaders =>
  new ResponseHeaders(['Content-Type', contentType, ...SAFE_HEADERS]);

export const JSON_HEADERS = headersOf('application/json; charset=utf-8');
export const EVENT_STREAM_HEADERS = new ResponseHeaders([
  'Content-Type',
  'text/event-stream',
  ...SAFE_HEADERS,
  'X-Accel-Buffering',
  'no',
]);

/** The CORS headers of every answer to an allowed extension or page. Never with credentials. */
const corsHeaders = (origin: string): string[] =>
  [
    ['Access-Control-Allow-Origin', origin],
    ['Access-Control-Expose-Headers', 'Retry-After, Allow, Link, Berth-Operation, Idempotent-Replayed'],
    ['Vary', 'Origin'],
  ].flat();

export const preflightHeaders = (origin: string): ResponseHeaders =>
  EMPTY_HEADERS.with(
    ...['Access-Control-Allow-Origin', origin, 'Vary', 'Origin'],
    ...['Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
    ...['Access-Control-Allow-Headers', 'Authorization, Content-Type, Last-Event-ID, Idempotency-Key'],
  );

/** The meaning of each runtime code for a client. */
const RUNTIME_CODES: ReadonlyMap<string, [code: ErrorCode, message: string]> = new Map([
  ['overloaded', ['daemon_busy', 'the daemon has too much to do at this moment']],
  ['deadline', ['daemon_busy', 'the daemon did not get to it in time']],
  ['gone', ['daemon_busy', 'that part of the daemon is being started']],
  ['crashed', ['internal', 'a part of the daemon failed and was started again']],
]);

/**
 * Converts any error to one with a code of the table. A foreign error goes to `onDefect` and becomes
 * `internal`.
 */
function toApiFailure(error: unknown, onDefect: (error: unknown) => void): Failure {
  if (isFailure(error)) {
    if (isErrorCode(error.code)) return error;
    const [code, message] = RUNTIME_CODES.get(error.code) ?? [];
    if (code) return fail(code, message ?? '');
  }
  onDefect(error);
  return fail('internal', 'something went wrong in the daemon');
}

/** An error as clients see it, with a code of the table. */
export function failureOfTable(error: unknown): { code: ErrorCode; message: string } & FailureDetail {
  const { code, message, detail } = toApiFailure(error, () => undefined);
  const { hint, details } = isDetail(detail) ? detail : {};
  return {
    ...(hint !== undefined && { hint }),
    ...(details && { details }),
    code: isErrorCode(code) ? code : 'internal',
    message,
  };
}

const isDetail = (detail: unknown): detail is FailureDetail => typeof detail === 'object' && detail !== null;

/** The dependencies of every answer. */
export interface ReplyContext {
  /** Counts every answer. */
  readonly requests: RequestCounts;
  /** Called for exceptions that are not Failures. */
  readonly onDefect: (error: unknown) => void;
}

/** The answer to one exchange. */
export class HttpReply {
  /** The id of the operation that answers; empty if none. */
  operation = '';
  readonly exchange: HttpExchange;
  /** The origin of an allowed extension or page, else empty. */
  readonly origin: string;
  private readonly context: ReplyContext;

  constructor(exchange: HttpExchange, origin: string, context: ReplyContext) {
    this.exchange = exchange;
    this.origin = origin;
    this.context = context;
  }

  /** Counts an answer that is not sent from here. */
  count(status: number): void {
    this.context.requests.add(this.operation, status);
  }

  /** `head` with the CORS headers that let an allowed extension or page read the answer. */
  withCors(head: ResponseHeaders): ResponseHeaders {
    return this.origin === '' ? head : head.with(...corsHeaders(this.origin));
  }

  empty(status: number, head: ResponseHeaders): void {
    this.count(status);
    this.exchange.send(status, this.withCors(head), '');
  }

  /** Sends bytes and text as they are, anything else as JSON. */
  value(status: number, headers: ResponseHeaders, value: unknown): void {
    const isReady = value instanceof Uint8Array || typeof value === 'string';
    this.bytes(status, headers, isReady ? value : JSON.stringify(value));
  }

  /**
   * Sends the head of a streamed answer, whose status is 200. null: the client has disconnected, or sent
   * HEAD.
   */
  stream(head: ResponseHeaders, keepAliveBytes: Uint8Array): ResponseStream | null {
    const { exchange } = this;
    this.count(200);
    if (exchange.method !== 'HEAD') return exchange.startStream(this.withCors(head), keepAliveBytes);
    exchange.send(200, this.withCors(head), { length: null });
    return null;
  }

  bytes(status: number, head: ResponseHeaders, body: Uint8Array | string, close = false): void {
    const { exchange } = this;
    this.count(status);
    const content = exchange.method === 'HEAD' ? { length: Buffer.byteLength(body) } : body;
    exchange.send(status, this.withCors(head), content, close);
  }

  /**
   * `pairs`: more headers. `close`: closes the connection, so that an unread body is not taken for the next
   * request.
   */
  fail(error: unknown, pairs: readonly string[] = [], close = false): void {
    const { code, message, detail } = toApiFailure(error, this.context.onDefect);
    const row = ERRORS[isErrorCode(code) ? code : 'internal'];
    const { hint = row.hint, details } = isDetail(detail) ? detail : {};
    const more = [...pairs];
    if (row.status === 503) more.push('Retry-After', '1');
    if (row.status === 401) more.push('WWW-Authenticate', 'Bearer');
    const isCut = close || row.status === 408 || row.status === 413;
    const body = JSON.stringify({ code, message, hint, details });
    this.bytes(row.status, more.length > 0 ? JSON_HEADERS.with(...more) : JSON_HEADERS, body, isCut);
  }
}
