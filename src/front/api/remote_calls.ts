// The part of /k8s that another Berth answers: docs/reference.md "Remote tethers".
import { deadlineSignal } from '../../adapters/deadline_signal.ts';
import { fail } from '../../protocol/errors.ts';
import { systemClock } from '../../runtime/clock.ts';
import { CLOUD, CLOUD_EVENTS, RELAY, WAKE_ORDER } from '../../settings/cloud_limits.ts';
import { HTTP } from '../../settings/limits.ts';
import type { HttpExchange, ResponseHeaders, ResponseStream } from '../server/http_server.ts';
import { KEEP_ALIVE_COMMENT } from '../streams/event_hub.ts';
import type { AppContext } from './app_context.ts';
import { readJsonBody } from './json_body.ts';
import type { PendingCalls } from './pending_calls.ts';
import type { RemoteAnswer, RemoteApi, RemoteRequest } from './remote_api.ts';
import { type HttpReply, headersOf } from './reply.ts';
import type { Route } from './routes.ts';

const PASSED_HEADERS = ['content-type', 'accept', 'idempotency-key', 'last-event-id'];
const RETURNED_HEADERS = ['Link', 'Berth-Operation', 'Idempotent-Replayed', 'Retry-After'];
/** The content types of a Berth's answers. A proxy's error page has none of these. */
const ANSWERED_TYPE = /^(application\/json|application\/openmetrics-text|text\/(csv|plain|event-stream))\b/;

/** The parts of a request to pass on, without its body. Must be read before anything is awaited. */
function passedHead(exchange: HttpExchange): Pick<RemoteRequest, 'method' | 'path' | 'headers'> {
  const query = exchange.query();
  const headers = PASSED_HEADERS.flatMap((name): [string, string][] => {
    const value = exchange.header(name);
    return value === '' ? [] : [[name, value]];
  });
  return {
    method: exchange.method === 'HEAD' ? 'GET' : exchange.method,
    path: query === '' ? exchange.path : `${exchange.path}?${query}`,
    headers,
  };
}

/** Resolves with the body of a request; null if it has none. Fails as `readJsonBody` does. */
function passedBody(exchange: HttpExchange): Promise<string | null> {
  if (!exchange.head.hasBody) return Promise.resolve(null);
  return readJsonBody(exchange).then((bytes) => (bytes.length > 0 ? Buffer.from(bytes).toString() : null));
}

/** The time limit for an answer, in milliseconds: the other Berth's own limits plus the transfer. */
function answerLimitMs({ isPrompt, keyKind }: Route, query: string): number {
  if (isPrompt) return RELAY.answerTimeoutMs;
  const asked = Number(new URLSearchParams(query).get('timeout')) || CLOUD.defaultWakeWaitMs;
  const workMs = keyKind === null ? CLOUD.bulkTimeoutMs : Math.max(CLOUD.scaleTimeoutMs, CLOUD.syncTimeoutMs);
  const waitMs = WAKE_ORDER.waitMs + Math.min(asked, HTTP.maxQueryDurationMs);
  return workMs + waitMs + RELAY.answerTimeoutMs;
}

/** The role that a refusal says the token is missing; null if it says something else. */
function missingRole(body: string): string | null {
  try {
    const { code, message }: { code?: unknown; message?: unknown } = JSON.parse(body);
    return code === 'forbidden' && typeof message === 'string' ? message : null;
  } catch {
    return null;
  }
}

/** Sends a request. Fails remote_unreachable, remote_denied, forbidden. */
async function askRemote(remote: RemoteApi, request: RemoteRequest): Promise<RemoteAnswer> {
  const answer = await remote.send(request);
  const { status } = answer;
  if (status === 401 || status === 403) {
    const missing = missingRole(await answer.text());
    if (missing !== null) throw fail('forbidden', missing);
    throw fail('remote_denied', `the other Berth refuses the token: ${status}`);
  }
  if (!ANSWERED_TYPE.test(answer.header('content-type') ?? ''))
    throw fail('remote_unreachable', `the server at cloud.remote is not a Berth: ${status}`);
  return answer;
}

/** The headers for an answer passed back; `usual` are the operation's own. */
function returnedHeaders(answer: RemoteAnswer, usual: ResponseHeaders): ResponseHeaders {
  const pairs = RETURNED_HEADERS.flatMap((name) => {
    const value = answer.header(name);
    return value === null ? [] : [name, value];
  });
  const type = answer.header('content-type') ?? '';
  return (type.startsWith('application/json') ? usual : headersOf(type)).with(...pairs);
}

const drained = (stream: ResponseStream): Promise<void> =>
  new Promise((resolve) => {
    stream.onDrain = resolve;
    if (!stream.isOpen || stream.bufferedBytes === 0) resolve();
  });

/**
 * Passes on the events of `answer` until either side ends, or the other Berth has been silent for too long: a
 * working one sends something every few seconds.
 */
async function passStream(answer: RemoteAnswer, stream: ResponseStream): Promise<void> {
  const giveUp = (): void => stream.destroy();
  const silence = setTimeout(giveUp, RELAY.deadPeerMs);
  try {
    for await (const chunk of answer.chunks()) {
      silence.refresh();
      if (!stream.isOpen) return;
      stream.write(Buffer.from(chunk));
      if (stream.bufferedBytes > CLOUD_EVENTS.maxUnreadReplayBytes) await drained(stream);
    }
    stream.end();
  } catch {
    // The client reconnects and says what it has seen.
    giveUp();
  } finally {
    clearTimeout(silence);
  }
}

/** A request that another Berth answers. */
export interface PassedRequest {
  exchange: HttpExchange;
  reply: HttpReply;
  route: Route;
  app: AppContext;
  /** Tracks the request until it is answered. */
  pending: PendingCalls;
}

/** Passes a request on to `remote`. Throws daemon_busy, unsupported_media_type. */
export function passOn({ exchange, reply, route, app, pending }: PassedRequest, remote: RemoteApi): void {
  const isStreamed = route.kind === 'stream';
  if (isStreamed) app.streams.assertRoom(null);
  const gone = new AbortController();
  const cut = (): void => gone.abort();
  const head = { ...passedHead(exchange), isStreamed };
  const limitMs = answerLimitMs(route, exchange.query());
  const work = passedBody(exchange).then(async (body) => {
    exchange.whenGone(cut);
    // A stream has no end.
    const deadline = isStreamed ? null : deadlineSignal(systemClock, limitMs, gone.signal);
    try {
      const answer = await askRemote(remote, { ...head, body, signal: deadline?.signal ?? gone.signal });
      const text = isStreamed && answer.status === 200 ? null : await answer.text();
      return { answer, text };
    } finally {
      deadline?.clear();
    }
  });
  pending.track(reply, { isOfToken: false, onCut: cut }, work, ({ answer, text }) => {
    if (text !== null) {
      reply.value(answer.status, returnedHeaders(answer, route.headers), text);
      return;
    }
    const stream = reply.stream(route.headers, KEEP_ALIVE_COMMENT);
    if (!stream) {
      cut();
      return;
    }
    app.streams.add(stream, null);
    stream.onClose = cut;
    void passStream(answer, stream);
  });
}
