// The HTTP front of the daemon. The main thread calls `createFront`, then `listen`, then `setReady(true)`.
import { AgentTokens } from '../adapters/agent_tokens.ts';
import { localUrl } from '../adapters/url_host.ts';
import { serviceAddress } from '../protocol/address.ts';
import type { EventRecord } from '../protocol/events.ts';
import type { GatewayRoute } from '../protocol/gateway.ts';
import type { LogJobs } from '../protocol/logs.ts';
import type { SystemReading } from '../protocol/system.ts';
import type { Node } from '../runtime/actor.ts';
import { EVENTS } from '../settings/limits.ts';
import { statePaths } from '../settings/state_paths.ts';
import { AccessKeys } from './api/access_keys.ts';
import type { AppContext, DaemonInfo, DocumentBuilder } from './api/app_context.ts';
import { CloudGate, type CloudPart, noCloud } from './api/cloud_gate.ts';
import { CommandOwners } from './api/command_owners.ts';
import { forwardedPaths } from './api/forwarded_paths.ts';
import type { AllowedCallers } from './api/guard.ts';
import { RedirectPages } from './api/redirect_pages.ts';
import type { Route } from './api/routes.ts';
import { SERVED } from './api/served_routes.ts';
import type { PageLookup } from './api/static_pages.ts';
import { ApiListeners } from './api_listeners.ts';
import { RequestCounts } from './metrics/request_counts.ts';
import { StartTimes } from './metrics/start_times.ts';
import { Forwarder } from './server/forwarding.ts';
import type { ServerKind } from './server/listen.ts';
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

class HttpFront implements Front {
  private readonly options: FrontOptions;
  private readonly events: EventFeed<EventRecord>;
  private readonly logs: LogStreams;
  private readonly mergedLogs: MergedLogs;
  private readonly terminals: TerminalSockets;
  private readonly app: { -readonly [K in keyof AppContext]: AppContext[K] };
  private readonly listeners: ApiListeners;
  private readonly forwarder: Forwarder | null;
  private stopKeepAlive = () => {};
  private openapiDocument: Promise<Uint8Array> | null = null;

  constructor(options: FrontOptions) {
    const { node, token, allowedExtensions, allowedOrigins, cloud, daemonInfo } = options;
    this.options = options;
    const holder = () => cloud?.views.holder() ?? null;
    const paths = forwardedPaths(() => ({ keys: this.app.cloudKeys, guards: this.listeners.guards }));
    this.forwarder = options.serves === 'cloud' ? new Forwarder(holder, paths) : null;
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
      clock: node.clock,
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
    const { forwarder } = this;
    this.listeners = new ApiListeners(
      this.app,
      { ...options, clock: node.clock, forwarder },
      { allowedExtensions, allowedOrigins },
    );
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
    const main = await this.listeners.open({ bind, port, routes, cloudOnly: false, kind: server });
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
    return this.listeners.open({ ...own, routes, cloudOnly: true, kind: 'node:http' });
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
    this.listeners.allow(callers);
    if (!this.app.keys.reload(token)) return;
    // All of these were opened with the old token.
    this.events.hub.cut();
    this.logs.cut();
    this.mergedLogs.cut();
    this.terminals.cut();
    this.app.mcp.cut();
    this.listeners.endToken();
  }

  shutdown(): void {
    this.app.phase = 'closing';
  }

  async close(): Promise<void> {
    this.shutdown();
    this.listeners.stopListening();
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
    await this.listeners.close();
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
}
