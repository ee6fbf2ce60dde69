// Workloads as records: what an observation makes of one, when it is idle, and what the front shows. Pure.
import { FIELD_MANAGER } from '../../adapters/kube/parse_objects.ts';
import type {
  ObservedWorkload,
  SleepReceipt,
  StoredWorkload,
  WorkloadRow,
  WorkloadState,
} from '../../protocol/cloud.ts';
import { derivedUlid } from '../../protocol/ulid.ts';
import { CLOUD } from '../../settings/limits.ts';

/**
 * The same id for (cluster, kind, namespace, name), also when it is made again.
 * docs/reference.md "Workloads".
 */
export const workloadId = (
  clusterId: string,
  seen: Pick<ObservedWorkload, 'kind' | 'namespace' | 'name'>,
): string => derivedUlid(clusterId, [seen.kind, seen.namespace, seen.name]);

/** Whether a pod is Ready, as the controller reports for the current spec. */
export const isReady = (seen: ObservedWorkload): boolean => seen.ready > 0 && seen.observed;

function stateOf(before: WorkloadState | null, seen: ObservedWorkload): WorkloadState {
  if (seen.replicas === 0) return seen.pods > 0 ? 'sleeping' : 'asleep';
  return isReady(seen) || before === null || before === 'awake' ? 'awake' : 'waking';
}

const plural = (count: number): string => (count === 1 ? '1 replica' : `${count} replicas`);

/** Who has given replicas to a workload that Berth had put to sleep, as far as the object tells. */
function undoneText(seen: ObservedWorkload): string {
  // A wake by Berth takes the receipt away. Older API servers do not note writes through `scale`, so its name
  // is stale.
  const scaler = seen.scaledBy === FIELD_MANAGER ? null : seen.scaledBy;
  const keeper = seen.keeper ? ` (${seen.keeper} keeps it as its source says)` : '';
  return `the sleep was undone by ${scaler ?? 'something else'}${keeper}, which set ${plural(seen.replicas)}`;
}

/** The receipt of the current sleep, or of one that was just undone. */
const currentReceiptOf = ({ seen, isReceiptSpent }: StoredWorkload): SleepReceipt | null =>
  isReceiptSpent ? null : seen.receipt;

/**
 * What undoes a sleep leaves its receipt behind: one seen on an awake workload tells nothing of later sleeps.
 */
const isSpent = (before: StoredWorkload, { receipt }: ObservedWorkload): boolean =>
  receipt !== null &&
  receipt.at === before.seen.receipt?.at &&
  (before.seen.replicas > 0 || before.isReceiptSpent === true);

const isWoken = (before: StoredWorkload, after: StoredWorkload): boolean =>
  before.seen.uid === after.seen.uid && before.seen.replicas === 0 && after.seen.replicas > 0;

/** Whether something else has given it replicas while it slept: a wake by Berth takes the receipt away. */
export const isUndone = (before: StoredWorkload, after: StoredWorkload): boolean =>
  isWoken(before, after) && currentReceiptOf(after) !== null;

/**
 * Whether an undone sleep tells of something that keeps the workload awake, such as an autoscaler or the tool
 * that deploys it: those act at once. Scaling up later is use, and undoing a sleep by request says nothing of
 * auto-sleep.
 */
const isKeptAwake = (receipt: SleepReceipt | null, now: number): boolean =>
  receipt?.by === 'idle' && now - receipt.at <= CLOUD.undone.withinMs;

const SLEEP_REASONS = { request: 'put to sleep by request', idle: 'put to sleep by auto-sleep' } as const;

function sleepReasonOf(before: StoredWorkload, after: StoredWorkload): string | null {
  const receipt = currentReceiptOf(after);
  if (after.seen.replicas === 0) return receipt ? SLEEP_REASONS[receipt.by] : 'scaled to 0 outside of Berth';
  if (isUndone(before, after)) return undoneText(after.seen);
  // Why a sleep failed or was undone stays readable until something else happens.
  return before.seen.replicas > 0 ? before.sleepReason : null;
}

