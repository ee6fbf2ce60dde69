// The HTTP front of the daemon. The main thread calls `createFront`, then `listen`, then `setReady(true)`.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AgentTokens } from '../adapters/agent_tokens.ts';
import { openFilesLimit } from '../adapters/process/open_files_limit.ts';
import { localUrl } from '../adapters/url_host.ts';
import { serviceAddress } from '../protocol/address.ts';
import { fail } from '../protocol/errors.ts';
import type { EventRecord } from '../protocol/events.ts';
import type { GatewayRoute } from '../protocol/gateway.ts';
import type { LogJobs } from '../protocol/logs.ts';
import type { SystemReading } from '../protocol/system.ts';
import type { Node } from '../runtime/actor.ts';
import { withTimeout } from '../runtime/deferred.ts';
import { EVENTS, HTTP, KIB } from '../settings/limits.ts';
import { statePaths } from '../settings/state_paths.ts';
import { AccessKeys } from './api/access_keys.ts';
import type { AppContext, DaemonInfo, DocumentBuilder } from './api/app_context.ts';
import { CloudGate, type CloudPart, noCloud } from './api/cloud_gate.ts';
import { CommandOwners } from './api/command_owners.ts';
import { forwardedPaths } from './api/forwarded_paths.ts';
import { type AllowedCallers, Guard } from './api/guard.ts';
import { RedirectPages } from './api/redirect_pages.ts';
import { HttpReply } from './api/reply.ts';
import { RequestHandler } from './api/request_handler.ts';
import { Router } from './api/router.ts';
import type { Route } from './api/routes.ts';
import { SERVED } from './api/served_routes.ts';
import type { PageLookup } from './api/static_pages.ts';
import { RequestCounts } from './metrics/request_counts.ts';
import { StartTimes } from './metrics/start_times.ts';
import { BodyBudget } from './server/body_budget.ts';
import { Forwarder } from './server/forwarding.ts';
import type { HttpServer } from './server/http_server.ts';
import { chooseServer, listenOnAll, type ServerKind } from './server/listen.ts';
import { AgentConnections } from './streams/agent_connections.ts';
import { AgentWaits } from './streams/agent_waits.ts';
import { CloudEventStreams } from './streams/cloud_event_streams.ts';
import { EventFeed } from './streams/event_feed.ts';
import { LogStreams } from './streams/log_streams.ts';
import { mcpCallersActor } from './streams/mcp_callers_actor.ts';
import { McpRelay } from './streams/mcp_relay.ts';
import { MergedLogs } from './streams/merged_logs.ts';
import { OpenStreams, type StreamLimits } from './streams/open_streams.ts';
import { TerminalSockets } from './streams/terminal_sockets.ts';
import { terminalViewersActor } from './streams/terminal_viewers_actor.ts';
import { gatewayRoutes } from './views/gateway_routes.ts';
import { ServiceViews } from './views/service_views.ts';
import { serviceViewsActor } from './views/service_views_actor.ts';

/** The cloud's part of the front. */
export interface CloudFront extends CloudPart {
  token: string;
  /** The cloud's own address, where the Host is not checked; null: /k8s is served on the daemon's address. */
  ownListener: { bind: string; port: number; tls?: { cert: string; key: string } } | null;
}

/** The settings that control who may call; they may change at run time. */
interface AccessSettings extends AllowedCallers {
  /** `auth.token`; empty: no authentication. */
  token: string;
}

