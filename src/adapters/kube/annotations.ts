// The annotations that Berth keeps on a workload itself, so that they survive the loss of its store and other
// Berths see them. Anyone may have written them, so each is validated. Pure.
import type { SleepReceipt, WakeReceipt, WorkloadActivity } from '../../protocol/receipts.ts';
import { ULID_PATTERN } from '../../protocol/ulid.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { HTTP } from '../../settings/limits.ts';
import { boundedCount, oneLine } from './untrusted_values.ts';
import { type Wire, wire } from './wire_types.ts';

/** The annotation that holds the receipt of a sleep. */
export const RECEIPT_ANNOTATION = 'berth/sleep';
/** The annotation that says who woke the workload. */
export const WAKE_ANNOTATION = 'berth/wake';
/**
 * The annotation naming the operation last found to be interrupted without effect. Every sleep and wake is
 * conditional on its value as read, so a late patch of that operation is refused.
 */
export const CUT_OFF_ANNOTATION = 'berth/op';
/** The annotation with the last use of a workload that some Berth may put to sleep. */
export const ACTIVITY_ANNOTATION = 'berth/activity';

const MAX_LENGTH = 1_000;
const MAX_NAME_LENGTH = 128;

/** The object in an annotation; undefined if it is not one. */
function parsed<T extends object>(annotation: unknown): Wire<T> | undefined {
  if (typeof annotation !== 'string' || annotation.length > MAX_LENGTH) return undefined;
  try {
    return wire<T>(JSON.parse(annotation));
  } catch {
    return undefined;
  }
}

/** Epoch milliseconds; null for anything else. */
const timeOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;

/** The id of an operation, as a part of a receipt. */
const operationOf = (value: unknown): { operation?: string } =>
  typeof value === 'string' && ULID_PATTERN.test(value) ? { operation: value } : {};

/** The policy that decided, as a part of a receipt. */
function policyOf(value: unknown): { policy?: string } {
  const policy = oneLine(value, MAX_NAME_LENGTH);
  return policy === '' ? {} : { policy };
}

/** The object and its generation before the change, as a part of a receipt. */
function changedOf(row: Wire<SleepReceipt | WakeReceipt> | undefined): { uid?: string; generation?: number } {
  const { uid, generation } = row ?? {};
  const isGeneration = typeof generation === 'number' && Number.isSafeInteger(generation) && generation >= 0;
  return isGeneration && typeof uid === 'string' ? { uid, generation } : {};
}

/** The receipt of a sleep; null when there is none or it is invalid. */
export function parseReceipt(annotation: unknown): SleepReceipt | null {
  const row = parsed<SleepReceipt>(annotation);
  const replicas = boundedCount(row?.replicas, 0);
  const at = timeOf(row?.at);
  if (replicas === 0 || at === null) return null;
  const from = oneLine(row?.from, MAX_NAME_LENGTH) || null;
  // No Berth writes a longer hold.
  const holdUntil = timeOf(row?.holdUntil);
  return {
    replicas,
    at,
    by: row?.by === 'idle' || row?.by === 'schedule' ? row.by : 'request',
    from,
    holdUntil: holdUntil !== null && holdUntil <= at + HTTP.maxQueryDurationMs ? holdUntil : null,
    ...operationOf(row?.operation),
    ...policyOf(row?.policy),
    ...changedOf(row),
  };
}

/** Who woke the workload; null when absent or invalid. */
export function parseWakeReceipt(annotation: unknown): WakeReceipt | null {
  const row = parsed<WakeReceipt>(annotation);
  const at = timeOf(row?.at);
  if (at === null) return null;
  const by = row?.by === 'connection' || row?.by === 'schedule' ? row.by : 'request';
  const from = oneLine(row?.from, MAX_NAME_LENGTH);
  const replicas = boundedCount(row?.replicas, 0);
  return {
    at,
    by,
    from,
    ...(replicas > 0 && { replicas }),
    ...operationOf(row?.operation),
    ...policyOf(row?.policy),
    ...changedOf(row),
  };
}

/** The last use; null when absent or invalid. */
export function parseActivity(annotation: unknown): WorkloadActivity | null {
  const row = parsed<WorkloadActivity>(annotation);
  const at = timeOf(row?.at);
  const { min, max } = CLOUD.idleMinutes;
  const minutes = boundedCount(row?.minutes, 0);
  if (at === null || minutes < min || minutes > max) return null;
  return { at, from: oneLine(row?.from, MAX_NAME_LENGTH), minutes };
}
