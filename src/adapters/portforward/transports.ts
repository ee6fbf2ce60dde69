// The transports to the pods of a cluster, and which of them it offers. A proxy may bar SPDY, an account may
// not be allowed to create forwards, an old API server knows no tunnel. What does not work is remembered for
// a while, so that only the first connection finds out.
import { Duplex } from 'node:stream';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';
import { SpareConnection } from './spare_connection.ts';
import { dialSpdy, type SpdyDialer } from './spdy_dialer.ts';
import { dialSpdyTunnel } from './spdy_tunnel.ts';
import type { ForwardError } from './transport.ts';

/**
 * What dials connections that carry many streams, the best first. Where none works, every stream gets a
 * WebSocket.
 */
export const SPDY_DIALERS: readonly SpdyDialer[] = [dialSpdy, dialSpdyTunnel];

/** One transport, as far as it is known of one cluster. Times are in monotonic milliseconds. */
export class ForwardTransport {
  readonly dial: SpdyDialer;
  private readonly clock: Clock;
  /** Until then it is not tried. */
  private skipUntil = 0;
  /**
   * When the last upgrade was cut off without an answer; null if the server has answered or been away since.
   */
  private droppedAt: number | null = null;

  constructor(dial: SpdyDialer, clock: Clock) {
    this.dial = dial;
    this.clock = clock;
  }

  get isOffered(): boolean {
    return this.clock.monotonic() >= this.skipUntil;
  }

  /** Learns from the result of an upgrade that was begun at `startedAt`. */
  recordResult(result: Duplex | ForwardError, startedAt: number): void {
    const now = this.clock.monotonic();
    const code = result instanceof Duplex ? null : result.code;
    const isCut = code === 'lost';
    // A server that goes away cuts off the upgrades under way. If the next one is cut off too, a proxy bars
    // the transport.
    const isBarred = isCut && this.droppedAt !== null && startedAt >= this.droppedAt;
    // The rights differ: SPDY needs the right to create forwards, a WebSocket that to get them.
    if (isBarred || code === 'unsupported' || code === 'denied')
      this.skipUntil = now + TETHER.transportRetryMs;
    this.droppedAt = isCut ? (this.droppedAt ?? now) : null;
  }
}

/** What the connections to all pods of a cluster share. */
export class ClusterTransports {
  readonly dialer: ClusterDialer;
  readonly clock: Clock;
  /** For streams with a WebSocket of their own. */
  readonly spareConnection: SpareConnection;
  private readonly transports: readonly ForwardTransport[];

  constructor(dialer: ClusterDialer, clock: Clock, spdyDialers = SPDY_DIALERS) {
    this.dialer = dialer;
    this.clock = clock;
    this.spareConnection = new SpareConnection(dialer, clock);
    this.transports = spdyDialers.map((dial) => new ForwardTransport(dial, clock));
  }

  /** The transport of the next connection; undefined if the cluster offers none. */
  get transport(): ForwardTransport | undefined {
    return this.transports.find(({ isOffered }) => isOffered);
  }

  close(): void {
    this.spareConnection.close();
  }
}
