// From a request to its answer: guard, row, input, handler, answer. Reads are answered at once from the views; everything
// that is read from the request is read before anything is awaited.
import { HTTP } from '../limits.ts';
import { fail } from '../protocol/errors.ts';
import { GROUP, NAME } from '../protocol/names.ts';
import { isJsonType, parseBody } from './body.ts';
import { COMMENT } from './event_hub.ts';
import { type Guard, isPreflight } from './guard.ts';
import { isOpenPath } from './open_paths.ts';
import { type PageAt, showPage } from './pages.ts';
import { decode, readQuery } from './query.ts';
import { EMPTY_HEAD, JSON_HEAD, preflightHead, Reply, STREAM_HEAD } from './reply.ts';
import type { Call, CallRow, Desk, Input, NameKind, ReadRow, Row, SocketRow, StreamRow } from './route.ts';
import type { Found, Router } from './router.ts';
import type { Exchange } from './server.ts';

export interface HandleOptions {
  guard: Guard;
  router: Router<Row>;
  desk: Desk;
  /** The page at an open path without a row. */
  page: PageAt;
  onDefect: (error: unknown) => void;
}

const NAMES: Readonly<Record<NameKind, { pattern: RegExp; must: string } | null>> = {
  service: { pattern: NAME, must: 'must be a name of a-z, 0-9, _ and -' },
  agent: { pattern: NAME, must: 'must be a name of a-z, 0-9, _ and -' },
  group: { pattern: GROUP, must: 'must be a name of A-Z, a-z, 0-9, _ and -' },
  id: null,
};

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** Whether a body follows. */
function hasBody(exchange: Exchange): boolean {
  const length = exchange.header('content-length');
  return (length !== '' && length !== '0') || exchange.header('transfer-encoding') !== '';
}

/** Whether it can be said where the body ends: a proxy before us might say it otherwise. */
function isFramed(exchange: Exchange): boolean {
  const coding = exchange.header('transfer-encoding').toLowerCase();
  const lengths = exchange.count('content-length') + exchange.count('transfer-encoding');
  return lengths <= 1 && exchange.count('host') <= 1 && (coding === '' || coding === 'chunked');
}

/** Bad percent-encoding is 400 whatever the method. */
function nameOf({ name }: Found<Row>): string {
  const decoded = decode(name);
  if (decoded === null) throw fail('invalid_spec', 'the path has broken percent-encoding');
  return decoded;
}

function show(reply: Reply, row: ReadRow, bytes: Uint8Array | null, name: string): void {
  if (!bytes) throw fail(row.errors[0] ?? 'not_found', `there is no ${row.nameKind} ${name}`);
  reply.bytes(row.status, JSON_HEAD, bytes);
}

/** Answers every request of one listener; the front has one beside each guard, and waits for it when it closes. */
export class Handler {
  private readonly options: HandleOptions;
  /** Calls that are not answered yet. */
  private readonly open = new Set<Reply>();
  private waiting: (() => void)[] = [];

  constructor(options: HandleOptions) {
    this.options = options;
  }

  /** Answers `exchange`, now or later. */
  readonly handle = (exchange: Exchange): void => {
    const { guard, onDefect } = this.options;
    const { refusal, origin } = guard.check(exchange);
    const reply = new Reply(exchange, origin, onDefect);
    try {
      if (refusal) throw refusal;
      this.route(exchange, reply);
    } catch (error) {
      reply.fail(error);
    }
  };

  /** Resolves when no call waits for its answer. */
  idle(): Promise<void> {
    return this.open.size === 0 ? Promise.resolve() : new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Answers what still waits for its answer: the daemon ends before it has one. */
  giveUp(): void {
    for (const reply of this.open)
      reply.fail(fail('daemon_busy', 'the daemon is shutting down; what was asked for may still happen'));
  }

  private route(exchange: Exchange, reply: Reply): void {
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
      const name = nameOf(found);
      if (row.kind === 'read' && desk.phase !== 'starting')
        show(reply, row, row.read(desk.views, name), name);
      else this.run(exchange, reply, row, name);
    } else if (reply.origin !== '' && isPreflight(exchange))
      exchange.send(204, preflightHead(reply.origin), '');
    else if (!found) this.page(exchange, reply);
    else if (method === 'OPTIONS') reply.empty(204, EMPTY_HEAD.with('Allow', found.entry.allow));
    else reply.fail(fail('method_not_allowed', `${path} has no ${method}`), ['Allow', found.entry.allow]);
  }

