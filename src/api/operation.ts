// An operation of the API (a method on a path) as data. Operations refer to shapes by name, so this file does
// not need zod, and neither the start of the daemon nor the command line nor a client loads zod.
import type { z } from '../adapters/zod.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { QueryInput, QueryShape, QueryValues } from './query.ts';
import type { ResourceShapes } from './shapes.ts';
import type { RequestBody } from './validation.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * `read`: answered at once from the views. `call`: the handler asks an owner. `stream`: events as they
 * arrive. `socket`: a WebSocket. `relay`: body and answer are passed on unchanged.
 */
export type OperationKind = 'read' | 'call' | 'stream' | 'socket' | 'relay';

/** The kind of key in a path. An invalid name is a 400 for a write and a 404 for a read. */
export type KeyKind = 'service' | 'agent' | 'group' | 'stack' | 'policy' | 'token' | 'id';

/**
 * What an agent may do with its token, docs/reference.md "Agent tokens":
 * `never`: nothing, because only a person may use the operation;
 * `any`: everything, because the operation concerns no stack;
 * `self`: everything, if the path names the agent itself;
 * `stack`: everything, if the path names something in the agent's stack;
 * `body`: everything, if the body names something in the agent's stack;
 * `part`: the handler leaves out, or refuses, everything outside the agent's stack.
 */
export type AgentRight = 'never' | 'any' | 'self' | 'stack' | 'body' | 'part';

/** The codes for an unknown key in the path. */
export type MissingCode = Extract<ErrorCode, `unknown_${string}`>;

/** A resource of the API. Each has a module of operations, a module of shapes and a module of handlers. */
export type ResourceName = keyof ResourceShapes;

/** The names of the answer shapes in the module `S`, and of the body shapes. */
type AnswerName<S> = { [N in keyof S]: S[N] extends z.ZodType ? N : never }[keyof S] & string;
type BodyName<S> = { [N in keyof S]: S[N] extends RequestBody ? N : never }[keyof S] & string;

/** `B` and `A` name the body and the answer in the resource's module of shapes. */
export interface Operation<
  R extends ResourceName = ResourceName,
  K extends OperationKind = OperationKind,
  Q extends QueryShape = QueryShape,
  B extends string = string,
  A extends string = string,
> {
  /** Its name in the API's document and in generated clients: a verb and a noun. */
  readonly id: string;
  readonly resource: R;
  readonly kind: K;
  readonly method: Method;
  /** Contains at most one parameter, `{name}` or `{id}`, as the third segment. */
  readonly path: string;
  /** For the API's document. */
  readonly summary: string;
  /** The status of a successful answer; a handler may set another. */
  readonly status: number;
  /** Another status that a handler may set; null: none. */
  readonly otherStatus: number | null;
  readonly query: Q;
  readonly body: B | null;
  /** null: none, because the operation opens a WebSocket. */
  readonly answer: A | null;
  /** The answer with `otherStatus`; null: the same. */
  readonly otherAnswer: A | null;
  /** The content type of the answer; null: JSON, or an event stream for a `stream`. */
  readonly contentType: string | null;
  /** Error codes in addition to those of every request. */
  readonly errors: readonly ErrorCode[];
  readonly keyKind: KeyKind | null;
  readonly agentRight: AgentRight;
  /** For a `read`: the error code for an unknown key. */
  readonly missing: MissingCode | null;
  /** The part of the daemon that the handler needs. The first request that needs it starts it. */
  readonly needs: 'cloud' | 'mcp' | null;
  /**
   * Answered in every phase of the daemon. Other operations are answered once the daemon is ready, and
   * changes only until it shuts down.
   */
  readonly isAlways: boolean;
  /** Answered without a token, because it reveals nothing about registered resources. */
  readonly isPublic: boolean;
  /** Also answered to clients with a share token of the agent in the path. */
  readonly isShared: boolean;
  /** Answered without waiting for a process or a cluster, so a client may use a short timeout. */
  readonly isPrompt: boolean;
  /** Needs the store, so it may fail with the store's errors. */
  readonly isStored: boolean;
  /** For a `socket`: the WebSocket subprotocol. */
  readonly protocol: string | null;
}

/** The content type of metrics. */
export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** An operation as its module writes it. A field may be absent if it has its usual value. */
type Definition<
  R extends ResourceName,
  K extends OperationKind,
  Q extends QueryShape,
  B extends string,
  A extends string,
> = Pick<Operation<R, K, Q, B, A>, 'id' | 'kind' | 'method' | 'path' | 'summary' | 'answer' | 'agentRight'> &
  Partial<Omit<Operation<R, K, Q, B, A>, 'resource' | 'errors'>> & { readonly errors?: readonly ErrorCode[] };

/**
 * Constructs the operations of `resource`, and fills in the usual values: the answer is JSON with status 200,
 * a GET is prompt, every other method needs the store, and a `read` fails only with its `missing`.
 */
export const operationsOf =
  <R extends ResourceName>(resource: R) =>
  <
    K extends OperationKind,
    A extends AnswerName<ResourceShapes[R]>,
    const Q extends QueryShape = Record<never, never>,
    B extends BodyName<ResourceShapes[R]> = never,
  >(
    definition: Definition<R, K, Q, B, A>,
  ): Operation<R, K, Q, B, A> => {
    const { query, errors, missing = null } = definition;
    return {
      status: 200,
      otherStatus: null,
      otherAnswer: null,
      body: null,
      contentType: null,
      keyKind: null,
      needs: null,
      isAlways: false,
      isPublic: false,
      isShared: false,
      isPrompt: definition.method === 'GET',
      isStored: definition.method !== 'GET',
      protocol: null,
      ...definition,
      resource,
      missing,
      errors: errors ?? (missing ? [missing] : []),
      // Absent only if Q is the shape without fields.
      query: query ?? ({} as Q),
    };
  };

/** Whether an operation changes the cloud part: docs/reference.md "Operations and retries". */
export const isCloudChange = ({ needs, method }: Pick<Operation, 'needs' | 'method'>): boolean =>
  needs === 'cloud' && method !== 'GET';

type ShapesOf<O extends Operation> = ResourceShapes[O['resource']];
type ShapeOf<O extends Operation, N> = N extends keyof ShapesOf<O> ? ShapesOf<O>[N] : never;

/** The answer of an operation, in JSON. */
export type AnswerOf<O extends Operation> =
  ShapeOf<O, O['answer']> extends infer S extends z.ZodType ? z.infer<S> : never;
/** The body that a client sends; undefined: none. */
export type InputOf<O extends Operation> = [NonNullable<O['body']>] extends [never]
  ? undefined
  : ShapeOf<O, O['body']> extends RequestBody<infer I, unknown>
    ? I
    : never;
/** The body that the handler gets, validated and with every default; null: none. */
export type BodyOf<O extends Operation> = [NonNullable<O['body']>] extends [never]
  ? null
  : ShapeOf<O, O['body']> extends { parse: (value: unknown) => infer B }
    ? B
    : never;
/** The query that the handler gets. */
export type QueryOf<O extends Operation> = QueryValues<O['query']>;
/** The query that a client gives. */
export type QueryInputOf<O extends Operation> = QueryInput<O['query']>;

/** Resources that each Berth answers itself: its tethers, its relay, the proof that it knows its token. */
const OWN: ReadonlySet<ResourceName> = new Set(['tethers', 'relay', 'access']);

/** Whether the remote Berth, if one is set, answers `operation`. */
export const isOfRemote = ({ path, resource }: Operation): boolean =>
  path.startsWith('/k8s/') && !OWN.has(resource);
