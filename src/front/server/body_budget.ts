// Request bodies while they are received, and the memory that all of them together may use:
// docs/reference.md "Bodies".
import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';
import { HTTP } from '../../settings/limits.ts';

export interface BodyLimits {
  bytes: number;
  /** Milliseconds after the head within which the body must be complete. */
  ms: number;
}

const NO_BYTES = Buffer.alloc(0);

/** A request body, which grows as data arrives: a length in the head reserves no memory. */
export class IncomingBody {
  /** Everything has arrived, or the body has been given up. */
  isSettled = false;
  private readonly budget: BodyBudget;
  private readonly limits: BodyLimits;
  private readonly timer: NodeJS.Timeout;
  private readonly resolve: (bytes: Uint8Array) => void;
  private readonly reject: (failure: Failure) => void;
  private kept: Buffer = NO_BYTES;
  private size = 0;

  constructor(
    budget: BodyBudget,
    limits: BodyLimits,
    resolve: (bytes: Uint8Array) => void,
    reject: (failure: Failure) => void,
  ) {
    this.budget = budget;
    this.limits = limits;
    this.resolve = resolve;
    this.reject = reject;
    this.timer = setTimeout(() => this.giveUp(this.lateness()), limits.ms);
  }

  /** The memory it takes. */
  get heldBytes(): number {
    return this.kept.length;
  }

  /** Copies `chunk`. Excess data is read and dropped up to a limit, so that its sender sees the 413. */
  add(chunk: Uint8Array): void {
    if (this.isSettled) return;
    const { bytes } = this.limits;
    const end = this.size + chunk.length;
    if (end <= bytes) this.append(chunk, end);
    else this.resize(NO_BYTES);
    this.size = end;
    if (end > bytes + HTTP.maxDrainBytes) this.end();
  }

  /** Everything has arrived. */
  end(): void {
    const { bytes } = this.limits;
    if (this.size > bytes) this.giveUp(fail('payload_too_large', `the body is larger than ${bytes} bytes`));
    else this.settle(() => this.resolve(this.kept.subarray(0, this.size)));
  }

  /** The client has gone. */
  cut(): void {
    this.giveUp(this.lateness());
  }

  giveUp(failure: Failure): void {
    this.settle(() => {
      this.kept = NO_BYTES;
      this.reject(failure);
    });
  }

  private append(chunk: Uint8Array, end: number): void {
    // Most bodies come in one piece, which gets a buffer of exactly its size.
    const doubled = Math.min(this.limits.bytes, 2 * this.size);
    if (end > this.kept.length) this.resize(Buffer.allocUnsafeSlow(Math.max(end, doubled)));
    if (!this.isSettled) this.kept.set(chunk, this.size);
  }

  private resize(bytes: Buffer): void {
    const before = this.kept;
    before.copy(bytes, 0, 0, this.size);
    this.kept = bytes;
    this.budget.resized(bytes.length - before.length);
  }

  private settle(tell: () => void): void {
    if (this.isSettled) return;
    this.isSettled = true;
    clearTimeout(this.timer);
    this.budget.release(this);
    tell();
  }

  private lateness(): Failure {
    return fail('request_timeout', `the body was not complete after ${this.limits.ms} ms`);
  }
}

/**
 * The memory of all bodies being received. When it is used up, the body that has been arriving the longest is
 * given up with daemon_busy. So slow senders who try to exhaust memory lose to normal ones.
 */
export class BodyBudget {
  private readonly maxBytes: number;
  /** Oldest first. */
  private readonly bodies = new Set<IncomingBody>();
  private usedBytes = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** The memory that all bodies take. */
  get heldBytes(): number {
    return this.usedBytes;
  }

  receive(
    limits: BodyLimits,
    resolve: (bytes: Uint8Array) => void,
    reject: (failure: Failure) => void,
  ): IncomingBody {
    const body = new IncomingBody(this, limits, resolve, reject);
    this.bodies.add(body);
    return body;
  }

  /** A body takes `difference` more bytes. */
  resized(difference: number): void {
    this.usedBytes += difference;
    for (const oldest of this.bodies) {
      if (this.usedBytes <= this.maxBytes) return;
      oldest.giveUp(fail('daemon_busy', 'too many request bodies are in transit'));
    }
  }

  release(body: IncomingBody): void {
    this.bodies.delete(body);
    this.usedBytes -= body.heldBytes;
  }
}
