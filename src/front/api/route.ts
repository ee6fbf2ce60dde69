// What a row of the route table says, and what its handler is given.
import type { ErrorCode } from '../../protocol/errors.ts';
import type { Node } from '../../runtime/actor.ts';
import type { ResponseStream, ServerWebSocket, WebSocketHandlers } from '../server/http_server.ts';
import type { EventHub } from '../streams/event_hub.ts';
import type { LogStreams } from '../streams/log_streams.ts';
import type { TerminalSockets } from '../streams/terminal_sockets.ts';
import type { ServiceViews } from '../views/service_views.ts';
import type { QueryShape, QueryValues } from './query.ts';
import type { RoutePattern } from './router.ts';

/** What the front says of itself; read at each request, so the owner may change it. */
export interface DaemonInfo {
  version: string;
  pid: number;
  /** Epoch milliseconds. */
  startedAt: number;
  /** The name of the server that answers. */
  front: string;
  stateDir: string;
  /** null: off. */
  gatewayPort: number | null;
  agentDomain: string;
}

/** `starting`: nothing but the daemon's own state is told; `closing`: no change is taken any more. */
export type DaemonPhase = 'starting' | 'ready' | 'closing';

/** What handlers work with. */
export interface AppContext {
  readonly views: ServiceViews;
  readonly hub: EventHub;
  readonly logs: LogStreams;
  readonly terminals: TerminalSockets;
  readonly daemonInfo: DaemonInfo;
  readonly phase: DaemonPhase;
  /** Starts the gateway unless it runs: its port, or null when it is off or its port cannot be had. */
  ensureGateway(): Promise<number | null>;
  /** The API's document. */
  openapi(): Promise<Uint8Array>;
  ref: Node['ref'];
}

/** What `{name}` of a path is; a write to something else than such a name is 400, a read 404. */
export type NameKind = 'service' | 'agent' | 'group' | 'id';

/** A body: its shape is loaded when it is first needed. */
export interface BodyInput<B> {
  /** Its name in the API's document. */
  schema: string;
  /** The check throws invalid_spec with every wrong field. */
  load: () => Promise<(value: unknown) => B>;
  /** Bytes; absent: as many as any body may have. */
  maxBytes?: number;
}

export interface RequestContext<Q extends QueryShape = QueryShape, B = unknown> {
  desk: AppContext;
  /** `{name}` of the path, decoded. */
  name: string;
  query: QueryValues<Q>;
  body: B;
  /** That of the row; a handler may set another. */
  status: number;
}

export interface StreamRequestContext<Q extends QueryShape = QueryShape> extends RequestContext<Q> {
  /** The header Last-Event-ID; empty when there is none. */
  lastEventId: string;
  /** Sends the head; until then the call may fail like any other. null: the client has gone, or asked by HEAD. */
  open(): ResponseStream | null;
}

interface RouteBase extends RoutePattern {
  summary: string;
  status: number;
  /** The name of what it answers in the API's document. */
  reply: string;
  /** Codes besides those that any request may meet. */
  errors: readonly ErrorCode[];
  nameKind?: NameKind;
  /** Answered in every phase. */
  always?: boolean;
}

/** Answered from the views at once. */
export interface ReadRoute extends RouteBase {
  kind: 'read';
  /** null: there is no such thing, which is the first of `errors`. */
  read: (views: ServiceViews, name: string) => Uint8Array | null;
}

export interface CallRoute extends RouteBase {
  kind: 'call';
  query: QueryShape;
  input: BodyInput<unknown> | null;
  /** Bytes are sent as they are, anything else as JSON. */
  run: (call: RequestContext) => unknown;
}

export interface StreamRoute extends RouteBase {
  kind: 'stream';
  query: QueryShape;
  run: (call: StreamRequestContext) => void | Promise<void>;
}

export interface SocketRoute extends RouteBase {
  kind: 'socket';
  /** Asked before the upgrade: what it throws is an ordinary answer. */
  run: (call: RequestContext) => (socket: ServerWebSocket) => WebSocketHandlers;
  protocol: string;
}

export type ApiRoute = ReadRoute | CallRoute | StreamRoute | SocketRoute;

/** A row as it is written: most answer 200, and nothing but what any request may meet. */
type RouteDefinition<R extends ApiRoute, K extends keyof R = 'kind'> = Omit<
  R,
  K | 'kind' | 'status' | 'errors'
> &
  Partial<Pick<R, 'status' | 'errors'>>;

const ROUTE_DEFAULTS = { status: 200, errors: [] };

export const readRoute = (row: RouteDefinition<ReadRoute>): ApiRoute => ({
  ...ROUTE_DEFAULTS,
  ...row,
  kind: 'read',
});

/** A row whose handler has the types of its own query and body. */
export function callRoute<Q extends QueryShape = Record<never, never>, B = null>(
  row: RouteDefinition<CallRoute, 'query' | 'input' | 'run'> & {
    query?: Q;
    input?: BodyInput<B>;
    run: (call: RequestContext<Q, B>) => unknown;
  },
): ApiRoute {
  const { query = {}, input = null, run } = row;
  // The handler is only ever given what its own query and input have made.
  return {
    ...ROUTE_DEFAULTS,
    ...row,
    kind: 'call',
    query,
    input,
    run: run as (call: RequestContext) => unknown,
  };
}

export function streamRoute<Q extends QueryShape>(
  row: RouteDefinition<StreamRoute, 'query' | 'run'> & {
    query: Q;
    run: (call: StreamRequestContext<Q>) => void | Promise<void>;
  },
): ApiRoute {
  return { ...ROUTE_DEFAULTS, ...row, kind: 'stream', run: row.run as StreamRoute['run'] };
}

export const socketRoute = (row: RouteDefinition<SocketRoute>): ApiRoute => ({
  ...ROUTE_DEFAULTS,
  ...row,
  kind: 'socket',
});
