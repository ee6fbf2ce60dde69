// The ways to the pods of a cluster, and which of them it offers. A proxy in between may bar SPDY, an account may lack the
// right to create forwards, an old API server knows no tunnel: what does not work is remembered for a while, so that only
// the first connection finds out.
import { Duplex } from 'node:stream';
import { TETHER } from '../../settings/limits.ts';
import type { ClusterDialer } from '../cluster_dialer.ts';
import { SpareConnection } from './spare_connection.ts';
import { dialSpdy, type SpdyDialer } from './spdy_dialer.ts';
import { dialSpdyTunnel } from './spdy_tunnel.ts';
import type { ForwardError } from './transport.ts';

/** What lines are made with, the best first. Beyond the last one every stream gets a WebSocket of its own. */
export const SPDY_DIALERS: readonly SpdyDialer[] = [dialSpdy, dialSpdyTunnel];

/** One way to make lines, as far as one cluster is known. */
export class ForwardTransport {
  readonly dial: SpdyDialer;
  /** Monotonic milliseconds until which it is not tried. */
  private skipUntil = 0;
  /** When the last upgrade was cut off without an answer; null when the server has been heard of, or was away, since. */
  private droppedAt: number | null = null;

  constructor(upgrade: SpdyDialer) {
    this.dial = upgrade;
  }

  get isOffered(): boolean {
    return performance.now() >= this.skipUntil;
  }

  /** Learns from what became of an upgrade that was begun at `begunAt`. */
  recordResult(answer: Duplex | ForwardError, startedAt: number): void {
    const now = performance.now();
    const code = answer instanceof Duplex ? null : answer.code;
    const isCut = code === 'lost';
    // A server that goes away cuts off those under way. When the next one ends so, too, something in between bars the way.
    const isBarred = isCut && this.droppedAt !== null && startedAt >= this.droppedAt;
    // The rights differ: SPDY takes that to create forwards, a WebSocket that to get them.
    if (isBarred || code === 'unsupported' || code === 'denied')
      this.skipUntil = now + TETHER.transportRetryMs;
    this.droppedAt = isCut ? (this.droppedAt ?? now) : null;
  }
}

/** A cluster as the lines to its pods share it. */
export class ForwardCluster {
  readonly dialer: ClusterDialer;
  /** For a WebSocket per stream. */
  readonly spareConnection: SpareConnection;
  private readonly transports: readonly ForwardTransport[];

  constructor(door: ClusterDialer, upgrades = SPDY_DIALERS) {
    this.dialer = door;
    this.spareConnection = new SpareConnection(door);
    this.transports = upgrades.map((upgrade) => new ForwardTransport(upgrade));
  }

  /** How the next line is made; undefined where there are none to be had. */
  get transport(): ForwardTransport | undefined {
    return this.transports.find(({ isOffered }) => isOffered);
  }

  close(): void {
    this.spareConnection.close();
  }
}
