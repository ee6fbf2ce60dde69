// What handles an operation, typed by it: query, body and answer of the two cannot disagree.
import type { AnswerOf, BodyOf, Operation, QueryOf } from '../../api/operation.ts';
import type { ResponseStream, ServerWebSocket, WebSocketHandlers } from '../server/http_server.ts';
import type { AppContext } from './app_context.ts';

export interface RequestContext<Q = unknown, B = unknown> {
  readonly app: AppContext;
  /** `{name}` of the path, decoded; empty where it has none. */
  readonly name: string;
  readonly query: Q;
  body: B;
  /** That of the operation; a handler may set another. */
  status: number;
}

export interface StreamContext<Q = unknown> extends Omit<RequestContext<Q, null>, 'status'> {
  /** The header Last-Event-ID; empty when there is none. */
  readonly lastEventId: string;
  /**
   * Sends the head; until then the request may fail like any other. null: the client has gone, or asked by
   * HEAD.
   */
  open(): ResponseStream | null;
}

/** What each kind of operation is handled by. */
interface HandlerKinds<Q, B, A> {
  /** The bytes of the answer; null: there is nothing of that name. */
  read: (app: AppContext, name: string) => Uint8Array | null;
  /** The answer, or its bytes. */
  call: (request: RequestContext<Q, B>) => A | Uint8Array | Promise<A | Uint8Array>;
  /** Resolves when the stream is open; what it rejects with is an answer like any other. */
  stream: (request: StreamContext<Q>) => void | Promise<void>;
  /** Runs before the upgrade: what it throws is an ordinary answer. */
  socket: (request: RequestContext<Q, null>) => (socket: ServerWebSocket) => WebSocketHandlers;
}

type HandlerOf<O extends Operation> = HandlerKinds<QueryOf<O>, BodyOf<O>, AnswerOf<O>>[O['kind']];

/** A handler for each of a resource's operations. */
export type HandlersOf<T extends Readonly<Record<string, Operation>>> = {
  readonly [N in keyof T]: HandlerOf<T[N]>;
};

/** What handles an operation of kind `K`, whatever its query and body are. */
export type AnyHandler<K extends Operation['kind']> = HandlerKinds<unknown, unknown, unknown>[K];
