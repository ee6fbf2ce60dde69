// The handlers of operations, typed by the operation, so that query, body and answer cannot disagree with it.
import type { AnswerOf, BodyOf, Operation, QueryOf } from '../../api/operation.ts';
import type { Principal } from '../../protocol/grants.ts';
import type {
  ResponseHeaders,
  ResponseStream,
  ServerWebSocket,
  WebSocketHandlers,
} from '../server/http_server.ts';
import type { AnswerParts } from '../streams/answer_parts.ts';
import type { RelayedAnswer, RelayedRequest } from '../streams/mcp_relay.ts';
import type { AppContext } from './app_context.ts';
import type { Caller } from './caller.ts';
import type { Reach } from './reach.ts';

/** The target of a request. */
interface RequestTarget<Q = unknown> {
  readonly app: AppContext;
  /** The path's parameter, a name or an id, decoded; empty for a path without one. */
  readonly key: string;
  readonly query: Q;
  /** Who asks. Restricted callers only reach operations meant for them. */
  readonly caller: Caller;
  /** What the calling agent may reach; null: the caller is not an agent, so everything. */
  readonly reach: Reach | null;
  /** The holder of the API token; null: an unrestricted caller. */
  readonly principal: Principal | null;
}

export interface RequestContext<Q = unknown, B = unknown> extends RequestTarget<Q> {
  body: B;
  /** The Host of the request. */
  readonly host: string;
  /** The token or bearer of the request; empty when absent. */
  readonly bearer: string;
  /** Who asks, as named in the audit log. */
  readonly who: string;
  /** The address of the client. */
  readonly from: string;
  /** The header Accept; empty when absent. */
  readonly accept: string;
  /** Registers `listener`, called if the client disconnects before it gets its answer. */
  onGone(listener: () => void): void;
  /** The operation id of a change of the cloud part. */
  operationId?: string;
  /** The operation's status and headers; a handler may set others. */
  status: number;
  headers: ResponseHeaders;
  /** Additional headers for an error: name, value, name, value. */
  errorHeaders: readonly string[];
}

export interface StreamContext<Q = unknown> extends RequestTarget<Q> {
  /** The header Last-Event-ID; empty when absent. */
  readonly lastEventId: string;
  /**
   * Sends the head. Until then the request may still fail like any other. null: the client has disconnected,
   * or sent HEAD.
   */
  open(): ResponseStream | null;
}

/** The handler of each kind of operation. */
interface HandlerKinds<Q, B, A> {
  /**
   * The bytes of the answer; null: the key is unknown. `query` null: the request has none. A promise if the
   * views alone do not have the answer. `reach`, `principal` null: unrestricted.
   */
  read: (
    app: AppContext,
    key: string,
    query: Q | null,
    reach: Reach | null,
    principal: Principal | null,
  ) => Uint8Array | null | Promise<Uint8Array | null>;
  /** The answer, its bytes, or the parts of a long one. */
  call: (request: RequestContext<Q, B>) => A | Uint8Array | AnswerParts | Promise<A | Uint8Array>;
  /** Resolves when the stream is open; a rejection is answered like any other error. */
  stream: (request: StreamContext<Q>) => void | Promise<void>;
  /** null: the answer is streamed. */
  relay: (request: RelayedRequest & { readonly app: AppContext }) => Promise<RelayedAnswer | null>;
  /** Runs before the upgrade, so an exception is answered like any other error. */
  socket: (request: RequestTarget<Q>) => (socket: ServerWebSocket) => WebSocketHandlers;
}

type HandlerOf<O extends Operation> = HandlerKinds<QueryOf<O>, BodyOf<O>, AnswerOf<O>>[O['kind']];

/** A handler for each of a resource's operations. */
export type HandlersOf<T extends Readonly<Record<string, Operation>>> = {
  readonly [N in keyof T]: HandlerOf<T[N]>;
};

/** The handler of an operation of kind `K`, with any query and body. */
export type AnyHandler<K extends Operation['kind']> = HandlerKinds<unknown, unknown, unknown>[K];
