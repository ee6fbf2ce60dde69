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

type Bulk = Pick<NewCloudEvent, 'action' | 'operationId' | 'who' | 'from'>;

/** null: a dry run, which is no operation. */
const bulkOf = ({ operation, asker, to }: BulkChange): Bulk | null =>
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
        this.bulks.set(id, { action, operationId: id, who, from });
    }
  }

  /** Runs `work`, which makes the change. */
  async during<R>(change: BulkChange, work: () => Promise<R>): Promise<R> {
    const bulk = bulkOf(change);
    const operation = change.operation ?? '';
    if (bulk) this.bulks.set(operation, bulk);
    try {
      return await work();
    } finally {
      // Each change is recorded before `work` has its result.
      this.bulks.delete(operation);
    }
  }

  /** Reports that `after` has a new receipt of a bulk change. */
  changeEvents({ seen: before }: StoredWorkload, after: StoredWorkload): NewCloudEvent[] {
    const { receipt, wakeReceipt } = after.seen;
    const slept = this.bulks.get(receipt?.operation ?? '');
    const woken = this.bulks.get(wakeReceipt?.operation ?? '');
    const isSlept = !isSame(before.receipt, receipt) && isSleptBy(after.seen, receipt?.operation);
    const isWoken = !isSame(before.wakeReceipt, wakeReceipt) && isWokenBy(after.seen, wakeReceipt?.operation);
    return [isSlept && slept, isWoken && woken].flatMap((bulk) =>
      bulk ? [{ ...subjectOf(after), ...bulk, type: 'operation.done' as const }] : [],
    );
  }

  /** Reports that the change of a workload has failed. */
  failureEvents(change: BulkChange, { clusterId, id, ...result }: BulkResult): NewCloudEvent[] {
    const bulk = bulkOf(change);
    if (!bulk || result.code === null) return [];
    const { namespace, kind, name: workload, code, message } = result;
    const subject = { clusterId, namespace, kind, workload, workloadId: id };
    return [{ ...subject, ...bulk, type: 'operation.failed', result: code, reason: shortReason(message) }];
  }
}
