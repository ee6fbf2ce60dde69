// The ways to the pods of a cluster, and which of them it offers. A proxy in between may bar SPDY, an account may lack the
// right to create forwards, an old API server knows no tunnel: what does not work is remembered for a while, so that only
// the first connection finds out.
import { Duplex } from 'node:stream';
import { TETHER } from '../../limits.ts';
import type { Door } from '../dial.ts';
import { upgradeToTunnel } from './tunnel.ts';
import { type Upgrade, upgradeToSpdy } from './upgrade.ts';
import { WarmDoor } from './warm.ts';
import type { Setback } from './way.ts';

/** What lines are made with, the best first. Beyond the last one every stream gets a WebSocket of its own. */
export const UPGRADES: readonly Upgrade[] = [upgradeToSpdy, upgradeToTunnel];

/** One way to make lines, as far as one cluster is known. */
export class Way {
  readonly upgrade: Upgrade;
  /** Monotonic milliseconds until which it is not tried. */
  private notUntil = 0;
  /** When the last upgrade was cut off without an answer; null when the server has been heard of, or was away, since. */
  private cutAt: number | null = null;

  constructor(upgrade: Upgrade) {
    this.upgrade = upgrade;
  }

  get isOffered(): boolean {
    return performance.now() >= this.notUntil;
  }

  /** Learns from what became of an upgrade that was begun at `begunAt`. */
  learn(answer: Duplex | Setback, begunAt: number): void {
    const now = performance.now();
    const code = answer instanceof Duplex ? null : answer.code;
    const isCut = code === 'lost';
    // A server that goes away cuts off those under way. When the next one ends so, too, something in between bars the way.
    const isBarred = isCut && this.cutAt !== null && begunAt >= this.cutAt;
    // The rights differ: SPDY takes that to create forwards, a WebSocket that to get them.
    if (isBarred || code === 'unsupported' || code === 'denied') this.notUntil = now + TETHER.wayAgainMs;
    this.cutAt = isCut ? (this.cutAt ?? now) : null;
  }
}

/** A cluster as the lines to its pods share it. */
export class ForwardCluster {
  readonly door: Door;
  /** For a WebSocket per stream. */
  readonly warm: WarmDoor;
  private readonly ways: readonly Way[];

  constructor(door: Door, upgrades = UPGRADES) {
    this.door = door;
    this.warm = new WarmDoor(door);
    this.ways = upgrades.map((upgrade) => new Way(upgrade));
  }

  /** How the next line is made; undefined where there are none to be had. */
  get way(): Way | undefined {
    return this.ways.find(({ isOffered }) => isOffered);
  }

  close(): void {
    this.warm.close();
  }
}