  private page(exchange: Exchange, reply: Reply): void {
    const { path } = exchange;
    if (isOpenPath(path)) showPage(exchange, reply, this.options.page);
    else reply.fail(fail('not_found', `there is no ${path.slice(0, 200)}`));
  }

  /** A row that takes more than a look at the views. */
  private run(exchange: Exchange, reply: Reply, row: Row, name: string): void {
    const { desk } = this.options;
    const isChange = !isRead(exchange.method);
    if (!row.always && desk.phase === 'starting') throw fail('daemon_busy', 'the daemon is starting');
    if (isChange && desk.phase === 'closing') throw fail('daemon_busy', 'the daemon is shutting down');
    const names = row.nameKind ? NAMES[row.nameKind] : null;
    if (isChange && names && !names.pattern.test(name)) {
      const details = [{ path: 'name', message: `name ${names.must}` }];
      throw fail('invalid_spec', `the name in the path ${names.must}`, { details });
    }
    const query = row.kind === 'call' || row.kind === 'stream' ? readQuery(exchange.query(), row.query) : {};
    const call: Call = { desk, name, query, body: null, status: row.status };
    if (row.kind === 'stream') this.stream(exchange, reply, row, call);
    else if (row.kind === 'socket') this.upgrade(exchange, row, call);
    else if (row.kind === 'call') this.call(exchange, reply, row, call);
  }

  private call(exchange: Exchange, reply: Reply, row: CallRow, call: Call): void {
    const result = row.input ? this.withBody(exchange, row, row.input, call) : row.run(call);
    if (!(result instanceof Promise)) {
      reply.json(call.status, result);
      return;
    }
    this.open.add(reply);
    result
      .then((value) => reply.json(call.status, value))
      .catch((error: unknown) => reply.fail(error))
      .finally(() => {
        this.open.delete(reply);
        if (this.open.size === 0) for (const told of this.waiting.splice(0)) told();
      });
  }

  private withBody(exchange: Exchange, row: CallRow, input: Input<unknown>, call: Call): Promise<unknown> {
    if (hasBody(exchange) && !isJsonType(exchange.header('content-type')))
      throw fail('unsupported_media_type', 'the body is not application/json');
    const limits = { bytes: input.limit ?? HTTP.bodyBytes, ms: HTTP.bodyMs };
    return exchange.body(limits).then(async (bytes) => {
      const value = parseBody(bytes);
      call.body = (await input.load())(value);
      return row.run(call);
    });
  }

  private stream(exchange: Exchange, reply: Reply, row: StreamRow, call: Call): void {
    const { method } = exchange;
    const head = reply.head(STREAM_HEAD);
    const open = () => {
      if (method !== 'HEAD') return exchange.stream(head, COMMENT);
      exchange.send(row.status, head, { length: null });
      return null;
    };
    const lastEventId = exchange.header('last-event-id');
    row.run({ ...call, lastEventId, open })?.catch((error: unknown) => reply.fail(error));
  }

  private upgrade(exchange: Exchange, row: SocketRow, call: Call): void {
    const offered = exchange.header('sec-websocket-protocol').split(',');
    const isFit =
      exchange.handshake &&
      exchange.header('sec-websocket-version') === '13' &&
      offered.some((protocol) => protocol.trim() === row.protocol);
    if (!isFit)
      throw fail('invalid_spec', `this path takes a WebSocket handshake with the protocol ${row.protocol}`);
    exchange.accept(row.protocol, row.run(call));
  }
}
