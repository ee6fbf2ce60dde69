// Why a workload sleeps or was woken, in words. Pure.
import { FIELD_MANAGER } from '../../adapters/kube/parse_objects.ts';
import type { ObservedWorkload, StoredWorkload } from '../../protocol/cloud.ts';
import type { SleepReceipt } from '../../protocol/receipts.ts';
import { currentReceiptOf, isUndone } from './workload_receipts.ts';

/** Such as `2 replicas`. */
export const replicasText = (count: number): string => (count === 1 ? '1 replica' : `${count} replicas`);

/** Who gave replicas to a workload that Berth had put to sleep, as far as the object shows. */
function undoneText(seen: ObservedWorkload): string {
  // A wake by Berth removes the receipt. Older API servers do not record writes through `scale`, so the
  // recorded name may be stale.
  const scaler = seen.scaledBy === FIELD_MANAGER ? null : seen.scaledBy;
  const keeper = seen.keeper ? ` (${seen.keeper} keeps it as its source says)` : '';
  return `the sleep was undone by ${scaler ?? 'something else'}${keeper}, which set ${replicasText(seen.replicas)}`;
}

const SLEEP_REASONS = {
  request: 'put to sleep by request',
  idle: 'put to sleep by auto-sleep',
  schedule: 'put to sleep by its schedule',
} as const;
const WAKE_REASONS = {
  request: 'woken by request',
  connection: 'woken by a connection through a tether',
  schedule: 'woken by its schedule',
} as const;

/** Which policy decided. */
const policyText = ({ policy }: Pick<SleepReceipt, 'policy'>): string =>
  policy === undefined ? '' : ` (${policy})`;

/** Who did it, unless it was this Berth, whose name is `self`. */
const actorText = (from: string | null, self: string): string =>
  from === null || from === self ? '' : ` of the Berth ${from}`;

/** Why it sleeps, or why a sleep of it failed or was undone; null: there is nothing to say. */
export function sleepReasonOf(before: StoredWorkload, after: StoredWorkload, self: string): string | null {
  const receipt = currentReceiptOf(after);
  if (after.seen.replicas === 0)
    return receipt
      ? SLEEP_REASONS[receipt.by] + policyText(receipt) + actorText(receipt.from, self)
      : 'scaled to 0 outside of Berth';
  if (isUndone(before, after)) return undoneText(after.seen);
  // The reason why a sleep failed or was undone stays visible until something else happens.
  return before.seen.replicas > 0 ? before.sleepReason : null;
}

/** Who woke it; null: it is asleep, or Berth did not wake it. */
export function wakeReasonOf({ seen }: StoredWorkload, self: string): string | null {
  const { wakeReceipt } = seen;
  if (seen.replicas === 0 || wakeReceipt === null) return null;
  return WAKE_REASONS[wakeReceipt.by] + policyText(wakeReceipt) + actorText(wakeReceipt.from, self);
}
