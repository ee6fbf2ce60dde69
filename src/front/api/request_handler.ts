// Handles a request: guard, route, input, handler, answer. Reads are answered at once from the views. All
// needed parts of the request are read before the first await.
import { isCloudChange, isOfRemote, type KeyKind } from '../../api/operation.ts';
import { fail } from '../../protocol/errors.ts';
import { GROUP_NAME_PATTERN, POLICY_NAME_PATTERN, SERVICE_NAME_PATTERN } from '../../protocol/names.ts';
import { TOKEN_NAME_PATTERN } from '../../protocol/principals.ts';
import { STACK_NAME_PATTERN } from '../../protocol/stacks.ts';
import { HTTP } from '../../settings/limits.ts';
import type { HttpExchange, ResponseHeaders, ResponseStream } from '../server/http_server.ts';
import { AnswerParts, BLANK_LINE, sendParts } from '../streams/answer_parts.ts';
import { KEEP_ALIVE_COMMENT } from '../streams/event_hub.ts';
import { checkAgentBody, checkAgentRight, forcedEvent } from './agent_rights.ts';
import type { AppContext } from './app_context.ts';
import type { Caller } from './caller.ts';
import { askerOf, operationKey, runOperation } from './cloud_operations.ts';
import { checkCloudRight } from './cloud_rights.ts';
import { type Guard, givenToken, isPreflight } from './guard.ts';
import type { RequestContext } from './handler.ts';
import { isJsonType, parseBody, readJsonBody } from './json_body.ts';
import { type PendingCall, PendingCalls } from './pending_calls.ts';
import { isPublicPath } from './public_paths.ts';
import { percentDecode, readQuery } from './query.ts';
import { Reach } from './reach.ts';
import { passOn } from './remote_calls.ts';
import {
  EMPTY_HEADERS,
  EVENT_STREAM_HEADERS,
  HttpReply,
  headersOf,
  preflightHeaders,
  type ReplyContext,
} from './reply.ts';
import type { RouteMatch, Router } from './router.ts';
import type { Route, RouteOf } from './routes.ts';
import { type PageLookup, sendStaticPage } from './static_pages.ts';

export interface RequestHandlerOptions {
  guard: Guard;
  router: Router<Route>;
  app: AppContext;
  /** Pages for open paths that have no route. */
  pageLookup: PageLookup;
  onDefect: (error: unknown) => void;
}

const KEY_RULES: Readonly<Record<KeyKind, { pattern: RegExp; must: string } | null>> = {
  service: { pattern: SERVICE_NAME_PATTERN, must: 'must be a name of a-z, 0-9, _ and -' },
  agent: { pattern: SERVICE_NAME_PATTERN, must: 'must be a name of a-z, 0-9, _ and -' },
  stack: { pattern: STACK_NAME_PATTERN, must: 'must be the name of a stack' },
  group: { pattern: GROUP_NAME_PATTERN, must: 'must be a name of A-Z, a-z, 0-9, _ and -' },
  policy: { pattern: POLICY_NAME_PATTERN, must: 'must be a name of a-z, 0-9, . and -' },
  token: { pattern: TOKEN_NAME_PATTERN, must: 'must be a name of a-z, 0-9, ., _ and -' },
  id: null,
};

/** The request headers that a `relay` passes on. */
const RELAYED_HEADERS = [
  ...['content-type', 'accept', 'authorization', 'berth-cloud-token'],
  ...['mcp-protocol-version', 'mcp-method', 'mcp-name'],
];

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** Invalid percent-encoding is a 400 for every method. */
function decodeKey({ key }: RouteMatch<Route>): string {
  const decoded = percentDecode(key);
  if (decoded === null) throw fail('invalid_spec', 'the path has broken percent-encoding');
  return decoded;
}

/** The bytes of a read. Throws the operation's code for an unknown key. */
function knownBytes(route: RouteOf<'read'>, key: string, bytes: Uint8Array | null): Uint8Array {
  if (bytes) return bytes;
  const { missing, path } = route;
  if (missing === null) throw new Error(`${path} says no code for what is missing`);
  throw fail(missing, `there is no ${missing.slice('unknown_'.length)} ${key}`);
}

/** The parts of a request that decide whether it may be made: its target, and its caller. */
type Asking = Pick<RequestContext, 'reach' | 'principal'>;
type Called = Asking & Pick<RequestContext, 'key' | 'caller'>;
type AnswerHead = Asking & Pick<RequestContext, 'status' | 'headers'>;

