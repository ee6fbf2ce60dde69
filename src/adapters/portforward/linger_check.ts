// How long to keep a connection for a pod that is slow to take the data of a client that has disconnected.
import { TETHER } from '../../settings/cloud_limits.ts';

/** Decides whether a slow pod is still taking the data of a client that has disconnected. */
export class LingerCheck {
  /** Whether the pod has been given more time. */
  isLingering = false;
  private unsentBytes = 0;
  private lastProgressAt = 0;

  /** The client disconnected at `now`, with `unsentBytes` still unsent. */
  begin(now: number, unsentBytes: number): void {
    this.lastProgressAt = now;
    this.unsentBytes = unsentBytes;
  }

  /** Whether the pod gets more time. `mayBegin` is only called if it has had none before. */
  check(now: number, unsentBytes: number, lastReceivedAt: number, mayBegin: () => boolean): boolean {
    if (unsentBytes < this.unsentBytes) this.lastProgressAt = now;
    this.unsentBytes = unsentBytes;
    const quietMs = now - Math.max(this.lastProgressAt, lastReceivedAt);
    this.isLingering = quietMs < TETHER.stuckTimeoutMs && (this.isLingering || mayBegin());
    return this.isLingering;
  }
}
