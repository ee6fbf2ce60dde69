// A mailbox queues the messages of one address. The incarnations of its actor handle them one by one.
import { Failure } from './actor.ts';
import { deferred } from './deferred.ts';
import { type ConfiguredActor, Incarnation, type IncarnationNode } from './incarnation.ts';
import type { Envelope } from './peer_link.ts';
import { RestartWindow } from './restart_window.ts';

/** The pause before `init` runs again. It doubles with every crash in the window. */
const BACKOFF = { firstMs: 10, maxMs: 1_000 };

/** The part of the node that a mailbox needs. */
export interface MailboxNode extends IncarnationNode {
  /** Delivers a message to the current actor at its address. */
  onEnvelope(envelope: Envelope): void;
  /** The actor at `address` has ended. */
  onMailboxClosed(address: string): void;
}

/** Starts its actor at once. Never throws: crashes and scopes that close late are reported to the node. */
export class Mailbox {
  readonly address: string;
  readonly type: ConfiguredActor;
  readonly node: MailboxNode;
  readonly queue: Envelope[] = [];
  /** `full`: it has dropped and reported a tell since it was last empty. */
  private state: 'open' | 'full' | 'stopping' = 'open';
  private incarnation: Incarnation;
  readonly started = deferred<void>();
  private readonly crashes: RestartWindow;
  private skipPause = () => {};
  private readonly closed: Promise<void>;
  private stopped: Promise<boolean> | undefined;

  constructor(address: string, type: ConfiguredActor, node: MailboxNode) {
    this.address = address;
    this.type = type;
    this.node = node;
    this.crashes = new RestartWindow(type.limits.restarts);
    this.incarnation = new Incarnation(this);
    this.closed = this.live();
  }

  /** Resolves after the first successful `init`; rejects when the actor ends before that. */
  get ready(): Promise<void> {
    return this.started.promise;
  }

  /** Messages with a deferred reply that is still open. */
  get openReplies(): number {
    return this.incarnation.openReplies.size;
  }

  deliver(envelope: Envelope): void {
    const { address, queue, incarnation } = this;
    if (this.state === 'stopping') envelope.link.refuse(envelope.id, 'gone', address);
    else if (queue.length + this.openReplies >= this.type.limits.mailbox) this.overflow(envelope);
    else {
      if (queue.length === 0) this.state = 'open';
      queue.push(envelope);
      incarnation.pump();
    }
  }

  /** Handles the queue, closes and ends. Resolves true when that was done in time. */
  stop(): Promise<boolean> {
    this.stopped ??= this.drain();
    return this.stopped;
  }

  private overflow(envelope: Envelope): void {
    envelope.link.refuse(envelope.id, 'overloaded', this.address);
    // A dropped tell has no caller, so the first one that a full mailbox drops is reported.
    if (envelope.id !== 0 || this.state === 'full') return;
    this.state = 'full';
    this.node.report(this.address, new Failure('overloaded', `${envelope.kind} was dropped`), false);
  }

  private async live(): Promise<void> {
    for (;;) {
      const crash = await this.incarnation.ended;
      const restarts = crash !== null && this.crashes.add(this.node.clock.monotonic()) && !this.isStopping();
      if (crash) this.node.report(this.address, crash.error, !restarts);
      if (!(await this.incarnation.close()))
        this.node.report(this.address, new Error('its scope did not close in time'), false);
      if (restarts) await this.pause();
      if (!restarts || this.isStopping()) return this.leave(crash !== null || this.isStopping());
      this.incarnation = new Incarnation(this);
    }
  }

  private isStopping(): boolean {
    return this.state === 'stopping';
  }

  private async pause(): Promise<void> {
    const over = deferred<void>();
    const ms = BACKOFF.firstMs * 2 ** (this.crashes.count - 1);
    const cancel = this.node.clock.after(Math.min(ms, BACKOFF.maxMs), over.resolve);
    this.skipPause = over.resolve;
    if (!this.isStopping()) await over.promise;
    cancel();
  }

  /**
   * After a crash or a stop the queue fails with `gone`. After `context.end` it is delivered again: a family
   * starts a new actor.
   */
  private leave(refuses: boolean): void {
    this.started.reject(new Failure('crashed', `${this.address} did not start`));
    this.node.onMailboxClosed(this.address);
    for (const envelope of this.queue.splice(0)) {
      if (refuses) envelope.link.refuse(envelope.id, 'gone', this.address);
      else this.node.onEnvelope(envelope);
    }
  }

  private async drain(): Promise<boolean> {
    this.state = 'stopping';
    let isInTime = true;
    const cancel = this.node.clock.after(this.type.limits.drainMs, () => {
      isInTime = false;
      this.incarnation.finish(null);
    });
    this.skipPause();
    this.incarnation.drain();
    await this.closed;
    cancel();
    return isInTime;
  }
}