export interface FrontOptions extends AccessSettings {
  /** `cloud`: the cloud part alone, on its `ownListener`. Default: `daemon`. */
  serves?: 'daemon' | 'cloud';
  bind: string;
  /** 0: any free port. */
  port: number;
  /** The daemon's information about itself. */
  daemonInfo: Omit<DaemonInfo, 'front'>;
  /** The node of the main thread: it runs `views`, and all other actors are reached through it. */
  node: Node;
  cloud: CloudFront | null;
  /** Reads and searches the files of logs, on other threads. */
  logJobs: LogJobs;
  /** Starts the thread of the Model Context Protocol unless it runs. Rejects with a Failure. */
  ensureMcp: () => Promise<void>;
  /** Called at the first request for the API's document. */
  openapi: DocumentBuilder;
  /** Static files and documents at the open paths. */
  pageLookup: PageLookup;
  /** Why services cannot currently be shown or changed; null: they can. */
  unreadyReason: () => string | null;
  /** What the daemon is doing. */
  readSystem: () => Promise<SystemReading>;
  /** Logs one line for people, such as the server in use, or a defect. */
  log: (line: string) => void;
  /** Called for defects: exceptions of handlers that are not Failures. */
  onDefect: (error: unknown) => void;
  /** Receives every event as it happens. */
  onEvents?: (records: readonly EventRecord[]) => void;
  /** Called after each change of a service or an agent. */
  onRoutesChanged: () => void;
  /** Describes the holder of a port in use. */
  describePortHolder?: (port: number) => Promise<string>;
  /** Limits to use instead of `STREAMS`, for tests. */
  streamLimits?: StreamLimits;
  /** Requires this server instead of the best one that loads. */
  server?: ServerKind;
}

/** How long `close` waits for pending answers. */
const DRAIN_MS = 5_000;
/** The longest message of a WebSocket: enough for pasting into a terminal. */
const MAX_MESSAGE_BYTES = 256 * KIB;

export interface Front {
  /** Starts the `views` and `viewers` actors, so that owners may send to them. */
  start(): Promise<void>;
  /** Starts serving; only the daemon's own information until `setReady(true)`. Rejects with port_in_use. */
  listen(): Promise<{ port: number; cloudPort: number | null; server: ServerKind }>;
  /** Asks `events` for the kept events until it answers. Runs by itself after a restart of its thread. */
  restoreEvents(): Promise<void>;
  /** Sets whether the views are complete, so that services can be shown and changed. */
  setReady(ready: boolean): void;
  /** Every service and agent, as the gateway sees it. */
  gatewayRoutes(): GatewayRoute[];
  /** The port of the gateway; null: off. */
  setGatewayPort(port: number | null): void;
  /** Applies a new token and new lists of extensions and origins. */
  reload(settings: AccessSettings): void;
  /** From now on readyz is 503 and changes are refused; reads and streams continue. */
  shutdown(): void;
  /** Stops accepting connections, ends the streams, waits briefly for answers, and releases everything. */
  close(): Promise<void>;
}

export const createFront = (options: FrontOptions): Front => new HttpFront(options);

interface ApiListener {
  bind: string;
  port: number;
  routes: readonly Route[];
  cloudOnly: boolean;
  /** undefined: the best server that loads. */
  kind: ServerKind | undefined;
  tls?: { cert: string; key: string };
}

class HttpFront implements Front {
  private readonly options: FrontOptions;
  private readonly events: EventFeed<EventRecord>;
  private readonly logs: LogStreams;
  private readonly mergedLogs: MergedLogs;
  private readonly terminals: TerminalSockets;
  private readonly app: { -readonly [K in keyof AppContext]: AppContext[K] };
  private readonly guards: Guard[] = [];
  private readonly handlers: RequestHandler[] = [];
  private readonly servers: HttpServer[] = [];
  private readonly bodies = new BodyBudget(HTTP.maxBodyBytesInFlight);
  private readonly forwarder: Forwarder | null;
  private callers: AllowedCallers;
  private stopKeepAlive = () => {};
  private openapiDocument: Promise<Uint8Array> | null = null;

