// Completes the records of workloads that earlier versions have stored. Pure.
import type { ObservedWorkload, StoredWorkload } from '../../protocol/cloud.ts';
import type { SleepReceipt } from '../../protocol/receipts.ts';
import { newWorkload } from './workload_record.ts';

/** A record as an earlier version may have stored it. */
type EarlierWorkload = Partial<StoredWorkload> &
  Pick<StoredWorkload, 'id' | 'clusterId' | 'seen' | 'state' | 'undone' | 'gone'> & {
    autoSleepSince?: number | null;
    lastByteAt?: number | null;
    awakeSince?: number;
  };

type EarlierReceipt = Omit<SleepReceipt, 'from' | 'holdUntil'> & Partial<SleepReceipt>;

/** Every field that a record has. A new one is added here, or earlier records would be taken for complete. */
const RECORD_FIELDS: Record<Exclude<keyof StoredWorkload, 'autoscalers' | 'scaledObjects'>, true> = {
  id: true,
  clusterId: true,
  seen: true,
  state: true,
  sleepReason: true,
  desiredReplicas: true,
  autoSleep: true,
  idleMinutes: true,
  lastActivityAt: true,
  usedAt: true,
  scaledAt: true,
  maxReplicas: true,
  isReceiptSpent: true,
  undone: true,
  span: true,
  switched: true,
  gone: true,
};
const FIELDS = Object.keys(RECORD_FIELDS) as (keyof StoredWorkload)[];

/** What later versions have added to an observation, as it is where it was not looked at. */
const UNSEEN = {
  createdAt: null,
  generation: 0,
  labels: '' as ObservedWorkload['labels'],
  replicaSet: null,
  wakeReceipt: null,
  activity: null,
  sleep: null,
  requests: { cpu: 0, memory: 0 },
} satisfies Partial<ObservedWorkload>;
const UNSEEN_FIELDS = Object.keys(UNSEEN) as (keyof typeof UNSEEN)[];

/** Whether the record needs no completion: it has every field, and no time in it is ahead of `now`. */
function isCurrent(stored: EarlierWorkload, now: number): stored is StoredWorkload {
  const { usedAt = 0, scaledAt = 0, span, seen } = stored;
  return (
    FIELDS.every((field) => stored[field] !== undefined) &&
    UNSEEN_FIELDS.every((field) => seen[field] !== undefined) &&
    (seen.receipt === null || (seen.receipt.from !== undefined && seen.receipt.holdUntil !== undefined)) &&
    Math.max(usedAt, scaledAt, span?.since ?? 0) <= now
  );
}

/**
 * Completes a stored record with what later versions have added. Times ahead of `now` come from a wrong
 * clock, and count as now.
 */
export function loadedWorkload(stored: EarlierWorkload, now: number): StoredWorkload {
  // A start loads every record, and a copy of each would take as long as reading it.
  if (isCurrent(stored, now)) return stored;
  const { autoSleepSince, lastByteAt, awakeSince, ...row } = stored;
  const { lastActivityAt = null, usedAt, scaledAt = awakeSince ?? now } = row;
  const lastUse =
    usedAt ?? Math.max(awakeSince ?? 0, autoSleepSince ?? 0, lastActivityAt ?? 0, lastByteAt ?? 0);
  const saved: EarlierReceipt | null = stored.seen.receipt;
  const receipt = saved && { from: null, holdUntil: null, ...saved };
  const seen = { ...UNSEEN, ...stored.seen, receipt };
  return {
    ...newWorkload(stored.clusterId, seen, now),
    ...row,
    seen,
    usedAt: Math.min(lastUse, now),
    scaledAt: Math.min(scaledAt, now),
    span: row.span ? { ...row.span, since: Math.min(row.span.since, now) } : null,
    maxReplicas: row.maxReplicas ?? Math.max(seen.replicas, row.desiredReplicas ?? 0),
  };
}
