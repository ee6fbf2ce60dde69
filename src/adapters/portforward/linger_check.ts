// How long a connection is kept for a pod that is slow to take what a client has sent that has gone.
import { TETHER } from '../../settings/cloud_limits.ts';

/** Whether a slow pod still takes what a client has sent that has gone. */
export class LingerCheck {
  /** Whether the pod has been given more time. */
  isLingering = false;
  private unsentBytes = 0;
  private lastProgressAt = 0;

  /** The client has gone at `now`, with so much unsent. */
  begin(now: number, unsentBytes: number): void {
    this.lastProgressAt = now;
    this.unsentBytes = unsentBytes;
  }

  /** Whether the pod gets more time. `mayBegin` is asked only if it has had none before. */
  check(now: number, unsentBytes: number, lastReceivedAt: number, mayBegin: () => boolean): boolean {
    if (unsentBytes < this.unsentBytes) this.lastProgressAt = now;
    this.unsentBytes = unsentBytes;
    const quietMs = now - Math.max(this.lastProgressAt, lastReceivedAt);
    this.isLingering = quietMs < TETHER.stuckTimeoutMs && (this.isLingering || mayBegin());
    return this.isLingering;
  }
}
