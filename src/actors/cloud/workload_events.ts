// The events of workloads: docs/reference.md "Cloud events".

import type { StoredWorkload, WorkloadsProtocol } from '../../protocol/cloud.ts';
import type { CloudEventsProtocol, NewCloudEvent } from '../../protocol/cloud_events.ts';
import type { WorkloadSubject } from '../../protocol/policies.ts';
import type { Failure, MessageOf, Ref } from '../../runtime/actor.ts';
import { isLeftAlone, leftReason } from './managers.ts';
import { wakeReasonOf } from './workload_reasons.ts';
import { currentReceiptOf, isUndone } from './workload_receipts.ts';

/** The workload that an event is about. */
export const subjectOf = ({ id, clusterId, seen }: StoredWorkload): WorkloadSubject => ({
  clusterId,
  namespace: seen.namespace,
  kind: seen.kind,
  workload: seen.name,
  workloadId: id,
});

/** The events of a change of a record; `self`: the name of this Berth. */
export function changeEvents(before: StoredWorkload, after: StoredWorkload, self: string): NewCloudEvent[] {
  const subject = subjectOf(after);
  const events: NewCloudEvent[] = [];
  if (isUndone(before, after)) {
    const result = 'workload_conflict';
    events.push({ ...subject, type: 'workload.conflict', result, reason: after.sleepReason });
  }
  if (isLeftAlone(after) && !isLeftAlone(before))
    events.push({ ...subject, type: 'workload.left', reason: leftReason(after) });
  if (before.state === after.state) return events;
  const isDown = after.seen.replicas === 0;
  const operationId = (isDown ? currentReceiptOf(after) : after.seen.wakeReceipt)?.operation ?? null;
  const reason = isDown ? after.sleepReason : wakeReasonOf(after, self);
  return [...events, { ...subject, type: `workload.${after.state}`, operationId, reason }];
}

/**
 * Reports events of workloads other than changes of their records. Of repeated failures only the first is
 * reported.
 */
export class WorkloadEvents {
  private readonly events: Pick<Ref<CloudEventsProtocol>, 'tell'>;
  /** The last failure reported, by workload. */
  private readonly toldFailures = new Map<string, string>();

  constructor(events: Pick<Ref<CloudEventsProtocol>, 'tell'>) {
    this.events = events;
  }

  /** `minutes`: its timeout; `who`: the policy that decided; undefined: its own setting. */
  onAutoSlept(row: StoredWorkload, minutes: number, who: string | undefined): void {
    this.toldFailures.delete(row.id);
    const reason = `not used for ${minutes} min`;
    this.tell([{ ...subjectOf(row), type: 'workload.auto_slept', reason, ...(who && { who }) }]);
  }

  /** `what`: what Berth itself had begun, perhaps for the request `operationId`. */
  onFailed(row: StoredWorkload, what: string, { code, message }: Failure, operationId?: string): void {
    const reason = `${what}: ${message}`;
    if (this.toldFailures.get(row.id) === reason) return;
    this.toldFailures.set(row.id, reason);
    this.tell([
      { ...subjectOf(row), type: 'workload.failed', operationId: operationId ?? null, result: code, reason },
    ]);
  }

  onWoken(id: string): void {
    this.toldFailures.delete(id);
  }

  onTether(row: StoredWorkload | undefined, message: MessageOf<WorkloadsProtocol, 'tetherChanged'>): void {
    const { id: workloadId, clusterId, tetherId, isOpen, reason, opener } = message;
    const subject = row ? subjectOf(row) : { clusterId, workloadId };
    this.tell([
      { ...subject, ...opener, tetherId, type: isOpen ? 'tether.opened' : 'tether.closed', reason },
    ]);
  }

  private tell(events: NewCloudEvent[]): void {
    this.events.tell('append', { events });
  }
}
