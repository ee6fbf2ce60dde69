// What a row of the route table says, and what its handler is given.
import type { ErrorCode } from '../protocol/errors.ts';
import type { Protocol, Ref } from '../runtime/actor.ts';
import type { EventHub } from './event_hub.ts';
import type { LogStreams } from './log_streams.ts';
import type { QueryShape, QueryValues } from './query.ts';
import type { Pattern } from './router.ts';
import type { Socket, SocketEvents, Stream } from './server.ts';
import type { Terminals } from './terminals.ts';
import type { Views } from './views.ts';

/** What the front says of itself; read at each request, so the owner may change it. */
export interface About {
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
export type Phase = 'starting' | 'ready' | 'closing';

/** What handlers work with. */
export interface Desk {
  readonly views: Views;
  readonly hub: EventHub;
  readonly logs: LogStreams;
  readonly terminals: Terminals;
  readonly about: About;
  readonly phase: Phase;
  /** Starts the gateway unless it runs: its port, or null when it is off or its port cannot be had. */
  openGateway(): Promise<number | null>;
  /** The API's document. */
  openapi(): Promise<Uint8Array>;
  ref<P extends Protocol<P>>(address: string): Ref<P>;
}

/** What `{name}` of a path is; a write to something else than such a name is 400, a read 404. */
export type NameKind = 'service' | 'agent' | 'group' | 'id';

/** A body: its shape is loaded when it is first needed. */
export interface Input<B> {
  /** Its name in the API's document. */
  schema: string;
  /** The check throws invalid_spec with every wrong field. */
  load: () => Promise<(value: unknown) => B>;
  /** Bytes; absent: as many as any body may have. */
  limit?: number;
}

export interface Call<Q extends QueryShape = QueryShape, B = unknown> {
  desk: Desk;
  /** `{name}` of the path, decoded. */
  name: string;
  query: QueryValues<Q>;
  body: B;
  /** That of the row; a handler may set another. */
  status: number;
}

export interface StreamCall<Q extends QueryShape = QueryShape> extends Call<Q> {
  /** The header Last-Event-ID; empty when there is none. */
  lastEventId: string;
  /** Sends the head; until then the call may fail like any other. null: the client has gone, or asked by HEAD. */
  open(): Stream | null;
}

interface Common extends Pattern {
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
export interface ReadRow extends Common {
  kind: 'read';
  /** null: there is no such thing, which is the first of `errors`. */
  read: (views: Views, name: string) => Uint8Array | null;
}

export interface CallRow extends Common {
  kind: 'call';
  query: QueryShape;
  input: Input<unknown> | null;
  /** Bytes are sent as they are, anything else as JSON. */
  run: (call: Call) => unknown;
}

export interface StreamRow extends Common {
  kind: 'stream';
  query: QueryShape;
  run: (call: StreamCall) => void | Promise<void>;
}

export interface SocketRow extends Common {
  kind: 'socket';
  /** Asked before the upgrade: what it throws is an ordinary answer. */
  run: (call: Call) => (socket: Socket) => SocketEvents;
  protocol: string;
}

export type Row = ReadRow | CallRow | StreamRow | SocketRow;

/** A row as it is written: most answer 200, and nothing but what any request may meet. */
type Made<R extends Row, K extends keyof R = 'kind'> = Omit<R, K | 'kind' | 'status' | 'errors'> &
  Partial<Pick<R, 'status' | 'errors'>>;

const USUAL = { status: 200, errors: [] };

export const read = (row: Made<ReadRow>): Row => ({ ...USUAL, ...row, kind: 'read' });

/** A row whose handler has the types of its own query and body. */
export function call<Q extends QueryShape = Record<never, never>, B = null>(
  row: Made<CallRow, 'query' | 'input' | 'run'> & {
    query?: Q;
    input?: Input<B>;
    run: (call: Call<Q, B>) => unknown;
  },
): Row {
  const { query = {}, input = null, run } = row;
  // The handler is only ever given what its own query and input have made.
  return { ...USUAL, ...row, kind: 'call', query, input, run: run as (call: Call) => unknown };
}

export function stream<Q extends QueryShape>(
  row: Made<StreamRow, 'query' | 'run'> & {
    query: Q;
    run: (call: StreamCall<Q>) => void | Promise<void>;
  },
): Row {
  return { ...USUAL, ...row, kind: 'stream', run: row.run as StreamRow['run'] };
}

export const socket = (row: Made<SocketRow>): Row => ({ ...USUAL, ...row, kind: 'socket' });