/** Who holds a stream by their own token; null: it is opened with the daemon's or the cloud's token. */
const streamHolder = ({ reach, principal }: Asking): string | null =>
  reach ? `agent:${reach.agent}` : (principal?.who ?? null);

/**
 * Whether `caller` may call `route` at all: a share may call only a few. `route` is undefined for an unknown
 * path, which other callers may see as such.
 */
function mayCall(caller: Caller, route: Route | undefined, key: string | null): boolean {
  return caller.kind !== 'share' || (route?.isShared === true && key === caller.share.agent);
}

const isOfToken = (route: Route, { caller }: Called): boolean =>
  caller.kind !== 'agent' && !route.isPublic && !route.path.startsWith('/k8s');

/**
 * Answers every request of one listener. The front has one per guard, and waits for its pending calls on
 * closing.
 */
export class RequestHandler {
  private readonly options: RequestHandlerOptions;
  /** Calls that have not been answered yet. */
  readonly pending: PendingCalls;
  private readonly context: ReplyContext;

  constructor(options: RequestHandlerOptions) {
    this.options = options;
    this.pending = new PendingCalls(options.onDefect);
    this.context = { requests: options.app.requests, onDefect: options.onDefect };
  }

  /** Must be awaited before `handle`: see ServerOptions. */
  prepare(exchange: HttpExchange): Promise<boolean> | null {
    const verified = this.options.guard.verify(exchange);
    if (!verified) return null;
    return verified.then(
      () => true,
      (error: unknown) => {
        new HttpReply(exchange, '', this.context).fail(error);
        return false;
      },
    );
  }

  /** Answers `exchange`, now or later. */
  readonly handle = (exchange: HttpExchange): void => {
    const { guard } = this.options;
    let reply: HttpReply | null = null;
    try {
      const { fault } = exchange.head;
      if (fault !== null) {
        const failure = fail('invalid_spec', `the request is ambiguous: ${fault}`);
        new HttpReply(exchange, '', this.context).fail(failure, [], true);
        return;
      }
      const { refusal, origin, caller } = guard.check(exchange);
      reply = new HttpReply(exchange, origin, this.context);
      // A connection that names another host was not meant for this daemon.
      if (refusal) reply.fail(refusal, [], refusal.code === 'forbidden_host');
      else {
        if (!isPublicPath(exchange.path) && !isPreflight(exchange)) exchange.markTrusted();
        this.route(exchange, reply, caller);
      }
    } catch (error) {
      reply ??= new HttpReply(exchange, '', this.context);
      reply.fail(error);
    }
  };

  private route(exchange: HttpExchange, reply: HttpReply, caller: Caller): void {
    const { method, path } = exchange;
    const { router } = this.options;
    const found = router.find(path);
    const route = isRead(method) ? found?.entry.get : found?.entry.rows.get(method);
    const key = found && route ? decodeKey(found) : null;
    if (!mayCall(caller, route, key))
      throw fail('forbidden_token', 'the token is not valid for this request');
    const { views } = this.options.app;
    const reach = caller.kind === 'agent' ? new Reach(views, caller.life) : null;
    const principal = caller.kind === 'principal' ? caller.principal : null;
    if (route && key !== null) this.run(exchange, reply, route, { key, caller, reach, principal });
    else if (reply.origin !== '' && isPreflight(exchange))
      exchange.send(204, preflightHeaders(reply.origin), '');
    else if (!found) this.sendPage(exchange, reply);
    else if (method === 'OPTIONS') reply.empty(204, EMPTY_HEADERS.with('Allow', found.entry.allow));
    else reply.fail(fail('method_not_allowed', `${path} has no ${method}`), ['Allow', found.entry.allow]);
  }

  private sendPage(exchange: HttpExchange, reply: HttpReply): void {
    const { path } = exchange;
    if (isPublicPath(path)) sendStaticPage(exchange, reply, this.options.pageLookup);
    else reply.fail(fail('not_found', `there is no ${path.slice(0, 200)}`));
  }

