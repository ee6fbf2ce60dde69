// From a request to its answer: guard, row, input, handler, answer. Reads are answered at once from the views; everything
// that is read from the request is read before anything is awaited.

import { fail } from '../../protocol/errors.ts';
import { GROUP_NAME_PATTERN, SERVICE_NAME_PATTERN } from '../../protocol/names.ts';
import { HTTP } from '../../settings/limits.ts';
import type { HttpExchange } from '../server/http_server.ts';
import { KEEP_ALIVE_COMMENT } from '../streams/event_hub.ts';
import { type Guard, isPreflight } from './guard.ts';
import { isJsonType, parseBody } from './json_body.ts';
import { isPublicPath } from './public_paths.ts';
import { percentDecode, readQuery } from './query.ts';
import { EMPTY_HEADERS, EVENT_STREAM_HEADERS, HttpReply, JSON_HEADERS, preflightHeaders } from './reply.ts';
import type {
  ApiRoute,
  AppContext,
  BodyInput,
  CallRoute,
  NameKind,
  ReadRoute,
  RequestContext,
  SocketRoute,
  StreamRoute,
} from './route.ts';
import type { RouteMatch, Router } from './router.ts';
import { type PageLookup, sendStaticPage } from './static_pages.ts';

export interface RequestHandlerOptions {
  guard: Guard;
  router: Router<ApiRoute>;
  desk: AppContext;
  /** The page at an open path without a row. */
  pageLookup: PageLookup;
  onDefect: (error: unknown) => void;
}

const NAME_RULES: Readonly<Record<NameKind, { pattern: RegExp; must: string } | null>> = {
  service: { pattern: SERVICE_NAME_PATTERN, must: 'must be a name of a-z, 0-9, _ and -' },
  agent: { pattern: SERVICE_NAME_PATTERN, must: 'must be a name of a-z, 0-9, _ and -' },
  group: { pattern: GROUP_NAME_PATTERN, must: 'must be a name of A-Z, a-z, 0-9, _ and -' },
  id: null,
};

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** Whether a body follows. */
function hasBody(exchange: HttpExchange): boolean {
  const length = exchange.header('content-length');
  return (length !== '' && length !== '0') || exchange.header('transfer-encoding') !== '';
}

/** Whether it can be said where the body ends: a proxy before us might say it otherwise. */
function isFramed(exchange: HttpExchange): boolean {
  const coding = exchange.header('transfer-encoding').toLowerCase();
  const lengths = exchange.countHeader('content-length') + exchange.countHeader('transfer-encoding');
  return lengths <= 1 && exchange.countHeader('host') <= 1 && (coding === '' || coding === 'chunked');
}

/** Bad percent-encoding is 400 whatever the method. */
function decodeName({ name }: RouteMatch<ApiRoute>): string {
  const decoded = percentDecode(name);
  if (decoded === null) throw fail('invalid_spec', 'the path has broken percent-encoding');
  return decoded;
}

function sendRead(reply: HttpReply, row: ReadRoute, bytes: Uint8Array | null, name: string): void {
  if (!bytes) throw fail(row.errors[0] ?? 'not_found', `there is no ${row.nameKind} ${name}`);
  reply.bytes(row.status, JSON_HEADERS, bytes);
}

/** Answers every request of one listener; the front has one beside each guard, and waits for it when it closes. */
export class RequestHandler {
  private readonly options: RequestHandlerOptions;
  /** Calls that are not answered yet. */
  private readonly pending = new Set<HttpReply>();
  private idleWaiters: (() => void)[] = [];

  constructor(options: RequestHandlerOptions) {
    this.options = options;
  }

  /** Answers `exchange`, now or later. */
  readonly handle = (exchange: HttpExchange): void => {
    const { guard, onDefect } = this.options;
    const { refusal, origin } = guard.check(exchange);
    const reply = new HttpReply(exchange, origin, onDefect);
    try {
      if (refusal) throw refusal;
      this.route(exchange, reply);
    } catch (error) {
      reply.fail(error);
    }
  };

