// One operation of the API, a method on a path, as data. Shapes stand in it by name: nothing here needs zod,
// so that neither a start of the daemon nor the command line nor a client loads it.
import type { z } from '../adapters/zod.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { QueryInput, QueryShape, QueryValues } from './query.ts';
import type { ResourceShapes } from './shapes.ts';
import type { RequestBody } from './validation.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/**
 * `read`: answered from the views at once. `call`: an owner is asked. `stream`: events as they come.
 * `socket`: a WebSocket.
 */
export type OperationKind = 'read' | 'call' | 'stream' | 'socket';

/** What the parameter of a path is. A change of anything but such a key is 400, a read 404. */
export type KeyKind = 'service' | 'agent' | 'group' | 'id';

/** The codes for a key that nothing has. */
export type MissingCode = Extract<ErrorCode, `unknown_${string}`>;

/** A resource of the API: it has a module of operations, a module of shapes and a module of handlers. */
export type ResourceName = keyof ResourceShapes;

/** The names of the shapes in `S` of which one is an answer's, or a body's. */
type AnswerName<S> = { [N in keyof S]: S[N] extends z.ZodType ? N : never }[keyof S] & string;
type BodyName<S> = { [N in keyof S]: S[N] extends RequestBody ? N : never }[keyof S] & string;

/** `B` and `A` are names in the resource's module of shapes. */
export interface Operation<
  R extends ResourceName = ResourceName,
  K extends OperationKind = OperationKind,
  Q extends QueryShape = QueryShape,
  B extends string = string,
  A extends string = string,
> {
  readonly resource: R;
  readonly kind: K;
  readonly method: Method;
  /** With at most one parameter, `{name}` or `{id}`, which is its third segment. */
  readonly path: string;
  /** For the API's document. */
  readonly summary: string;
  /** Of the answer when all is well; a handler may set another. */
  readonly status: number;
  readonly query: Q;
  readonly body: B | null;
  /** null: there is none, the operation opens a WebSocket. */
  readonly answer: A | null;
  /** Of the answer; null: JSON, or an event stream where this is one. */
  readonly contentType: string | null;
  /** Codes besides those that any request may meet. */
  readonly errors: readonly ErrorCode[];
  readonly keyKind: KeyKind | null;
  /** Of a `read`: what it fails with when nothing has the key. */
  readonly missing: MissingCode | null;
  /** What must run before the handler does: it is started with the first request that needs it. */
  readonly needs: 'cloud' | null;
  /**
   * Answered in every phase of the daemon; the others from when it is ready, and changes until it shuts down.
   */
  readonly isAlways: boolean;
  /** Answered without a token: it says nothing about what is registered. */
  readonly isPublic: boolean;
  /** Answered without waiting for a process or a cluster: a client may give up on it soon. */
  readonly isPrompt: boolean;
  /** Of a `socket`: the subprotocol. */
  readonly protocol: string | null;
}

/** An operation as it is written: what is left out is as for most. */
type Definition<
  R extends ResourceName,
  K extends OperationKind,
  Q extends QueryShape,
  B extends string,
  A extends string,
> = Pick<Operation<R, K, Q, B, A>, 'kind' | 'method' | 'path' | 'summary' | 'answer'> &
  Partial<Omit<Operation<R, K, Q, B, A>, 'resource' | 'errors'>> & { readonly errors?: readonly ErrorCode[] };

/**
 * The one constructor of operations, for those of `resource`: it fills in what is left out. Usually an answer
 * is JSON with status 200; a GET is prompt, and a `read` fails with nothing but its `missing`.
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
      body: null,
      contentType: null,
      keyKind: null,
      needs: null,
      isAlways: false,
      isPublic: false,
      isPrompt: definition.method === 'GET',
      protocol: null,
      ...definition,
      resource,
      missing,
      errors: errors ?? (missing ? [missing] : []),
      // Absent only where Q is the shape without fields.
      query: query ?? ({} as Q),
    };
  };

type ShapesOf<O extends Operation> = ResourceShapes[O['resource']];
type ShapeOf<O extends Operation, N> = N extends keyof ShapesOf<O> ? ShapesOf<O>[N] : never;

/** The answer of an operation, as JSON has it. */
export type AnswerOf<O extends Operation> =
  ShapeOf<O, O['answer']> extends infer S extends z.ZodType ? z.infer<S> : never;
/** The body as a client sends it; undefined: there is none. */
export type InputOf<O extends Operation> = [NonNullable<O['body']>] extends [never]
  ? undefined
  : ShapeOf<O, O['body']> extends RequestBody<infer I, unknown>
    ? I
    : never;
/** The body as the handler gets it, checked and with every default; null: there is none. */
export type BodyOf<O extends Operation> = [NonNullable<O['body']>] extends [never]
  ? null
  : ShapeOf<O, O['body']> extends { parse: (value: unknown) => infer B }
    ? B
    : never;
/** The query as the handler gets it. */
export type QueryOf<O extends Operation> = QueryValues<O['query']>;
/** The query as a client gives it. */
export type QueryInputOf<O extends Operation> = QueryInput<O['query']>;
