// One incarnation of an actor: from an `init` to the crash or the end after it, with everything it opened.
import {
  type Address,
  type Clock,
  type Context,
  type DeferredReply,
  type Directory,
  isFailure,
  type Ref,
} from './actor.ts';
import { deferred, withTimeout } from './deferred.ts';
import type { Envelope } from './peer_link.ts';
import { openScope } from './scope.ts';

/** Whoever holds a ref. Once it is no longer live its asks are refused with `gone` and its tells dropped. */
export interface Sender {
  readonly address: string | undefined;
  readonly live: boolean;
}

/** What an incarnation needs of its node. */
export interface IncarnationNode {
  readonly clock: Clock;
  ref<A extends Address>(address: A, sender: Sender): Ref<Directory[A]>;
  watch(address: string, onEnded: (address: string) => void): () => void;
  report(address: string, error: unknown, ended: boolean): void;
}

export type HandlerTable = Readonly<Record<string, (message: never) => unknown>>;

export interface Crash {
  error: unknown;
}

export interface Incarnation {
  /** Resolves when no message is taken any more: with the crash, or with null after an end in order. */
  readonly ended: Promise<Crash | null>;
  /** Requests whose `later` is open. */
  readonly openReplies: ReadonlySet<Envelope>;
  /** Handles what is queued, as far as it may now. */
  pump(): void;
  /** Goes on until the queue and the laters are empty, then ends. */
  drain(): void;
  /** Ends now. What is open is answered: nobody else will. */
  finish(crash: Crash | null): void;
  /** Closes the scope and waits for the code that still runs, `drainMs` at most. False when that was too short. */
  close(): Promise<boolean>;
}

class PendingReply {
  readonly promise: Promise<unknown>;
  constructor(promise: Promise<unknown>) {
    this.promise = promise;
  }
}

/** Starts `init`; when it is done calls `started` and handles letters from `queue`. */
export function startIncarnation(
  address: string,
  init: (context: Context) => HandlerTable | Promise<HandlerTable>,
  node: IncarnationNode,
  queue: Envelope[],
  drainMs: number,
  onStarted: () => void,
): Incarnation {
  const scope = openScope((error) => node.report(address, error, false));
  const sender = { address, live: true };
  const over = deferred<Crash | null>();
  const laters = new Set<Envelope>();
  let isOver = false;
  let stop: 'no' | 'drain' | 'end' | 'lingering' = 'no';
  let handlers: HandlerTable | undefined;
  let current: Envelope | undefined;

  const finish = (crash: Crash | null) => {
    if (isOver) return;
    isOver = true;
    const open = current ? [current, ...laters] : laters;
    for (const letter of open) letter.link.refuse(letter.id, crash ? 'crashed' : 'gone', address);
    laters.clear();
    over.resolve(crash);
  };
  const crash = (error: unknown) => finish({ error });

  // Ends it once everything that is to be finished first is finished.
  const check = () => {
    if (isOver || !handlers || current || stop === 'no' || (stop === 'drain' && queue.length > 0)) return;
    if (laters.size === 0) finish(null);
    else if (stop === 'end') {
      stop = 'lingering';
      clock.after(drainMs, () => finish(null));
    }
  };

  const failed = (letter: Envelope, error: unknown) => {
    let defect = error;
    if (isFailure(error)) {
      try {
        return letter.link.fail(letter.id, error.code, error.message, error.detail);
      } catch (unsendable) {
        defect = unsendable;
      }
    }
    letter.link.refuse(letter.id, 'crashed', address);
    crash(defect);
  };

  const reply = (letter: Envelope, value: unknown) => {
    try {
      letter.link.reply(letter.id, value);
    } catch (unsendable) {
      failed(letter, unsendable);
    }
  };

  const postpone = (letter: Envelope, promise: Promise<unknown>) => {
    laters.add(letter);
    const settled = (settle: (letter: Envelope, result: unknown) => void) => (result: unknown) => {
      // No longer on the list: the incarnation was over first and has answered.
      if (!laters.delete(letter)) return;
      settle(letter, result);
      check();
    };
    promise.then(settled(reply), settled(failed));
  };

  const returned = (result: unknown) => {
    const letter = current;
    current = undefined;
    if (!letter || isOver) return;
    if (result instanceof PendingReply) postpone(letter, result.promise);
    else reply(letter, result);
  };
  const threw = (error: unknown) => {
    const letter = current;
    current = undefined;
    if (letter && !isOver) failed(letter, error);
  };

  const run = (letter: Envelope, table: HandlerTable) => {
    if (!Object.hasOwn(table, letter.kind)) {
      letter.link.refuse(letter.id, 'gone', `${address}.${letter.kind}`);
      node.report(address, new TypeError(`no handler for ${letter.kind}`), false);
      return;
    }
    current = letter;
    try {
      // What came over the wire has no type: the protocol, with which both sides were compiled, says which it is.
      const result = table[letter.kind]?.(letter.message as never);
      if (result instanceof Promise) rest = result.then(returned, threw).then(pump);
      else returned(result);
    } catch (error) {
      threw(error);
    }
  };

  const pump = () => {
    while (handlers && !current && !isOver && (stop === 'no' || stop === 'drain')) {
      const letter = queue.shift();
      if (!letter) break;
      // The asker of an expired letter has been told `deadline` by its own node.
      if (letter.expires > node.clock.monotonic()) run(letter, handlers);
    }
    check();
  };

  const guard = (callback: () => unknown) => {
    if (isOver) return;
    try {
      const result = callback();
      if (result instanceof Promise) result.catch(crash);
    } catch (error) {
      crash(error);
    }
  };

  const clock: Clock = {
    now: () => node.clock.now(),
    monotonic: () => node.clock.monotonic(),
    after(ms, callback) {
      const fire = () => {
        cancel();
        guard(callback);
      };
      const cancel = scope.defer(node.clock.after(ms, fire));
      return cancel;
    },
    every: (ms, callback) => scope.defer(node.clock.every(ms, () => guard(callback))),
  };

  const context: Context = {
    address,
    clock,
    scope,
    ref: (to) => node.ref(to, sender),
    // The brand of Later is there for the compiler only.
    replyLater: <R>(promise: Promise<R>) => new PendingReply(promise) as unknown as DeferredReply<R>,
    watch: (other, told) => void scope.defer(node.watch(other, (ended) => guard(() => told(ended)))),
    end() {
      stop = 'end';
      check();
    },
    crash,
  };

  const begin = async () => {
    try {
      const table = await init(context);
      if (isOver) return;
      handlers = table;
      onStarted();
      pump();
    } catch (error) {
      crash(error);
    }
  };
  // The code that runs now; never rejects.
  let rest = begin();

  return {
    ended: over.promise,
    openReplies: laters,
    pump,
    finish,
    drain() {
      if (stop === 'no') stop = 'drain';
      check();
    },
    async close() {
      const closed = await withTimeout(drainMs, Promise.all([scope.close(), rest]), node.clock);
      sender.live = false;
      return closed !== null;
    },
  };
}
