// How long a peer, such as a node, has been silent. Only time in which this process ran counts: while it was
// stopped, or its machine paused, it could not hear the peer.
import type { Clock } from '../runtime/actor.ts';
import { afterReading } from '../runtime/clock.ts';

/** The silence of the peer of one connection. Times are in running milliseconds. */
export class Silence {
  private readonly clock: Clock;
  /** When something came last; at first the time of the connection. */
  heardAt: number;
  private askedAt = 0;

  constructor(clock: Clock) {
    this.clock = clock;
    this.heardAt = clock.running();
  }

  get ms(): number {
    return this.clock.running() - this.heardAt;
  }

  /** Since the peer was last heard or asked. */
  get unansweredMs(): number {
    return this.clock.running() - Math.max(this.heardAt, this.askedAt);
  }

  onHeard(): void {
    this.heardAt = this.clock.running();
  }

  onAsked(): void {
    this.askedAt = this.clock.running();
  }

  /**
   * Calls `onDead` if `isDead` holds now, and still after what waits in the socket has been read. Returns
   * whether it holds now.
   */
  judge(isDead: () => boolean, onDead: () => void): boolean {
    if (!isDead()) return false;
    afterReading(() => {
      if (isDead()) onDead();
    });
    return true;
  }
}
