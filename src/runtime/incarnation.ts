// The life of an actor between two crashes: it handles the messages of its mailbox one by one.
import {
  type ActorLimits,
  type Address,
  type Clock,
  type Context,
  type DeferredReply,
  type Directory,
  isFailure,
  type Ref,
} from './actor.ts';
import { type Deferred, deferred, withTimeout } from './deferred.ts';
import { KeyedMutex } from './keyed_mutex.ts';
import { type Envelope, goneFailure } from './peer_link.ts';
import { type ClosableScope, openScope } from './scope.ts';

type HandlerTable = Readonly<Record<string, (message: never) => unknown>>;

/** An actor type with its configuration. */
export interface ConfiguredActor {
  readonly limits: ActorLimits;
  init(context: Context): HandlerTable | Promise<HandlerTable>;
}

/** The holder of a ref. Once it is no longer live, its asks fail with `gone` and its tells are dropped. */
export interface Sender {
  readonly address: string | undefined;
  readonly live: boolean;
}

/** The part of the node that an incarnation needs. */
export interface IncarnationNode {
  readonly clock: Clock;
  readonly onHandle: ((address: string, kind: string) => void) | undefined;
  ref<A extends Address>(address: A, sender: Sender): Ref<Directory[A]>;
  watch(address: string, onEnded: (address: string) => void): () => void;
  report(address: string, error: unknown, ended: boolean): void;
}

/** The part of the mailbox that its incarnations need. */
export interface IncarnationMailbox {
  readonly address: string;
  readonly type: ConfiguredActor;
  readonly node: IncarnationNode;
  readonly queue: Envelope[];
  /** Resolved by the first incarnation whose `init` succeeds. */
  readonly started: Deferred<void>;
}

export interface Crash {
  error: unknown;
}

/** The reply promised by a handler through `replyLater` or `turn`. */
class PendingReply {
  readonly promise: Promise<unknown>;
  constructor(promise: Promise<unknown>) {
    this.promise = promise;
  }
}

/**
 * From one `init` to the following crash or end, with all resources opened in between.
 *
 * `draining`: handles the queue, then ends. `ending`: ends after the current message. `lingering`: waits for
 * open deferred replies. `over`: nothing runs any more, and every open request has been answered.
 */
export class Incarnation implements Sender {
  readonly address: string;
  /** True until its scope has closed. */
  live = true;
  /** Messages with an open deferred reply. */
  readonly openReplies = new Set<Envelope>();
  private readonly mailbox: IncarnationMailbox;
  private readonly scope: ClosableScope;
  private readonly turns = new KeyedMutex();
  private readonly over = deferred<Crash | null>();
  private state: 'running' | 'draining' | 'ending' | 'lingering' | 'over' = 'running';
  /** Set at the end of `init`. */
  private handlers: HandlerTable | undefined;
  private current: Envelope | undefined;
  /** The code that is running; never rejects. */
  private running: Promise<unknown>;

  constructor(mailbox: IncarnationMailbox) {
    this.mailbox = mailbox;
    this.address = mailbox.address;
    this.scope = openScope((error) => mailbox.node.report(mailbox.address, error, false));
    this.running = this.begin();
  }

  /** Resolves when no more messages are taken: with the crash, or with null after an orderly end. */
  get ended(): Promise<Crash | null> {
    return this.over.promise;
  }

  /** Handles queued messages, as far as the state allows. */
  readonly pump = (): void => {
    const { queue, node } = this.mailbox;
    while (this.handlers && !this.current && (this.state === 'running' || this.state === 'draining')) {
      const envelope = queue.shift();
      if (!envelope) break;
      // The sender's node has already failed an expired ask with `deadline`.
      if (envelope.expires > node.clock.monotonic()) this.run(envelope, this.handlers);
    }
    this.endIfDone();
  };

  /** Continues until the queue and the open replies are empty, then ends. */
  drain(): void {
    if (this.state === 'running') this.state = 'draining';
    this.endIfDone();
  }

  /** Ends now, and answers open requests, because no one else will. */
  finish(crash: Crash | null): void {
    if (this.state === 'over') return;
    this.state = 'over';
    const open = this.current ? [this.current, ...this.openReplies] : this.openReplies;
    for (const { link, id } of open) link.refuse(id, crash ? 'crashed' : 'gone', this.address);
    this.openReplies.clear();
    this.over.resolve(crash);
  }

  /** Closes the scope and waits for running code. Resolves false when that takes longer than `drainMs`. */
  async close(): Promise<boolean> {
    const { type, node } = this.mailbox;
    const rest = Promise.all([this.scope.close(), this.running]);
    const closed = await withTimeout(type.limits.drainMs, rest, node.clock);
    this.live = false;
    return closed !== null;
  }

