// The vocabulary of the actor runtime. Each of its eight guarantees is stated at the member it concerns,
// tested in test/runtime, and checked by test/sim under random crashes, cut links and delays. The runtime
// knows nothing of the product.

import type { RestartLimit } from './restart_window.ts';

/** A protocol is an interface of functions from one plain object to one plain object (or null). */
export type Protocol<P> = { [K in keyof P]: (message: never) => unknown };
export type MessageKind<P> = keyof P & string;
export type MessageOf<P, K extends keyof P> = P[K] extends (message: infer M) => unknown ? M : never;
export type ReplyOf<P, K extends keyof P> = P[K] extends (message: never) => infer R ? Awaited<R> : never;

/**
 * Every address with the protocol of its actor; the key of a family is a template literal such as
 * `service:${string}`. Empty here: the product adds its actors by declaration merging, so a ref always has
 * its actor's protocol.
 */
// biome-ignore lint/suspicious/noEmptyInterface: filled by declaration merging
export interface Directory {}
export type Address = keyof Directory & string;
/** `service:` for `service:${string}`; the address itself for a single actor. */
export type PlacementKey<A extends string> = A extends `${infer F}:${string}` ? `${F}:` : A;
/** The prefix of a family: `service:`. */
export type FamilyPrefix = Extract<PlacementKey<Address>, `${string}:`>;
export type FamilyProtocol<F extends FamilyPrefix> = Directory[Extract<Address, `${F}${string}`>];

/** The runtime's own failure codes; all others belong to the product. */
export type RuntimeCode = 'overloaded' | 'deadline' | 'crashed' | 'gone';

/**
 * An expected outcome other than success. When a handler throws it, it is the caller's reply. It crosses
 * threads as `{code, message, detail}`. Compare `code`, never the class.
 */
export class Failure extends Error {
  readonly code: string;
  readonly detail: unknown;
  constructor(code: string, message: string, detail?: unknown) {
    super(message);
    this.name = 'Failure';
    this.code = code;
    this.detail = detail;
  }
}

/** Whether `error` is a Failure. Goes by its shape, because each bundle has its own copy of the class. */
export function isFailure(error: unknown): error is Failure {
  return error instanceof Error && error.name === 'Failure' && typeof (error as Failure).code === 'string';
}

/**
 * The value of `work`, or the result of `instead` when it fails with a Failure. A defect is rethrown, so that
 * it crashes the waiting actor.
 */
export async function tolerateFailure<T, U>(
  work: Promise<T>,
  instead: (failure: Failure) => U | Promise<U>,
): Promise<T | U> {
  try {
    return await work;
  } catch (error) {
    if (!isFailure(error)) throw error;
    return instead(error);
  }
}

export interface AskOptions {
  /** Milliseconds until the ask fails with `deadline`; an expired message is not run. */
  deadlineMs?: number;
}

/** A reference to an actor, independent of where the actor runs. */
export interface Ref<P> {
  readonly address: string;
  /**
   * Guarantee 3. An ask settles exactly once: with the reply, the Failure of the handler, or a Failure with a
   * RuntimeCode. A message whose deadline has passed is not run.
   */
  ask<K extends MessageKind<P>>(
    kind: K,
    message: MessageOf<P, K>,
    options?: AskOptions,
  ): Promise<ReplyOf<P, K>>;
  /**
   * Sends and forgets.
   *
   * Guarantee 2. Messages of one sender to one receiver arrive in order, tells and asks together. Nothing is
   * promised between senders.
   */
  tell<K extends MessageKind<P>>(kind: K, message: MessageOf<P, K>): void;
}

/** Time as a parameter, so that tests can control it. */
export interface Clock {
  /** Wall-clock milliseconds since the epoch; may jump. */
  now(): number;
  /** Monotonic milliseconds; never jumps. */
  monotonic(): number;
  /** Milliseconds in which this process ran, not those in which it was stopped or its machine paused. */
  running(): number;
  /** Runs `callback` once after `ms`; returns a function that cancels it. */
  after(ms: number, callback: () => void): () => void;
  /** Runs `callback` every `ms`. After the machine has been suspended it fires once, not in a burst. */
  every(ms: number, callback: () => void): () => void;
}