  /** Resolves when no call waits for its answer. */
  idle(): Promise<void> {
    return this.pending.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.idleWaiters.push(resolve));
  }

  /** Answers what still waits for its answer: the daemon ends before it has one. */
  failPending(): void {
    for (const reply of this.pending)
      reply.fail(fail('daemon_busy', 'the daemon is shutting down; what was asked for may still happen'));
  }

  private route(exchange: HttpExchange, reply: HttpReply): void {
    const { method, path } = exchange;
    const { router, desk } = this.options;
    if (hasBody(exchange) && !isFramed(exchange)) {
      const failure = fail('invalid_spec', 'the request says twice or unclearly where its body ends');
      // Later: as long as this is open no server takes what follows for the next request.
      setImmediate(() => reply.fail(failure, [], true));
      return;
    }
    const found = router.find(path);
    const row = isRead(method) ? found?.entry.get : found?.entry.rows.get(method);
    if (found && row) {
      const name = decodeName(found);
      if (row.kind === 'read' && desk.phase !== 'starting')
        sendRead(reply, row, row.read(desk.views, name), name);
      else this.runRoute(exchange, reply, row, name);
    } else if (reply.origin !== '' && isPreflight(exchange))
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

  /** A row that takes more than a look at the views. */
  private runRoute(exchange: HttpExchange, reply: HttpReply, route: ApiRoute, name: string): void {
    const { desk } = this.options;
    const isChange = !isRead(exchange.method);
    if (!route.always && desk.phase === 'starting') throw fail('daemon_busy', 'the daemon is starting');
    if (isChange && desk.phase === 'closing') throw fail('daemon_busy', 'the daemon is shutting down');
    const names = route.nameKind ? NAME_RULES[route.nameKind] : null;
    if (isChange && names && !names.pattern.test(name)) {
      const details = [{ path: 'name', message: `name ${names.must}` }];
      throw fail('invalid_spec', `the name in the path ${names.must}`, { details });
    }
    const query =
      route.kind === 'call' || route.kind === 'stream' ? readQuery(exchange.query(), route.query) : {};
    const requestContext: RequestContext = { desk, name, query, body: null, status: route.status };
    if (route.kind === 'stream') this.runStream(exchange, reply, route, requestContext);
    else if (route.kind === 'socket') this.runUpgrade(exchange, route, requestContext);
    else if (route.kind === 'call') this.runCall(exchange, reply, route, requestContext);
  }

  private runCall(exchange: HttpExchange, reply: HttpReply, row: CallRoute, call: RequestContext): void {
    const result = row.input ? this.withBody(exchange, row, row.input, call) : row.run(call);
    if (!(result instanceof Promise)) {
      reply.json(call.status, result);
      return;
    }
    this.pending.add(reply);
    result
      .then((value) => reply.json(call.status, value))
      .catch((error: unknown) => reply.fail(error))
      .finally(() => {
        this.pending.delete(reply);
        if (this.pending.size === 0) for (const told of this.idleWaiters.splice(0)) told();
      });
  }

  private withBody(
    exchange: HttpExchange,
    row: CallRoute,
    input: BodyInput<unknown>,
    call: RequestContext,
  ): Promise<unknown> {
    if (hasBody(exchange) && !isJsonType(exchange.header('content-type')))
      throw fail('unsupported_media_type', 'the body is not application/json');
    const limits = { bytes: input.maxBytes ?? HTTP.maxBodyBytes, ms: HTTP.bodyTimeoutMs };
    return exchange.readBody(limits).then(async (bytes) => {
      const value = parseBody(bytes);
      call.body = (await input.load())(value);
      return row.run(call);
    });
  }

  private runStream(exchange: HttpExchange, reply: HttpReply, row: StreamRoute, call: RequestContext): void {
    const { method } = exchange;
    const head = reply.withCors(EVENT_STREAM_HEADERS);
    const open = () => {
      if (method !== 'HEAD') return exchange.startStream(head, KEEP_ALIVE_COMMENT);
      exchange.send(row.status, head, { length: null });
      return null;
    };
    const lastEventId = exchange.header('last-event-id');
    row.run({ ...call, lastEventId, open })?.catch((error: unknown) => reply.fail(error));
  }

  private runUpgrade(exchange: HttpExchange, row: SocketRoute, call: RequestContext): void {
    const offered = exchange.header('sec-websocket-protocol').split(',');
    const isFit =
      exchange.isHandshake &&
      exchange.header('sec-websocket-version') === '13' &&
      offered.some((protocol) => protocol.trim() === row.protocol);
    if (!isFit)
      throw fail('invalid_spec', `this path takes a WebSocket handshake with the protocol ${row.protocol}`);
    exchange.acceptWebSocket(row.protocol, row.run(call));
  }
}
