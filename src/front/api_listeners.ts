// The addresses where the API is served, each with a server, a guard and a request handler of its own.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openFilesLimit } from '../adapters/process/open_files_limit.ts';
import { fail } from '../protocol/errors.ts';
import type { Clock } from '../runtime/actor.ts';
import { withTimeout } from '../runtime/deferred.ts';
import { HTTP, KIB } from '../settings/limits.ts';
import type { AppContext } from './api/app_context.ts';
import { type AllowedCallers, Guard } from './api/guard.ts';
import { HttpReply } from './api/reply.ts';
import { RequestHandler } from './api/request_handler.ts';
import { Router } from './api/router.ts';
import type { Route } from './api/routes.ts';
import type { PageLookup } from './api/static_pages.ts';
import { BodyBudget } from './server/body_budget.ts';
import type { Forwarder } from './server/forwarding.ts';
import type { HttpServer } from './server/http_server.ts';
import { chooseServer, listenOnAll, type ServerKind } from './server/listen.ts';

/** How long `close` waits for pending answers. */
const DRAIN_MS = 5_000;
/** The longest message of a WebSocket: enough for pasting into a terminal. */
const MAX_MESSAGE_BYTES = 256 * KIB;

interface ApiListener {
  bind: string;
  port: number;
  routes: readonly Route[];
  cloudOnly: boolean;
  /** undefined: the best server that loads. */
  kind: ServerKind | undefined;
  tls?: { cert: string; key: string };
}

export interface ApiListenersConfig {
  clock: Clock;
  /** Passes requests on to another Berth; null: this one never does. */
  forwarder: Forwarder | null;
  pageLookup: PageLookup;
  /** Whether the cloud part has an address of its own; null: there is no cloud part. */
  cloud: { ownListener: object | null } | null;
  log: (line: string) => void;
  onDefect: (error: unknown) => void;
  describePortHolder?: (port: number) => Promise<string>;
}

export class ApiListeners {
  readonly guards: Guard[] = [];
  private readonly app: AppContext;
  private readonly config: ApiListenersConfig;
  private readonly handlers: RequestHandler[] = [];
  private readonly servers: HttpServer[] = [];
  private readonly bodies = new BodyBudget(HTTP.maxBodyBytesInFlight);
  private callers: AllowedCallers;

  constructor(app: AppContext, config: ApiListenersConfig, callers: AllowedCallers) {
    this.app = app;
    this.config = config;
    this.callers = callers;
  }

  /** Starts to listen. Rejects with port_in_use. */
  async open(listener: ApiListener): Promise<{ port: number; name: ServerKind }> {
    const { onDefect, pageLookup, describePortHolder, cloud, log, forwarder } = this.config;
    const { bind, routes, cloudOnly, kind, tls } = listener;
    const { requests, keys, cloudKeys } = this.app;
    const share = HTTP.connectionShare[cloudOnly ? 'cloud' : 'daemon'];
    const create = await chooseServer(log, kind);
    // Null until the port is known: before that there is nothing to compare a Host with.
    let handler: RequestHandler | null = null;
    const server = create({
      handle: (exchange) => {
        if (handler) handler.handle(exchange);
        else
          new HttpReply(exchange, '', { requests, onDefect }).fail(
            fail('daemon_busy', 'the daemon is starting'),
          );
      },
      prepare: (exchange) => handler?.prepare(exchange) ?? null,
      webSocketPaths: routes
        .filter(({ kind }) => kind === 'socket')
        .map(({ path }) => path.replace(/\{(\w+)\}/, ':$1')),
      maxMessageBytes: MAX_MESSAGE_BYTES,
      bodies: this.bodies,
      ...(forwarder ? { forwarder } : {}),
      maxConnections: Math.floor(openFilesLimit() * share),
      ...(cloudOnly ? { maxStrangers: HTTP.maxStrangers } : {}),
      onDefect,
      ...(tls ? { tls } : {}),
    });
    const port = await listenOnAll(server, {
      bind,
      port: listener.port,
      ...(describePortHolder ? { describePortHolder } : {}),
    });
    this.servers.push(server);
    const guard = new Guard({
      bind,
      port,
      keys,
      cloudKeys: cloudOnly || !cloud?.ownListener ? cloudKeys : null,
      views: this.app.cloud.views,
      forwarder,
      cloudOnly,
      ...this.callers,
    });
    this.guards.push(guard);
    handler = new RequestHandler({
      guard,
      router: new Router(routes),
      app: this.app,
      pageLookup: cloudOnly ? () => null : pageLookup,
      onDefect,
    });
    this.handlers.push(handler);
    return { port, name: server.name };
  }

  /** Changes who may call. */
  allow(callers: AllowedCallers): void {
    this.callers = callers;
    for (const guard of this.guards) guard.reload(callers);
  }

  /** Ends the requests that were made with a token that no longer counts. */
  endToken(): void {
    for (const handler of this.handlers) handler.pending.endToken();
  }

  stopListening(): void {
    for (const server of this.servers) server.stopListening();
  }

  /** Waits briefly for pending answers, and closes all connections. */
  async close(): Promise<void> {
    const idle = this.handlers.map((handler) => handler.pending.idle());
    await withTimeout(DRAIN_MS, Promise.all(idle), this.config.clock);
    for (const handler of this.handlers) handler.pending.failAll();
    // The last messages still go out in this turn.
    await nextTurn();
    for (const server of this.servers) server.close();
  }
}
