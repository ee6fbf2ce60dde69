// Workloads as records: how an observation changes one, when it is idle, and what the front shows. Pure.
import type { ObservedWorkload, StoredWorkload, WorkloadRow } from '../../protocol/cloud.ts';
import type { SwitchRecord, WakeOrder, WorkloadPolicy } from '../../protocol/policies.ts';
import type { SleepReceipt } from '../../protocol/receipts.ts';
import { derivedUlid } from '../../protocol/ulid.ts';
import type { WorkloadState } from '../../protocol/workload_kinds.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { FAILED_SLEEP, isLeftAlone, managersOf, strikesOf } from './managers.ts';
import { sleepReasonOf, wakeReasonOf } from './workload_reasons.ts';
import { currentReceiptOf, isSpent, isWoken, savedCountOf } from './workload_receipts.ts';

/**
 * The id for (cluster, kind, namespace, name), which stays the same when the workload is recreated.
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

/**
 * Whether an undone sleep indicates something that keeps the workload awake, such as an autoscaler or a
 * deployment tool: those act at once. Later scaling is ordinary use, and undoing a requested sleep says
 * nothing about auto-sleep.
 */
const isKeptAwake = (receipt: SleepReceipt | null, asleepMs: number): boolean =>
  receipt !== null && receipt.by !== 'request' && asleepMs <= CLOUD.undone.withinMs;

/**
 * The count to wake it with if no receipt says otherwise: that with which it was last seen awake, or was put
 * to sleep. null: neither is known. docs/reference.md "Wake".
 */
export const lastCountOf = ({ seen, desiredReplicas }: StoredWorkload): number | null =>
  seen.replicas > 0 ? seen.replicas : desiredReplicas;

/**
 * Whether the object shows that it was used by others since the last observation: a rollout, or connections
 * through another Berth. docs/reference.md "Auto-sleep".
 */
function isUsedElsewhere(before: ObservedWorkload, after: ObservedWorkload, self: string): boolean {
  const isRollout = after.replicas > 0 && after.generation > before.generation && before.generation > 0;
  const { activity } = after;
  const isReported = activity !== null && activity.from !== self && activity.at !== before.activity?.at;
  return isRollout || isReported;
}

/** The record of a workload that is seen for the first time. */
export function newWorkload(clusterId: string, seen: ObservedWorkload, now: number): StoredWorkload {
  return {
    id: workloadId(clusterId, seen),
    clusterId,
    seen,
    state: stateOf(null, seen),
    sleepReason: null,
    desiredReplicas: null,
    autoSleep: false,
    idleMinutes: CLOUD.idleMinutes.default,
    lastActivityAt: null,
    usedAt: now,
    scaledAt: now,
    maxReplicas: seen.replicas,
    isReceiptSpent: false,
    undone: 0,
    span: null,
    switched: null,
    gone: false,
  };
}

/** Who observes, and when. */
export interface Observer {
  /** The name of this Berth. */
  self: string;
  /** Steady time (steady_clock.ts). */
  now: number;
}

/**
 * The switch that a workload seen for the first time shows: its schedule put it to sleep before Berth lost
 * sight of it, and the end of the window is still due. The sleeps of another Berth are left to it.
 */
function switchShownBy(
  { replicas, receipt }: ObservedWorkload,
  { self, now }: Observer,
): SwitchRecord | null {
  const isSleptHere = replicas === 0 && receipt?.by === 'schedule' && receipt.from === self;
  return isSleptHere ? { to: 'asleep', at: receipt.at, schedule: '', count: Math.floor(now) } : null;
}

/**
 * Whether it is awake although its schedule has switched it to sleep: someone has woken it since, so it stays
 * awake until the next switch, also when it is recreated.
 */
const isAwakeInWindow = ({ switched, seen }: StoredWorkload): boolean =>
  switched?.to === 'asleep' && seen.replicas > 0;

/**
 * The record of a workload observed as `seen`; `before` is the record so far. Settings are kept in any case.
 * Another uid resets desired_replicas and activity. The count in a receipt becomes desired_replicas, so that
 * it survives a loss of the annotation; so does the count before something else scaled it to 0.
 */