/** Closes what an incarnation has opened, last first, however the actor ends. */
export interface Scope {
  /** Registers `close`; returns a function that closes it now and unregisters it. */
  defer(close: () => void | Promise<void>): () => void;
  /** Aborted when the scope closes. */
  readonly signal: AbortSignal;
}

declare const deferredReplyBrand: unique symbol;
/**
 * Returned by a handler to let the next message in before its own reply is ready. Made by `replyLater` and
 * `turn`.
 */
export interface DeferredReply<R> {
  readonly [deferredReplyBrand]: R;
}

export interface Context {
  readonly address: string;
  /**
   * The node's clock, but a timer ends with this incarnation, and an error in its callback is a crash of the
   * actor.
   */
  readonly clock: Clock;
  readonly scope: Scope;
  /**
   * Once this incarnation is over and closed, asks through the ref fail with `gone`, and tells are dropped.
   */
  ref<A extends Address>(address: A): Ref<Directory[A]>;
  /** Replies with the result of `promise`; the mailbox continues meanwhile. */
  replyLater<R>(promise: Promise<R>): DeferredReply<R>;
  /**
   * Replies with the result of `work`; the mailbox continues meanwhile. Work on one key runs in the order of
   * the calls, one at a time; work on different keys runs concurrently. Work still waiting at the end of the
   * incarnation does not run.
   */
  turn<R>(key: string, work: () => Promise<R>): DeferredReply<R>;
  /**
   * Calls `onEnded` once when `address` has ended or its thread has died, and soon if there is no actor now.
   */
  watch(address: string, onEnded: (address: string) => void): void;
  /**
   * Ends this actor after the current message; open deferred replies are awaited for `drainMs`. Messages
   * behind it fail with `gone` or, in a family, start the actor again.
   */
  end(): void;
  /** Ends this incarnation as a crash, for background work whose failure the actor cannot survive. */
  crash(error: unknown): void;
}

/**
 * Guarantee 1. An actor handles one message at a time, awaits included. Only a DeferredReply allows two open
 * requests.
 *
 * Guarantee 5. A Failure that a handler throws is a reply. Anything else is a crash: the caller gets
 * `crashed`, the resources of the incarnation are closed last-first, and `init` runs again after a pause.
 * Queued messages stay; the message that crashed the actor is not retried.
 */
export type Handlers<P> = {
  [K in keyof P]: (
    message: MessageOf<P, K>,
  ) => ReplyOf<P, K> | DeferredReply<ReplyOf<P, K>> | Promise<ReplyOf<P, K> | DeferredReply<ReplyOf<P, K>>>;
};

export interface ActorLimits {
  /**
   * Guarantee 4. Capacity for waiting messages, open deferred replies included. Any further message fails at
   * once with `overloaded`.
   */
  mailbox: number;
  /** Guarantee 6. More crashes than `max` within `withinMs` end the actor, and its watchers are told once. */
  restarts: RestartLimit;
  /**
   * How long a stop waits for queued messages and open deferred replies before it reports the actor as late.
   */
  drainMs: number;
}

/** An actor is a function returning an object of handlers; its state is the closure. */
export interface ActorType<P, C> {
  readonly name: string;
  readonly limits: ActorLimits;
  init(context: Context, config: C): Handlers<P> | Promise<Handlers<P>>;
}

const DEFAULT_LIMITS: ActorLimits = { mailbox: 4096, restarts: { max: 5, withinMs: 10_000 }, drainMs: 5_000 };

/**
 * A type of actor. `init` runs at the start and again after each crash; an exception from it is a crash.
 * Default `limits`: 4,096 messages, 5 crashes in 10 s, 5 s to drain.
 */
