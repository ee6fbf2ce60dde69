// What the receipts of sleeps on a workload say, and whether they still count. Pure.
import type { ObservedWorkload, StoredWorkload } from '../../protocol/cloud.ts';
import type { SleepReceipt } from '../../protocol/receipts.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

/** The receipt of the current sleep, or of one just undone. */
export const currentReceiptOf = ({ seen, isReceiptSpent }: StoredWorkload): SleepReceipt | null =>
  isReceiptSpent ? null : seen.receipt;

/**
 * Whether the receipt that the object shows is of an undone sleep; `before` is the record so far. Something
 * that undoes a sleep leaves its receipt behind, so one seen on an awake workload says nothing about later
 * sleeps. docs/reference.md "Wake".
 */
export const isSpent = (before: StoredWorkload, { receipt, uid }: ObservedWorkload): boolean =>
  receipt !== null &&
  uid === before.seen.uid &&
  receipt.at === before.seen.receipt?.at &&
  (before.seen.replicas > 0 || before.isReceiptSpent);

export const isWoken = (before: StoredWorkload, after: StoredWorkload): boolean =>
  before.seen.uid === after.seen.uid && before.seen.replicas === 0 && after.seen.replicas > 0;

/** Whether something else gave it replicas while it slept. A wake by Berth would have removed the receipt. */
export const isUndone = (before: StoredWorkload, after: StoredWorkload): boolean =>
  isWoken(before, after) && currentReceiptOf(after) !== null;

/** The count saved in a receipt, if it is plausible for the workload. docs/reference.md "Wake". */
export const savedCountOf = (after: StoredWorkload): number | null => {
  const receipt = currentReceiptOf(after);
  if (after.seen.replicas > 0 || receipt === null) return null;
  return receipt.replicas <= Math.max(after.maxReplicas, CLOUD.trustedReplicas) ? receipt.replicas : null;
};
