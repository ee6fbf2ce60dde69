// How many changes of its workloads a cluster may have recorded: docs/reference.md "Cloud events".
import type { NewCloudEvent } from '../../protocol/cloud_events.ts';
import type { Clock } from '../../runtime/actor.ts';
import { CLOUD_EVENTS } from '../../settings/cloud_limits.ts';

interface Allowance {
  left: number;
  /** When `left` was counted; monotonic milliseconds. */
  at: number;
  /** Changes since the last event that were not recorded. */
  dropped: number;
}

/** Keeps a cluster that changes without end from pushing everything else out of the history. */
export class ChangeAllowances {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private readonly byCluster = new Map<string, Allowance>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock;
  }

  /**
   * What is to be recorded of the `events` of one change: all or none of them. The first after some that were
   * not recorded comes with an event that counts those.
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