export function actor<P extends Protocol<P>, C>(
  name: string,
  init: (context: Context, config: C) => Handlers<P> | Promise<Handlers<P>>,
  limits: Partial<ActorLimits> = {},
): ActorType<P, C> {
  return { name, init, limits: { ...DEFAULT_LIMITS, ...limits } };
}

/**
 * A byte channel to another node: a MessagePort, a unix socket, or two ends in one test. Ordered and split
 * into messages.
 */
export interface Pipe {
  /** `bytes` may be transferred: the caller must not use it afterwards. */
  send(bytes: Uint8Array): void;
  receive(onBytes: (bytes: Uint8Array) => void, onClose: (reason: string) => void): void;
  close(): void;
}

/** The actors of one thread or process. */
export interface Node {
  readonly name: string;
  readonly clock: Clock;
  /** Closed by `stop` after the last actor has ended, for resources that several actors share. */
  readonly scope: Scope;
  /** Starts one actor at `address`; resolves after its first `init`. */
  start<A extends Address, C>(
    address: A,
    type: ActorType<Directory[A], C>,
    config: C,
  ): Promise<Ref<Directory[A]>>;
  /** Starts an actor at the first message to an address that begins with `prefix` (such as `service:`). */
  family<F extends FamilyPrefix, C>(
    prefix: F,
    type: ActorType<FamilyProtocol<F>, C>,
    config: (address: string) => C,
  ): void;
  ref<A extends Address>(address: A): Ref<Directory[A]>;
  /**
   * Connects to the node `peer` over `pipe`. A second pipe to the same peer replaces the first, whose open
   * asks fail with `gone`.
   */
  connect(peer: string, pipe: Pipe): void;
  disconnect(peer: string): void;
  onPeerLost(onLost: (peer: string, reason: string) => void): void;
  /** Reads all counters at once. Meant for people and monitoring, not for every message. */
  read(): NodeReading;
  /** Ends one actor after its queued messages. Resolves true when it drained in time. */
  end(address: string): Promise<boolean>;
  /**
   * Guarantee 8. A stop refuses new messages, answers queued ones and closes all scopes, the last started
   * actor first. Resolves with the addresses that exceeded their drain time.
   */
  stop(): Promise<string[]>;
}

/** The load of the actors at one address, or of one family. */
export interface ActorReading {
  /** The address of one actor, or the prefix of a family. */
  address: string;
  actors: number;
  /** Messages waiting in all mailboxes; `longest` is the longest single queue. */
  waiting: number;
  longest: number;
  /** Messages with a deferred reply that is still open. */
  open: number;
}

/** What a node is doing, and what it has done since it was created. */
export interface NodeReading {
  actors: ActorReading[];
  /** Asks of this node that are still open. */
  openAsks: number;
  /** Messages that arrived. */
  messages: number;
  /** Asks that got no answer in time. */
  missedDeadlines: number;
  /** Crashes of actors, and errors without a caller. */
  crashes: number;
}

export interface NodeOptions {
  name: string;
  clock: Clock;
  /** The node that holds `address`; undefined if none does, so an ask fails with `gone`. */
  nodeOf: (address: string) => string | undefined;
  /**
   * Guarantee 7. Asks follow an order, so two actors never wait for each other: returns whether the actor at
   * `from` may ask the one at `to`. A forbidden ask is a defect and throws. Tells, replies and asks of the
   * node itself are exempt.
   */
  mayAsk?: (from: string, to: string) => boolean;
  /**
   * Called for every crash (`ended`: it exceeded the restart limit) and every error that has no caller: a
   * scope that fails to close, a tell that is dropped or has no handler. The runtime itself prints nothing.
   */
  onCrash?: (address: string, error: unknown, ended: boolean) => void;
  /** Called before each message is handled. It must not throw. */
  onHandle?: (address: string, kind: string) => void;
  /** The default deadline of an ask, in milliseconds. */
  defaultDeadlineMs?: number;
}