function newWorkload(clusterId: string, seen: ObservedWorkload, now: number): StoredWorkload {
  return {
    id: workloadId(clusterId, seen),
    clusterId,
    seen,
    state: stateOf(null, seen),
    sleepReason: null,
    desiredReplicas: null,
    autoSleep: false,
    idleMinutes: CLOUD.idleMinutes.default,
    autoSleepSince: null,
    lastActivityAt: null,
    lastByteAt: null,
    awakeSince: now,
    undone: 0,
    gone: false,
  };
}

/**
 * The record of a workload observed as `seen` at `now` (epoch milliseconds); `before` is the record so far.
 * Settings stay in any case. Another uid resets desired_replicas and activity. The count in a receipt becomes
 * desired_replicas, so that it survives the loss of the store.
 */
export function observe(
  before: StoredWorkload | undefined,
  clusterId: string,
  seen: ObservedWorkload,
  now: number,
): StoredWorkload {
  const first = newWorkload(clusterId, seen, now);
  const isSame = before && !before.gone && before.seen.uid === seen.uid;
  const base: StoredWorkload = isSame
    ? before
    : before
      ? {
          ...first,
          autoSleep: before.autoSleep,
          idleMinutes: before.idleMinutes,
          autoSleepSince: before.autoSleepSince,
        }
      : first;
  const after = { ...base, seen, isReceiptSpent: isSpent(base, seen) };
  const receipt = currentReceiptOf(after);
  const isNowAwake = isWoken(base, after);
  return {
    ...after,
    state: stateOf(isSame ? before.state : null, seen),
    sleepReason: sleepReasonOf(base, after),
    desiredReplicas: seen.replicas === 0 && receipt ? receipt.replicas : base.desiredReplicas,
    awakeSince: isNowAwake ? now : base.awakeSince,
    undone: isNowAwake ? (isKeptAwake(receipt, now) ? base.undone + 1 : 0) : base.undone,
  };
}

/** The record of a workload that is no longer in its cluster; null: it has no settings worth keeping. */
export const tombstoneOf = (row: StoredWorkload): StoredWorkload | null =>
  row.autoSleep || row.idleMinutes !== CLOUD.idleMinutes.default ? { ...row, gone: true } : null;

/**
 * The record with other settings, null for one that stays. Idleness counts from when auto-sleep was switched
 * on.
 */
export function withAutoSleep(
  row: StoredWorkload,
  enabled: boolean | null,
  minutes: number | null,
  now: number,
): StoredWorkload {
  const autoSleep = enabled ?? row.autoSleep;
  const isSwitchedOn = autoSleep && !row.autoSleep;
  return {
    ...row,
    autoSleep,
    idleMinutes: minutes ?? row.idleMinutes,
    autoSleepSince: isSwitchedOn ? now : row.autoSleepSince,
    // A new setting asks for new attempts.
    undone: 0,
  };
}

/**
 * Whether auto-sleep should put it to sleep at `now`: for the whole timeout it was awake with auto-sleep on,
 * nobody has connected, and no connection has moved a byte. A workload that something keeps awake is never
 * idle.
 */
export function isIdle(row: StoredWorkload, now: number): boolean {
  if (!row.autoSleep || row.gone || row.seen.replicas === 0 || row.undone >= CLOUD.undone.max) return false;
  const { awakeSince, autoSleepSince, lastActivityAt, lastByteAt } = row;
  const last = Math.max(awakeSince, autoSleepSince ?? 0, lastActivityAt ?? 0, lastByteAt ?? 0);
  return now - last >= row.idleMinutes * 60_000;
}

/** What the front may know of a workload. */
export function workloadRow(row: StoredWorkload): WorkloadRow {
  const { id, clusterId, state, sleepReason, desiredReplicas, autoSleep, idleMinutes, lastActivityAt } = row;
  const { kind, namespace, name, replicas, ready } = row.seen;
  return {
    ...{ id, clusterId, state, sleepReason, desiredReplicas, autoSleep, idleMinutes, lastActivityAt },
    ...{ kind, namespace, name, replicas, ready },
  };
}
