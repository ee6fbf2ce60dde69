// The vocabulary of the actor runtime, and its eight guarantees: each stands above the member that it
// concerns, has its test in test/runtime, and is held under random crashes, cut links and delays by test/sim.
// It knows nothing of the product.

import type { RestartLimit } from './restart_window.ts';

/** A protocol is an interface of functions from one plain object to one plain object (or null). */
export type Protocol<P> = { [K in keyof P]: (message: never) => unknown };
export type MessageKind<P> = keyof P & string;
export type MessageOf<P, K extends keyof P> = P[K] extends (message: infer M) => unknown ? M : never;
export type ReplyOf<P, K extends keyof P> = P[K] extends (message: never) => infer R ? Awaited<R> : never;

/**
 * Every address with the protocol of the actor there; the key of a family is a template literal such as
 * `service:${string}`. Empty here: the product adds its actors by declaration merging, so that a ref cannot
 * have another protocol than its actor.
 */
// biome-ignore lint/suspicious/noEmptyInterface: filled by declaration merging
export interface Directory {}
export type Address = keyof Directory & string;
/** `service:` for `service:${string}`; the address itself for an actor that stands alone. */
export type PlacementKey<A extends string> = A extends `${infer F}:${string}` ? `${F}:` : A;
/** The prefix of a family: `service:`. */
export type FamilyPrefix = Extract<PlacementKey<Address>, `${string}:`>;
export type FamilyProtocol<F extends FamilyPrefix> = Directory[Extract<Address, `${F}${string}`>];

/** Codes the runtime itself answers with; every other code belongs to the product. */
export type RuntimeCode = 'overloaded' | 'deadline' | 'crashed' | 'gone';

/**
 * An expected outcome that is not success. Thrown by a handler it is the caller's reply; it crosses threads
 * as `{code, message, detail}`. Compare `code`, never the class.
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

/**
 * Whether `error` is a Failure, by its shape, so that a copy of this module in another bundle counts as well.
 */
export function isFailure(error: unknown): error is Failure {
  return error instanceof Error && error.name === 'Failure' && typeof (error as Failure).code === 'string';
}

/**
 * The value of `work`, or what `instead` gives when it fails with a Failure. A defect is rethrown, so that it
 * crashes the actor that waits.
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
  /** Milliseconds until the ask fails with `deadline`; the message is not run once it has expired. */
  deadlineMs?: number;
}

/** Where to reach an actor. It does not say where the actor is. */
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

/** Time as a parameter: a test turns it by hand. */
export interface Clock {
  /** Wall-clock milliseconds since the epoch; may jump. */
  now(): number;
  /** Monotonic milliseconds; never jumps. */
  monotonic(): number;
  /** Runs `callback` once after `ms`; returns a function that cancels it. */
  after(ms: number, callback: () => void): () => void;
  /** Runs `callback` every `ms`; after the machine slept it fires once, not in a burst. */
  every(ms: number, callback: () => void): () => void;
}

/** What an incarnation opens, that incarnation closes: last-first, however the actor ends. */
export interface Scope {
  /** Registers `close`; returns a function that closes it now and takes it off the list. */
  defer(close: () => void | Promise<void>): () => void;
  /** Aborted when the scope closes. */
  readonly signal: AbortSignal;
}

declare const deferredReplyBrand: unique symbol;
/**
 * What a handler returns to let the next message in before its own reply is there. Made by `replyLater` and
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
  /** Asks through it are refused with `gone`, tells dropped, once this incarnation is over and closed. */
  ref<A extends Address>(address: A): Ref<Directory[A]>;
  /** Replies with what `promise` gives; the mailbox goes on meanwhile. */
  replyLater<R>(promise: Promise<R>): DeferredReply<R>;
  /**
   * Replies with what `work` gives; the mailbox goes on meanwhile. Work on one key runs in the order of the
   * calls, one at a time; work on different keys runs side by side. Work that waits when the incarnation is
   * over does not run.
   */
  turn<R>(key: string, work: () => Promise<R>): DeferredReply<R>;
  /** Calls `onEnded` once when `address` has ended or its thread is gone, and soon if nobody is there now. */
  watch(address: string, onEnded: (address: string) => void): void;
  /**
   * Ends this actor after the current message; open deferred replies are awaited for `drainMs`. What is
   * queued behind it gets `gone`, or, in a family, starts the actor anew.
   */
  end(): void;
  /** Ends this incarnation as a crash: for background work whose failure the actor cannot survive. */
  crash(error: unknown): void;
}

/**
 * Guarantee 1. An actor handles one message at a time, awaits included. A DeferredReply is the one way to
 * have two requests open.
 *
 * Guarantee 5. A Failure that a handler throws is a reply. Anything else is a crash: the caller gets
 * `crashed`, what the incarnation opened is closed last-first, and `init` runs again after a pause. Queued
 * messages stay; the one that crashed the actor is not tried again.
 */
