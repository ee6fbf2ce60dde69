// All open event and log streams, and their total unread data: docs/reference.md "Streams".
import { fail } from '../../protocol/errors.ts';
import type { Clock } from '../../runtime/actor.ts';
import { STREAMS } from '../../settings/limits.ts';
import type { ResponseStream } from '../server/http_server.ts';

type OpenStream = Pick<ResponseStream, 'isOpen' | 'bufferedBytes' | 'destroy'>;

/** The bounds, as in `STREAMS`. */
export type StreamLimits = Readonly<Record<keyof typeof STREAMS, number>>;

const IGNORE = (): void => {};

/** Limits their number and the memory of unread data. Each kind of stream also has limits of its own. */
export class OpenStreams {
  private readonly clock: Clock;
  private readonly limits: StreamLimits;
  /** With who holds each: see `assertRoom`. */
  private readonly streams = new Map<OpenStream, string | null>();
  private stopChecks = IGNORE;

  /** `limits` for tests. */
  constructor(clock: Clock, limits: StreamLimits = STREAMS) {
    this.clock = clock;
    this.limits = limits;
  }

  /** The number of streams opened and not yet seen to be closed. */
  get open(): number {
    return this.streams.size;
  }

  /**
   * Throws daemon_busy when no further stream may be opened. `holder` is the agent or person whose own token
   * asks for it; null: the daemon's or the cloud's token, which has no share of its own.
   */
  assertRoom(holder: string | null): void {
    const { maxOpen, maxOpenPerHolder } = this.limits;
    if (this.streams.size >= maxOpen) this.check();
    if (this.streams.size >= maxOpen)
      throw fail('daemon_busy', `${maxOpen} streams are open, which is the maximum`);
    if (holder === null) return;
    let held = 0;
    for (const [stream, other] of this.streams) if (other === holder && stream.isOpen) held += 1;
    if (held >= maxOpenPerHolder)
      throw fail('daemon_busy', `${holder} has ${maxOpenPerHolder} open streams, which is the maximum`);
  }

  /** `holder` as in `assertRoom`. */
  add(stream: OpenStream, holder: string | null): void {
    if (this.streams.size === 0)
      this.stopChecks = this.clock.every(this.limits.checkIntervalMs, () => this.check());
    this.streams.set(stream, holder);
  }

  /** Forgets all streams. */
  close(): void {
    this.streams.clear();
    this.stopChecks();
  }

  /** Cuts off the clients with the most unread data until the rest fits. */
  private check(): void {
    let unread = 0;
    for (const stream of this.streams.keys()) {
      if (stream.isOpen) unread += stream.bufferedBytes;
      else this.streams.delete(stream);
    }
    if (this.streams.size === 0) this.stopChecks();
    if (unread <= this.limits.maxUnreadBytes) return;
    for (const stream of [...this.streams.keys()].sort((a, b) => b.bufferedBytes - a.bufferedBytes)) {
      if (unread <= this.limits.maxUnreadBytes) return;
      unread -= stream.bufferedBytes;
      stream.destroy();
      this.streams.delete(stream);
    }
  }
}