export function observe(
  before: StoredWorkload | undefined,
  clusterId: string,
  seen: ObservedWorkload,
  observer: Observer,
): StoredWorkload {
  const { self, now } = observer;
  const first = newWorkload(clusterId, seen, now);
  first.switched = switchShownBy(seen, observer);
  if (before && isAwakeInWindow(before)) first.switched ??= before.switched;
  const isSame = before && !before.gone && before.seen.uid === seen.uid;
  const base: StoredWorkload = isSame
    ? before
    : before
      ? { ...first, autoSleep: before.autoSleep, idleMinutes: before.idleMinutes }
      : first;
  const maxReplicas = Math.max(base.maxReplicas, seen.replicas);
  const after = { ...base, seen, maxReplicas, isReceiptSpent: isSpent(base, seen) };
  const isNowAwake = isWoken(base, after);
  const isScaled = (base.seen.replicas === 0) !== (seen.replicas === 0);
  const isKept = isKeptAwake(currentReceiptOf(after), now - base.scaledAt);
  return {
    ...after,
    state: stateOf(isSame ? before.state : null, seen),
    sleepReason: sleepReasonOf(base, after, self),
    desiredReplicas: savedCountOf(after) ?? (seen.replicas === 0 ? lastCountOf(base) : base.desiredReplicas),
    usedAt: isNowAwake || isUsedElsewhere(base.seen, seen, self) ? now : base.usedAt,
    scaledAt: isScaled ? now : base.scaledAt,
    undone: isNowAwake
      ? isKept
        ? base.undone + strikesOf(seen)
        : 0
      : isOtherWish(base.seen, seen)
        ? 0
        : base.undone,
  };
}

/** Whether its annotations changed its sleep settings, which calls for new attempts. */
const isOtherWish = (before: ObservedWorkload, after: ObservedWorkload): boolean =>
  JSON.stringify(before.sleep) !== JSON.stringify(after.sleep);

/** The record of a workload that is no longer in its cluster; null: it has nothing worth keeping. */
export const tombstoneOf = (row: StoredWorkload): StoredWorkload | null =>
  row.autoSleep || row.idleMinutes !== CLOUD.idleMinutes.default || isAwakeInWindow(row)
    ? { ...row, span: null, gone: true }
    : null;

/**
 * The record with other settings; null if they are unchanged. Idle time counts from when auto-sleep was
 * switched on.
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
    usedAt: isSwitchedOn ? now : row.usedAt,
    // A new setting calls for new attempts.
    undone: 0,
  };
}

/**
 * The record after auto-sleep or a schedule has failed to put it to sleep; `before` is the record when it
 * began. `isAltered`: the cluster changed the request, which counts as an undone sleep.
 */
export const withFailedSleep = (
  row: StoredWorkload,
  before: StoredWorkload,
  message: string,
  isAltered: boolean,
): StoredWorkload => ({
  ...row,
  sleepReason: FAILED_SLEEP + message,
  // What the watch has shown since looks like a sleep and a wake by others, and those begin a new count.
  undone: isAltered ? before.undone + 1 : row.undone,
});

/** The record of a workload that was used at `at` (steady time). */
export const usedAt = (row: StoredWorkload, at: number): StoredWorkload =>
  at > row.usedAt ? { ...row, usedAt: at } : row;

/**
 * Whether auto-sleep should put it to sleep at `now` (steady time): it has not been used for the whole
 * timeout `minutes` (null: none). A workload that something keeps awake is never idle.
 */
export function isIdle(row: StoredWorkload, minutes: number | null, now: number): boolean {
  if (minutes === null || row.gone || row.seen.replicas === 0 || isLeftAlone(row)) return false;
  return now - row.usedAt >= minutes * 60_000;
}

/** What the front may know about a workload. `self`: the name of this Berth. */
export function workloadRow(
  row: StoredWorkload,
  self: string,
  staleSince: number | null,
  policy: WorkloadPolicy | null,
  after: WakeOrder | null,
): WorkloadRow {
  const { id, clusterId, state, sleepReason, desiredReplicas, autoSleep, idleMinutes, lastActivityAt } = row;
  const { kind, namespace, name, labels, replicas, ready } = row.seen;
  // One literal: objects built by spreading get a hidden class each, which costs 1 KB per workload.
  return {
    id,
    clusterId,
    state,
    sleepReason,
    desiredReplicas,
    autoSleep,
    idleMinutes,
    lastActivityAt,
    kind,
    namespace,
    name,
    labels,
    replicas,
    ready,
    wakeReason: wakeReasonOf(row, self),
    staleSince,
    policy,
    after,
    managers: managersOf(row),
  };
}