  constructor(options: FrontOptions) {
    const { node, token, allowedExtensions, allowedOrigins, cloud, daemonInfo } = options;
    this.options = options;
    const holder = () => cloud?.views.holder() ?? null;
    const paths = forwardedPaths(() => ({ keys: this.app.cloudKeys, guards: this.guards }));
    this.forwarder = options.serves === 'cloud' ? new Forwarder(holder, paths) : null;
    this.callers = { allowedExtensions, allowedOrigins };
    const subscribe = () => node.ref('events').ask('subscribe', {});
    this.events = new EventFeed(
      { clock: node.clock, subscribe },
      options.onEvents ?? ((): void => undefined),
    );
    this.logs = new LogStreams(options.onDefect);
    this.mergedLogs = new MergedLogs({
      jobs: options.logJobs,
      clock: node.clock,
      folder: statePaths(daemonInfo.stateDir).logs,
      isRunning: (name) => this.app.views.state(name)?.process != null,
      notify: (name, on) => node.ref(serviceAddress(name)).tell('follow', { on }),
      onDefect: options.onDefect,
    });
    const views = new ServiceViews();
    views.setGatewayPort(daemonInfo.gatewayPort);
    this.terminals = new TerminalSockets(node.clock);
    const agents = new AgentTokens(statePaths(daemonInfo.stateDir).agentKey);
    const keys = new AccessKeys(token, node.clock, agents);
    keys.shares.onEnded = (id) => this.terminals.endShare(id);
    this.app = {
      views,
      cloud: new CloudGate(cloud ?? noCloud()),
      hub: this.events.hub,
      cloudEvents: new CloudEventStreams(node),
      logs: this.logs,
      mergedLogs: this.mergedLogs,
      logJobs: options.logJobs,
      terminals: this.terminals,
      mcp: new McpRelay(node, options.ensureMcp),
      streams: new OpenStreams(node.clock, options.streamLimits),
      agentWaits: new AgentWaits(node.clock, (name) => views.standing(name)),
      agentConnections: new AgentConnections(),
      commandOwners: new CommandOwners(node.clock),
      keys,
      cloudKeys: cloud && new AccessKeys(cloud.token, node.clock, undefined, cloud.views.principals),
      redirectPages: new RedirectPages(daemonInfo.stateDir),
      requests: new RequestCounts(),
      starts: new StartTimes(),
      daemonInfo: { ...daemonInfo, front: '' },
      phase: 'starting',
      unreadyReason: options.unreadyReason,
      readSystem: options.readSystem,
      openapi: () => this.openapi(),
      ref: node.ref.bind(node),
    };
  }

  async start(): Promise<void> {
    this.app.redirectPages.removeAll();
    const { node, onRoutesChanged } = this.options;
    const { agentConnections, agentWaits, keys, starts, views } = this.app;
    const { logs, mergedLogs, events } = this;
    const onServicesChanged = (): void => {
      onRoutesChanged();
      agentWaits.look();
      keys.shares.retainAgents((name) => views.spec(name)?.agent != null);
      mergedLogs.onServicesChanged();
      agentConnections.check();
    };
    const onAgentsChanged = (): void => agentWaits.look();
    const targets = { views, starts, logs, mergedLogs, events, onServicesChanged, onAgentsChanged };
    await node.start('views', serviceViewsActor, targets);
    await node.start('viewers', terminalViewersActor, this.terminals);
    this.app.cloud.views.onHolder = () => this.forwarder?.cut();
    this.app.cloudEvents.listenTo(this.app.cloud.views);
    this.app.cloud.views.principals.onUsed = (id, at) => node.ref('principals').tell('used', { id, at });
    await node.start('mcpcallers', mcpCallersActor, this.app.mcp);
    node.onPeerLost((peer) => {
      if (peer === 'mcp') this.app.mcp.cut();
      if (peer === 'cloud') this.app.cloudEvents.onCloudLost();
      if (!peer.startsWith('services')) return;
      this.terminals.onServicesLost();
      this.mergedLogs.onServicesLost();
      // The restarted actor does not know this subscriber.
      void this.events.restore();
    });
    this.stopKeepAlive = node.clock.every(EVENTS.heartbeatMs, () => {
      this.app.hub.keepAlive();
      this.app.cloudEvents.keepAlive();
      this.logs.keepAlive();
      this.mergedLogs.keepAlive();
    });
  }