  private run(exchange: HttpExchange, reply: HttpReply, route: Route, by: Called): void {
    const { key, reach, principal } = by;
    reply.operation = route.id;
    const { app } = this.options;
    const { phase } = app;
    if (phase === 'starting' && !route.isAlways) throw fail('daemon_busy', 'the daemon is starting');
    if (!isRead(exchange.method)) this.checkChange(route, key);
    if (reach) checkAgentRight(route, key, reach, app);
    if (principal) checkCloudRight(route, key, principal, app.cloud);
    const { remote } = app.cloud;
    if (remote && isOfRemote(route)) {
      passOn({ exchange, reply, route, app, pending: this.pending }, remote);
      return;
    }
    switch (route.kind) {
      case 'read':
        this.runRead(exchange, reply, route, by);
        return;
      case 'call':
        this.runCall(exchange, reply, route, by);
        return;
      case 'stream':
        this.runStream(exchange, reply, route, by);
        return;
      case 'relay':
        this.runRelay(exchange, reply, route, by);
        return;
      case 'socket':
        this.runUpgrade(exchange, reply, route, by);
        return;
      default:
        route satisfies never;
    }
  }

  /** Throws while changes are refused, and for an invalid key. */
  private checkChange({ keyKind }: Route, key: string): void {
    if (this.options.app.phase === 'closing') throw fail('daemon_busy', 'the daemon is shutting down');
    const rule = keyKind ? KEY_RULES[keyKind] : null;
    if (!rule || rule.pattern.test(key)) return;
    const details = [{ path: 'name', message: `name ${rule.must}` }];
    throw fail('invalid_spec', `the name in the path ${rule.must}`, { details });
  }

  /** Runs `work` once the part of the daemon that `route` needs is up. */
  private whenServed<T>({ needs }: Route, work: () => T | Promise<T>): T | Promise<T> {
    switch (needs) {
      case null:
        return work();
      case 'cloud':
        return this.options.app.cloud.pass(work);
      case 'mcp':
        return this.options.app.mcp.ready().then(work);
      default:
        return needs satisfies never;
    }
  }

  private runRead(exchange: HttpExchange, reply: HttpReply, route: RouteOf<'read'>, by: Called): void {
    const { key, reach, principal } = by;
    const { app } = this.options;
    const query = exchange.query();
    const values = query === '' ? null : readQuery(query, route.query);
    const read = (): Uint8Array | Promise<Uint8Array> => {
      const bytes = route.run(app, key, values, reach, principal);
      if (!(bytes instanceof Promise)) return knownBytes(route, key, bytes);
      return bytes.then((later) => knownBytes(route, key, later));
    };
    const result = this.whenServed(route, read);
    if (result instanceof Uint8Array) reply.bytes(route.status, route.headers, result);
    else {
      const head = { ...by, status: route.status, headers: route.headers };
      this.settle(reply, { isOfToken: isOfToken(route, by), onCut: () => {} }, head, result);
    }
  }

  private runCall(exchange: HttpExchange, reply: HttpReply, route: RouteOf<'call'>, by: Called): void {
    const { app } = this.options;
    const query = readQuery(exchange.query(), route.query);
    const { parseBody, status, headers } = route;
    const host = exchange.header('host');
    const accept = exchange.header('accept');
    const bearer = givenToken(exchange);
    const call: PendingCall = { isOfToken: isOfToken(route, by), onCut: () => {} };
    const onGone = (listener: () => void): void => {
      call.onCut = listener;
      exchange.whenGone(listener);
    };
    const answered = { status, headers, errorHeaders: [] };
    const asker = askerOf(exchange, by.principal, app);
    const request = { ...by, ...asker, app, query, body: null, host, accept, bearer, onGone, ...answered };
    const forced = by.reach ? null : forcedEvent(route, by.key, exchange.header('berth-agent'), app);
    const tell = () => app.ref('events').ask('append', { events: forced ? [forced] : [] });
    // The forced change is recorded before it is made.
    const work = (): unknown => (forced ? tell().then(() => route.run(request)) : route.run(request));
    const change = isCloudChange(route) ? operationKey(exchange, by.principal) : null;
    const recorded = change ? (): unknown => runOperation(route, request, change, work) : work;
    const isBodyRead = parseBody !== null && (route.body !== null || exchange.head.hasBody);
    const result = isBodyRead
      ? this.runWithBody(exchange, route, parseBody, { request, work: recorded })
      : this.whenServed(route, recorded);
    this.settle(reply, call, request, result);
  }

  /** Answers with `result` when it settles. `head` is read only then, because a handler may change it. */
  private settle(
    reply: HttpReply,
    call: PendingCall,
    head: AnswerHead & Partial<Pick<RequestContext, 'errorHeaders'>>,
    result: unknown,
  ): void {
    if (!(result instanceof Promise)) {
      this.answer(reply, head, result);
      return;
    }
    this.pending.track(
      reply,
      call,
      result,
      (value) => this.answer(reply, head, value),
      () => head.errorHeaders,
    );
  }

