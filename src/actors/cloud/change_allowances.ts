// Limits how many workload changes are recorded per cluster: docs/reference.md "Cloud events".
import type { NewCloudEvent } from '../../protocol/cloud_events.ts';
import type { Clock } from '../../runtime/actor.ts';
import { CLOUD_EVENTS } from '../../settings/cloud_limits.ts';

interface Allowance {
  left: number;
  /** When `left` was last updated; monotonic milliseconds. */
  at: number;
  /** Changes not recorded since the last recorded one. */
  dropped: number;
}

/** Keeps a cluster with endless changes from crowding everything else out of the history. */
export class ChangeAllowances {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private readonly byCluster = new Map<string, Allowance>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock;
  }

  /**
   * The events to record for one change: all of `events` or none. The first recorded change after omitted
   * ones is preceded by an event that counts those.
   */
  admit(clusterId: string, events: NewCloudEvent[]): NewCloudEvent[] {
    if (events.length === 0) return events;
    const allowance = this.allowanceOf(clusterId);
    if (allowance.left < 1) {
      allowance.dropped += events.length;
      return [];
    }
    allowance.left -= 1;
    if (allowance.dropped === 0) return events;
    const reason = `${allowance.dropped} changes came too fast to be recorded`;
    allowance.dropped = 0;
    return [{ clusterId, type: 'events.lost', result: 'daemon_busy', reason }, ...events];
  }

  private allowanceOf(clusterId: string): Allowance {
    const { burst, refillMs } = CLOUD_EVENTS.changes;
    const at = this.clock.monotonic();
    const known = this.byCluster.get(clusterId) ?? { left: burst, at, dropped: 0 };
    this.byCluster.set(clusterId, known);
    known.left = Math.min(burst, known.left + (at - known.at) / refillMs);
    known.at = at;
    return known;
  }
}