  async listen(): Promise<{ port: number; cloudPort: number | null; server: ServerKind }> {
    const { bind, port, cloud, server, serves } = this.options;
    const own = cloud?.ownListener ?? null;
    if (serves === 'cloud') {
      if (!own) throw new TypeError('a cloud server needs an address of its own');
      const { port: cloudPort, name } = await this.openCloudListener(own, SERVED.server);
      this.app.daemonInfo = { ...this.app.daemonInfo, front: name };
      return { port: cloudPort, cloudPort, server: name };
    }
    const routes = cloud && !own ? SERVED.all : SERVED.daemon;
    const main = await this.openListener({ bind, port, routes, cloudOnly: false, kind: server });
    this.app.daemonInfo = { ...this.app.daemonInfo, front: main.name };
    const url = localUrl(bind, main.port);
    this.app.mcp.address = { url, cloudUrl: url };
    if (!own || !cloud) return { port: main.port, cloudPort: null, server: main.name };
    const other = await this.openCloudListener(own, SERVED.cloud);
    const scheme = own.tls ? 'https' : 'http';
    this.app.mcp.address = { url, cloudUrl: localUrl(own.bind, other.port, scheme) };
    return { port: main.port, cloudPort: other.port, server: main.name };
  }

  /**
   * Strangers can reach this listener, perhaps through a proxy. node:http frames strictly, and says which
   * connection a request came on.
   */
  private openCloudListener(own: NonNullable<CloudFront['ownListener']>, routes: readonly Route[]) {
    return this.openListener({ ...own, routes, cloudOnly: true, kind: 'node:http' });
  }

  restoreEvents(): Promise<void> {
    return this.events.restore();
  }

  setReady(ready: boolean): void {
    if (this.app.phase !== 'closing') this.app.phase = ready ? 'ready' : 'starting';
  }

  gatewayRoutes(): GatewayRoute[] {
    return gatewayRoutes(this.app.views);
  }

  setGatewayPort(port: number | null): void {
    this.app.daemonInfo = { ...this.app.daemonInfo, gatewayPort: port };
    this.app.views.setGatewayPort(port);
  }

  reload({ token, ...callers }: AccessSettings): void {
    this.callers = callers;
    for (const guard of this.guards) guard.reload(callers);
    if (!this.app.keys.reload(token)) return;
    // All of these were opened with the old token.
    this.events.hub.cut();
    this.logs.cut();
    this.mergedLogs.cut();
    this.terminals.cut();
    this.app.mcp.cut();
    for (const handler of this.handlers) handler.pending.endToken();
  }

  shutdown(): void {
    this.app.phase = 'closing';
  }

  async close(): Promise<void> {
    this.shutdown();
    for (const server of this.servers) server.stopListening();
    this.app.agentWaits.end();
    this.events.close();
    this.app.cloudEvents.close();
    this.logs.end();
    this.mergedLogs.end();
    this.app.mcp.close();
    this.terminals.onServicesLost();
    this.app.streams.close();
    this.stopKeepAlive();
    this.app.keys.withdrawCodes();
    this.app.keys.shares.endAll();
    const idle = this.handlers.map((handler) => handler.pending.idle());
    await withTimeout(DRAIN_MS, Promise.all(idle), this.options.node.clock);
    for (const handler of this.handlers) handler.pending.failAll();
    // The last messages still go out in this turn.
    await nextTurn();
    for (const server of this.servers) server.close();
    this.forwarder?.close();
  }

  /** Built once: it blocks this thread for many milliseconds, and needs no token. */
  private openapi(): Promise<Uint8Array> {
    const { openapi, cloud, serves } = this.options;
    const routes = serves === 'cloud' ? SERVED.server : cloud ? SERVED.all : SERVED.daemon;
    this.openapiDocument ??= openapi(routes).catch((error: unknown) => {
      this.openapiDocument = null;
      throw error;
    });
    return this.openapiDocument;
  }

  private async openListener(listener: ApiListener): Promise<{ port: number; name: ServerKind }> {
    const { onDefect, pageLookup, describePortHolder, cloud, log } = this.options;
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
      ...(this.forwarder ? { forwarder: this.forwarder } : {}),
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
      forwarder: this.forwarder,
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
}