export type Handlers<P> = {
  [K in keyof P]: (
    message: MessageOf<P, K>,
  ) => ReplyOf<P, K> | DeferredReply<ReplyOf<P, K>> | Promise<ReplyOf<P, K> | DeferredReply<ReplyOf<P, K>>>;
};

export interface ActorLimits {
  /**
   * Guarantee 4. Messages that may wait, open deferred replies included: one more is refused at once,
   * `overloaded`.
   */
  mailbox: number;
  /** Guarantee 6. More crashes than `max` within `withinMs` end the actor, and its watchers are told once. */
  restarts: RestartLimit;
  /**
   * How long a stop waits for what is queued and for open deferred replies before it reports the actor as
   * late.
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
 * A type of actor. `init` runs at the start and again after each crash; what it throws is a crash. `limits`
 * left out: 4,096 messages, 5 crashes in 10 s, 5 s to drain.
 */
export function actor<P extends Protocol<P>, C>(
  name: string,
  init: (context: Context, config: C) => Handlers<P> | Promise<Handlers<P>>,
  limits: Partial<ActorLimits> = {},
): ActorType<P, C> {
  return { name, init, limits: { ...DEFAULT_LIMITS, ...limits } };
}

/**
 * A byte channel to another node: a MessagePort, a unix socket, or two ends in one test. Ordered,
 * message-framed.
 */
export interface Pipe {
  /** `bytes` may be transferred: the caller does not touch it again. */
  send(bytes: Uint8Array): void;
  receive(onBytes: (bytes: Uint8Array) => void, onClose: (reason: string) => void): void;
  close(): void;
}

/** One thread's (or process's) share of the actors. */
export interface Node {
  readonly name: string;
  readonly clock: Clock;
  /** Closed by `stop` after the last actor has ended: for what several actors use. */
  readonly scope: Scope;
  /** Starts one actor at `address`; resolves after its first `init`. */
  start<A extends Address, C>(
    address: A,
    type: ActorType<Directory[A], C>,
    config: C,
  ): Promise<Ref<Directory[A]>>;
  /** Actors whose address begins with `prefix` (such as `service:`) start at the first message to them. */
  family<F extends FamilyPrefix, C>(
    prefix: F,
    type: ActorType<FamilyProtocol<F>, C>,
    config: (address: string) => C,
  ): void;
  ref<A extends Address>(address: A): Ref<Directory[A]>;
  /**
   * Joins the node `peer` over `pipe`. A second pipe to the same peer replaces the first, whose open asks
   * settle `gone`.
   */
  connect(peer: string, pipe: Pipe): void;
  disconnect(peer: string): void;
  onPeerLost(onLost: (peer: string, reason: string) => void): void;
  /** Ends one actor in order. Resolves true when it drained in time. */
  end(address: string): Promise<boolean>;
  /**
   * Guarantee 8. A stop refuses new messages, answers those in the queues and closes all scopes, last started
   * actor first. Resolves with the addresses that missed their drain time.
   */
  stop(): Promise<string[]>;
}

/** For `observe`. */
export type RuntimeEvent =
  /** A message came into a mailbox: how many wait there, and how many deferred replies are open. */
  | { is: 'queued'; address: string; waiting: number; open: number }
  /** An ask was sent to a peer (the node itself included): how many are open to that peer. */
  | { is: 'asked'; peer: string; to: string; open: number }
  /** An ask got no answer in time. */
  | { is: 'missed'; peer: string; to: string }
  /** What `onCrash` gets. */
  | { is: 'crashed'; address: string; error: unknown; ended: boolean };

export interface NodeOptions {
  name: string;
  clock: Clock;
  /** The node that holds `address`; undefined: nobody, an ask settles `gone`. */
  nodeOf: (address: string) => string | undefined;
  /**
   * Guarantee 7. Two actors never wait for each other where this is an order: whether an actor at `from` may
   * ask one at `to`. An ask that may not is a defect and throws. Tells, replies and asks of the node itself
   * are free.
   */
  mayAsk?: (from: string, to: string) => boolean;
  /**
   * Gets every crash (`ended`: it was one too many) and every error without a caller that could be told: an
   * error while a scope closes, a tell that is dropped or that no handler takes. The runtime prints nothing
   * itself.
   */
  onCrash?: (address: string, error: unknown, ended: boolean) => void;
  /** Gets what happens inside. It must not throw. Costs nothing when it is absent. */
  observe?: (event: RuntimeEvent) => void;
  /** The deadline of an ask that gives none, in milliseconds. */
  defaultDeadlineMs?: number;
}
