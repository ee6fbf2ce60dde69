// What the receipts on a workload say about the last sleep and wake: docs/reference.md "Sleep", "Wake". Pure.
import { FIELD_MANAGER } from '../../adapters/kube/parse_objects.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { SleepReceipt } from '../../protocol/receipts.ts';

/**
 * Whether its spec is still as the cluster stored it for the request with this receipt, or for the one to the
 * workload as it was then. A webhook may have left the spec as it was before, and with it the generation, so
 * the next change may have the same one.
 */
export const isUnchangedSince = (
  { uid, generation, scaledBy }: ObservedWorkload,
  before: Pick<SleepReceipt, 'uid' | 'generation'>,
): boolean =>
  before.generation !== undefined &&
  before.uid === uid &&
  generation <= before.generation + 1 &&
  (scaledBy === null || scaledBy === FIELD_MANAGER);

/** Whether the cluster changed the request to sleep, and it was not put back. */
export const isAlteredSleep = (seen: ObservedWorkload): boolean =>
  seen.receipt !== null && seen.replicas > 0 && isUnchangedSince(seen, seen.receipt);

/** Whether the cluster changed the request to wake it, so that it is asleep. */
const isAlteredWake = (seen: ObservedWorkload): boolean =>
  seen.wakeReceipt !== null && seen.replicas === 0 && isUnchangedSince(seen, seen.wakeReceipt);

/** Whether `operation` has already put it to sleep. The receipt remains even if that was undone. */
export const isSleptBy = (seen: ObservedWorkload, operation: string | undefined): boolean =>
  operation !== undefined && seen.receipt?.operation === operation && !isAlteredSleep(seen);

/** Whether `operation` has already woken it. */
export const isWokenBy = (seen: ObservedWorkload, operation: string | undefined): boolean =>
  operation !== undefined && seen.wakeReceipt?.operation === operation && !isAlteredWake(seen);

/**
 * The count that it should have: a receipt keeps it when the cluster changed the last sleep or wake, so that
 * fewer replicas remained. Otherwise the count that it has.
 */
export function intendedCount(seen: ObservedWorkload): number {
  const counts = [seen.receipt, seen.wakeReceipt].map((receipt) =>
    receipt && isUnchangedSince(seen, receipt) ? (receipt.replicas ?? 0) : 0,
  );
  return Math.max(seen.replicas, ...counts);
}
