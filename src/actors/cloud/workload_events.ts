// What happens to workloads, as events: docs/reference.md "Cloud events".

import type { StoredWorkload, WorkloadsProtocol } from '../../protocol/cloud.ts';
import type { CloudEventsProtocol, CloudSubject, NewCloudEvent } from '../../protocol/cloud_events.ts';
import type { Clock, Failure, MessageOf, Ref } from '../../runtime/actor.ts';
import { CLOUD, CLOUD_EVENTS } from '../../settings/cloud_limits.ts';
import { isUndone, wakeReasonOf } from './workload_record.ts';

type WorkloadSubject = Omit<CloudSubject, 'cluster' | 'tetherId'>;

/** The workload that an event is about. */
export const subjectOf = ({ id, clusterId, seen }: StoredWorkload): WorkloadSubject => ({
  clusterId,
  namespace: seen.namespace,
  kind: seen.kind,
  workload: seen.name,
  workloadId: id,
});

/** The events of a change of a record; `self`: the name of this Berth. */
function changeEvents(before: StoredWorkload, after: StoredWorkload, self: string): NewCloudEvent[] {
  const subject = subjectOf(after);
  const events: NewCloudEvent[] = [];
  if (isUndone(before, after)) {
    const result = 'workload_conflict';
    events.push({ ...subject, type: 'workload.conflict', result, reason: after.sleepReason });
    if (after.undone >= CLOUD.undone.max && before.undone < CLOUD.undone.max)
      events.push({
        ...subject,
        type: 'workload.left',
        reason: `auto-sleep leaves it alone: it was woken ${after.undone} times in a row by something else`,
      });
  }
  if (before.state === after.state) return events;
  const isDown = after.seen.replicas === 0;
  const operationId = (isDown ? after.seen.receipt : after.seen.wakeReceipt)?.operation ?? null;
  const reason = isDown ? after.sleepReason : wakeReasonOf(after, self);
  return [...events, { ...subject, type: `workload.${after.state}`, operationId, reason }];
}

/** The changes that one cluster may still tell of. */
interface Allowance {
  left: number;
  /** When `left` was counted; monotonic milliseconds. */
  at: number;
  /** Changes since the last event that were not told. */
  dropped: number;
}

/**
 * Tells what happens to workloads: of repeated failures only the first, and of a cluster that changes without
 * end only CLOUD_EVENTS.changes, so that it does not push everything else out of the history.
 */
export class WorkloadEvents {
  private readonly events: Pick<Ref<CloudEventsProtocol>, 'tell'>;
  private readonly clock: Pick<Clock, 'monotonic'>;
  private readonly allowances = new Map<string, Allowance>();
  /** The last failure that was told, by workload. */
  private readonly toldFailures = new Map<string, string>();

  constructor(events: Pick<Ref<CloudEventsProtocol>, 'tell'>, clock: Pick<Clock, 'monotonic'>) {
    this.events = events;
    this.clock = clock;
  }

  onChange(before: StoredWorkload, after: StoredWorkload, self: string): void {
    const events = changeEvents(before, after, self);
    if (events.length === 0) return;
    const { clusterId } = after;
    const allowance = this.allowanceOf(clusterId);
    if (allowance.left < 1) {
      allowance.dropped += events.length;
      return;
    }
    allowance.left -= 1;
    if (allowance.dropped > 0) {
      const reason = `${allowance.dropped} changes came too fast to be recorded`;
      this.tell([{ clusterId, type: 'events.lost', result: 'daemon_busy', reason }]);
      allowance.dropped = 0;
    }
    this.tell(events);
  }

  onAutoSlept(row: StoredWorkload): void {
    this.toldFailures.delete(row.id);
    const reason = `not used for ${row.idleMinutes} min`;
    this.tell([{ ...subjectOf(row), type: 'workload.auto_slept', reason }]);
  }

  /** `what`: what Berth itself had begun. */
  onFailed(row: StoredWorkload, what: string, { code, message }: Failure): void {
    const reason = `${what}: ${message}`;
    if (this.toldFailures.get(row.id) === reason) return;
    this.toldFailures.set(row.id, reason);
    this.tell([{ ...subjectOf(row), type: 'workload.failed', result: code, reason }]);
  }

  onWoken(id: string): void {
    this.toldFailures.delete(id);
  }

  onTether(row: StoredWorkload | undefined, message: MessageOf<WorkloadsProtocol, 'tetherChanged'>): void {
    const { id: workloadId, clusterId, tetherId, isOpen, reason } = message;
    const subject = row ? subjectOf(row) : { clusterId, workloadId };
    this.tell([{ ...subject, tetherId, type: isOpen ? 'tether.opened' : 'tether.closed', reason }]);
  }

  private allowanceOf(clusterId: string): Allowance {
    const { burst, refillMs } = CLOUD_EVENTS.changes;
    const at = this.clock.monotonic();
    const known = this.allowances.get(clusterId) ?? { left: burst, at, dropped: 0 };
    this.allowances.set(clusterId, known);
    known.left = Math.min(burst, known.left + (at - known.at) / refillMs);
    known.at = at;
    return known;
  }

  private tell(events: NewCloudEvent[]): void {
    if (events.length > 0) this.events.tell('append', { events });
  }
}
