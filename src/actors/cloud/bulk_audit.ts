// The workloads that bulk sleeps and wakes change, in the audit log: docs/reference.md "Bulk sleep and wake".
import type { BulkChange, BulkResult, StoredWorkload } from '../../protocol/cloud.ts';
import type { NewCloudEvent } from '../../protocol/cloud_events.ts';
import { resultCodeOf, type StoredOperation } from '../../protocol/cloud_operations.ts';
import type { SleepReceipt, WakeReceipt } from '../../protocol/receipts.ts';
import { shortReason } from './operation_events.ts';
import { isSleptBy, isWokenBy } from './receipt_checks.ts';
import { subjectOf } from './workload_events.ts';

/** By what the workloads are to become. */
const ACTIONS = { asleep: 'sleepWorkloads', awake: 'wakeWorkloads' } as const;
const ACTION_NAMES: readonly string[] = Object.values(ACTIONS);

type BulkEvent = Pick<NewCloudEvent, 'action' | 'operationId' | 'who' | 'from'>;

interface Bulk {
  event: BulkEvent;
  /** The ids of the workloads whose change has been reported. */
  told: Set<string>;
}

/** null: a dry run, which is no operation. */
const bulkEventOf = ({ operation, asker, to }: BulkChange): BulkEvent | null =>
  operation !== undefined && asker ? { action: ACTIONS[to], operationId: operation, ...asker } : null;

type Receipt = SleepReceipt | WakeReceipt | null;

const isSame = (one: Receipt, other: Receipt): boolean =>
  one?.operation === other?.operation && one?.at === other?.at;

export class BulkAudit {
  /** Those under way, and those that the end of a daemon interrupted, by operation. */
  private readonly bulks = new Map<string, Bulk>();

  /** Changes by interrupted ones may be in the cluster and not yet in a record. */
  load(operations: readonly StoredOperation[]): void {
    for (const row of operations) {
      const { id, action, who, from } = row;
      const code = resultCodeOf(row);
      const isCutOff = code === null || code === 'interrupted';
      if (isCutOff && ACTION_NAMES.includes(action))
        this.bulks.set(id, { event: { action, operationId: id, who, from }, told: new Set() });
    }
  }

  /** Runs `work`, which makes the change. */
  async during<R>(change: BulkChange, work: () => Promise<R>): Promise<R> {
    const event = bulkEventOf(change);
    const operation = change.operation ?? '';
    if (event) this.bulks.set(operation, { event, told: new Set() });
    try {
      return await work();
    } finally {
      // Each change is recorded, or on a full disk waits to be, before `work` has its result.
      this.bulks.delete(operation);
    }
  }

  /**
   * Reports that `after` has a new receipt of a bulk change, once: the cluster's answer may come after its
   * watch.
   */
  changeEvents({ seen: before }: StoredWorkload, after: StoredWorkload): NewCloudEvent[] {
    const { receipt, wakeReceipt } = after.seen;
    const slept = this.bulks.get(receipt?.operation ?? '');
    const woken = this.bulks.get(wakeReceipt?.operation ?? '');
    const isSlept = !isSame(before.receipt, receipt) && isSleptBy(after.seen, receipt?.operation);
    const isWoken = !isSame(before.wakeReceipt, wakeReceipt) && isWokenBy(after.seen, wakeReceipt?.operation);
    return [isSlept && slept, isWoken && woken].flatMap((bulk) => {
      if (!bulk || bulk.told.has(after.id)) return [];
      bulk.told.add(after.id);
      return [{ ...subjectOf(after), ...bulk.event, type: 'operation.done' as const }];
    });
  }

  /** Reports that the change of a workload has failed. */
  failureEvents(change: BulkChange, { clusterId, id, ...result }: BulkResult): NewCloudEvent[] {
    const event = bulkEventOf(change);
    if (!event || result.code === null) return [];
    const { namespace, kind, name: workload, code, message } = result;
    const subject = { clusterId, namespace, kind, workload, workloadId: id };
    return [{ ...subject, ...event, type: 'operation.failed', result: code, reason: shortReason(message) }];
  }
}