  private async begin(): Promise<void> {
    try {
      const handlers = await this.mailbox.type.init(this.context());
      if (this.state === 'over') return;
      this.handlers = handlers;
      this.mailbox.started.resolve();
      this.pump();
    } catch (error) {
      this.crash(error);
    }
  }

  private run(envelope: Envelope, handlers: HandlerTable): void {
    const { link, id, kind, message } = envelope;
    if (!Object.hasOwn(handlers, kind)) {
      link.refuse(id, 'gone', `${this.address}.${kind}`);
      this.mailbox.node.report(this.address, new TypeError(`no handler for ${kind}`), false);
      return;
    }
    this.current = envelope;
    this.mailbox.node.onHandle?.(this.address, kind);
    try {
      // A message off the wire has no type. Both sides were compiled against the same protocol, which gives
      // it one.
      const result = handlers[kind]?.(message as never);
      if (result instanceof Promise) this.running = result.then(this.returned, this.threw).then(this.pump);
      else this.returned(result);
    } catch (error) {
      this.threw(error);
    }
  }

  private readonly returned = (result: unknown): void => {
    const envelope = this.current;
    this.current = undefined;
    if (!envelope || this.state === 'over') return;
    if (result instanceof PendingReply) this.postpone(envelope, result.promise);
    else this.reply(envelope, result);
  };

  private readonly threw = (error: unknown): void => {
    const envelope = this.current;
    this.current = undefined;
    if (envelope && this.state !== 'over') this.fail(envelope, error);
  };

  private reply(envelope: Envelope, value: unknown): void {
    try {
      envelope.link.reply(envelope.id, value);
    } catch (unsendable) {
      this.fail(envelope, unsendable);
    }
  }

  private fail(envelope: Envelope, error: unknown): void {
    const { link, id } = envelope;
    let defect = error;
    if (isFailure(error)) {
      try {
        link.fail(id, error.code, error.message, error.detail);
        return;
      } catch (unsendable) {
        defect = unsendable;
      }
    }
    link.refuse(id, 'crashed', this.address);
    this.crash(defect);
  }

  private postpone(envelope: Envelope, promise: Promise<unknown>): void {
    this.openReplies.add(envelope);
    const settled = (settle: () => void): void => {
      // No longer open: the incarnation ended first and has answered.
      if (!this.openReplies.delete(envelope)) return;
      settle();
      this.endIfDone();
    };
    promise.then(
      (value) => settled(() => this.reply(envelope, value)),
      (error: unknown) => settled(() => this.fail(envelope, error)),
    );
  }

  private endIfDone(): void {
    const { state, mailbox } = this;
    if (!this.handlers || this.current || state === 'running' || state === 'over') return;
    if (state === 'draining' && mailbox.queue.length > 0) return;
    if (this.openReplies.size === 0) this.finish(null);
    else if (state === 'ending') {
      this.state = 'lingering';
      this.after(mailbox.type.limits.drainMs, () => this.finish(null));
    }
  }

  private end(): void {
    if (this.state === 'running' || this.state === 'draining') this.state = 'ending';
    this.endIfDone();
  }

  private crash(error: unknown): void {
    this.finish({ error });
  }

  /** Runs a callback of this incarnation, unless it is over. An error in it is a crash. */
  private guard(callback: () => unknown): void {
    if (this.state === 'over') return;
    try {
      const result = callback();
      if (result instanceof Promise) result.catch((error: unknown) => this.crash(error));
    } catch (error) {
      this.crash(error);
    }
  }

  private after(ms: number, callback: () => unknown): () => void {
    const fire = () => {
      cancel();
      this.guard(callback);
    };
    const cancel = this.scope.defer(this.mailbox.node.clock.after(ms, fire));
    return cancel;
  }

  /** Runs `work` in its turn, unless this incarnation is over by then. */
  private inTurn<R>(key: string, work: () => Promise<R>): Promise<R> {
    return this.turns.runExclusive(key, () => {
      if (this.state === 'over') throw goneFailure(this.address);
      return work();
    });
  }

  private context(): Context {
    const { address, scope, mailbox } = this;
    const { node } = mailbox;
    // The brand of DeferredReply exists only for the compiler.
    const deferReply = <R>(promise: Promise<R>) => new PendingReply(promise) as unknown as DeferredReply<R>;
    return {
      address,
      clock: {
        now: () => node.clock.now(),
        monotonic: () => node.clock.monotonic(),
        running: () => node.clock.running(),
        after: (ms, callback) => this.after(ms, callback),
        every: (ms, callback) => scope.defer(node.clock.every(ms, () => this.guard(callback))),
      },
      scope,
      ref: (to) => node.ref(to, this),
      replyLater: deferReply,
      turn: (key, work) => deferReply(this.inTurn(key, work)),
      watch: (other, onEnded) =>
        void scope.defer(node.watch(other, (ended) => this.guard(() => onEnded(ended)))),
      end: () => this.end(),
      crash: (error) => this.crash(error),
    };
  }
}