  private answer(reply: HttpReply, head: AnswerHead, value: unknown): void {
    if (!(value instanceof AnswerParts)) {
      reply.value(head.status, head.headers, value);
      return;
    }
    const stream = this.openStream(reply, head.headers, BLANK_LINE, head);
    if (stream) sendParts(value, stream);
  }

  /** Opens a stream that ends with the token of `by`. Throws daemon_busy when too many are open. */
  private openStream(
    reply: HttpReply,
    headers: ResponseHeaders,
    first: Uint8Array,
    by: Asking,
  ): ResponseStream | null {
    const { reach, principal } = by;
    const { streams, agentConnections, cloud } = this.options.app;
    const holder = streamHolder(by);
    streams.assertRoom(holder);
    const stream = reply.stream(headers, first);
    if (!stream) return null;
    streams.add(stream, holder);
    if (reach) agentConnections.addStream(reach, stream);
    if (principal) cloud.views.principals.addOpen(principal, stream);
    return stream;
  }

  private runWithBody(
    exchange: HttpExchange,
    route: RouteOf<'call'>,
    parse: (value: unknown) => Promise<unknown>,
    { request, work }: { request: RequestContext; work: () => unknown },
  ): Promise<unknown> {
    return readJsonBody(exchange).then(async (bytes) => {
      if (bytes.length > 0 || route.body !== null) request.body = await parse(parseBody(bytes));
      const { app, body, reach } = request;
      if (reach) await checkAgentBody(route, body, reach, app);
      return this.whenServed(route, work);
    });
  }

  private runStream(exchange: HttpExchange, reply: HttpReply, route: RouteOf<'stream'>, by: Called): void {
    const { app } = this.options;
    const query = readQuery(exchange.query(), route.query);
    app.streams.assertRoom(streamHolder(by));
    const open = () => this.openStream(reply, route.headers, KEEP_ALIVE_COMMENT, by);
    const lastEventId = exchange.header('last-event-id');
    const opened = this.whenServed(route, () => route.run({ ...by, app, query, lastEventId, open }));
    opened?.catch((error: unknown) => reply.fail(error));
  }

  private runRelay(exchange: HttpExchange, reply: HttpReply, route: RouteOf<'relay'>, by: Called): void {
    const { app } = this.options;
    readQuery(exchange.query(), route.query);
    const headers = RELAYED_HEADERS.flatMap((name): [string, string][] => {
      const value = exchange.header(name);
      return value === '' ? [] : [[name, value]];
    });
    if (!isJsonType(exchange.header('content-type')))
      throw fail('unsupported_media_type', 'the body is not application/json');
    const gone = new AbortController();
    const open = () => this.openStream(reply, EVENT_STREAM_HEADERS, KEEP_ALIVE_COMMENT, by);
    const limits = { bytes: HTTP.maxBodyBytes, ms: HTTP.bodyTimeoutMs };
    const work = exchange.readBody(limits).then((body) => {
      exchange.whenGone(() => gone.abort());
      return this.whenServed(route, () => route.run({ app, headers, body, signal: gone.signal, open }));
    });
    const call = { isOfToken: isOfToken(route, by), onCut: () => gone.abort() };
    this.pending.track(reply, call, work, (answer) => {
      if (answer === null) return;
      const { status, contentType, body } = answer;
      if (contentType === null) reply.empty(status, EMPTY_HEADERS);
      else reply.bytes(status, headersOf(contentType), body);
    });
  }

  private runUpgrade(exchange: HttpExchange, reply: HttpReply, route: RouteOf<'socket'>, by: Called): void {
    const protocol = route.protocol ?? '';
    const offered = exchange.header('sec-websocket-protocol').split(',');
    const isFit =
      exchange.isHandshake &&
      !exchange.head.hasBody &&
      exchange.header('sec-websocket-version') === '13' &&
      offered.some((one) => one.trim() === protocol);
    if (!isFit)
      throw fail('invalid_spec', `this path takes a WebSocket handshake with the protocol ${protocol}`);
    const query = readQuery(exchange.query(), route.query);
    reply.count(101);
    const { app } = this.options;
    const open = route.run({ ...by, app, query });
    exchange.acceptWebSocket(protocol, by.reach ? app.agentConnections.guardSocket(by.reach, open) : open);
  }
}
