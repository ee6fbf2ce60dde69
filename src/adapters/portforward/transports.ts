// The transports to the pods of a cluster, and which of them it offers. A proxy may bar SPDY, an account may
// not be allowed to create forwards, and an old API server does not support tunnels. What does not work is
// remembered for a while, so that only the first connection has to find out.
import { Duplex } from 'node:stream';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';
import { SpareConnection } from './spare_connection.ts';
import { dialSpdy, type SpdyDialer } from './spdy_dialer.ts';
import { dialSpdyTunnel } from './spdy_tunnel.ts';
import type { ForwardError } from './transport.ts';

/**
 * The dialers of connections that carry many streams, the best first. If none works, every stream gets a
 * WebSocket.
 */
export const SPDY_DIALERS: readonly SpdyDialer[] = [dialSpdy, dialSpdyTunnel];

/** What is known about one transport to one cluster. Times are in monotonic milliseconds. */
export class ForwardTransport {
  readonly dial: SpdyDialer;
  private readonly clock: Clock;
  /** It is not tried before this time. */
  private skipUntil = 0;
  /**
   * When the last upgrade was cut off without an answer; null if the server has answered or been down since.
   */
  private droppedAt: number | null = null;

  constructor(dial: SpdyDialer, clock: Clock) {
    this.dial = dial;
    this.clock = clock;
  }

  get isOffered(): boolean {
    return this.clock.monotonic() >= this.skipUntil;
  }

  /** Records the result of an upgrade begun at `startedAt`. */
  recordResult(result: Duplex | ForwardError, startedAt: number): void {
    const now = this.clock.monotonic();
    const code = result instanceof Duplex ? null : result.code;
    const isCut = code === 'lost';
    // A server that shuts down cuts off the upgrades under way. If the next one is cut off too, a proxy bars
    // the transport.
    const isBarred = isCut && this.droppedAt !== null && startedAt >= this.droppedAt;
    // The transports need different rights: SPDY the right to create forwards, a WebSocket the right to get
    // them.
    if (isBarred || code === 'unsupported' || code === 'denied')
      this.skipUntil = now + TETHER.transportRetryMs;
    this.droppedAt = isCut ? (this.droppedAt ?? now) : null;
  }
}

/** Shared by the connections to all pods of a cluster. */
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
