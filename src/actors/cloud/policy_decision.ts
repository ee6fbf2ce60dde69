// Decides which policy, annotation or setting controls a workload's sleep: docs/reference.md "Policies".
// Pure.
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { parseSelector } from '../../protocol/labels.ts';
import {
  type PolicySource,
  type SleepAnnotations,
  type StoredPolicy,
  type SwitchRecord,
  sourceName,
} from '../../protocol/policies.ts';
import type { SleepSchedule } from '../../protocol/sleep_windows.ts';
import { POLICY } from '../../settings/cloud_limits.ts';
import { SCHEDULE } from '../../settings/limits.ts';
import type { SleepTimeline } from './sleep_timeline.ts';

/** A policy with its parsed selector. */
export interface SelectingPolicy {
  readonly policy: StoredPolicy;
  has(row: StoredWorkload): boolean;
}

const partsOf = ({ selector }: StoredPolicy): number =>
  Object.values(selector).filter((part) => part !== null).length;

/**
 * Policies in order of precedence: those whose selectors have more parts (clusters, namespaces, labels)
 * first, then by name. Throws invalid_spec for an invalid selector.
 */
export function inOrder(policies: readonly StoredPolicy[]): SelectingPolicy[] {
  const sorted = [...policies].sort(
    (one, other) => partsOf(other) - partsOf(one) || (one.name < other.name ? -1 : 1),
  );
  return sorted.map((policy) => {
    const { clusterIds, namespaces, labels } = policy.selector;
    const hasLabels = labels === null ? null : parseSelector(labels);
    return {
      policy,
      // Every policy is matched against every workload, so this allocates nothing.
      has: ({ clusterId, seen }) =>
        (clusterIds === null || clusterIds.includes(clusterId)) &&
        (namespaces === null || namespaces.includes(seen.namespace)) &&
        (hasLabels === null || hasLabels(seen.labels)),
    };
  });
}

/** The policies that differ between the two lists. */
export function differences(
  before: readonly SelectingPolicy[],
  after: readonly SelectingPolicy[],
): SelectingPolicy[] {
  const textsOf = (all: readonly SelectingPolicy[]): Set<string> =>
    new Set(all.map(({ policy }) => JSON.stringify(policy)));
  const [old, present] = [textsOf(before), textsOf(after)];
  return [
    ...before.filter(({ policy }) => !present.has(JSON.stringify(policy))),
    ...after.filter(({ policy }) => !old.has(JSON.stringify(policy))),
  ];
}

/** A schedule, with the name of its source. */
export interface GivenSchedule {
  schedule: SleepSchedule | string;
  who: string;
}

/** What decides about one workload. */
export interface Decision {
  excludedBy: string | null;
  idle: { minutes: number; who: string } | null;
  schedule: GivenSchedule | null;
  /** Epoch milliseconds; null: nothing keeps it awake. */
  awakeUntil: number | null;
  faults: readonly string[];
}

interface Sayings {
  said: SleepAnnotations;
  source: PolicySource;
}

const UNDECIDED: Decision = { excludedBy: null, idle: null, schedule: null, awakeUntil: null, faults: [] };

/** Whether nothing at all decides about the workload. */
export const isUndecided = (decision: Decision): boolean => decision === UNDECIDED;

/**
 * What decides about `row`. `namespace`: the annotations of its namespace; `policy`: the first policy that
 * selects it. Each setting comes from the nearest source that has it: the workload, its namespace, its own
 * auto-sleep, the policy. Of several times until which it stays awake, the latest wins.
 */
export function decide(
  { seen, autoSleep, idleMinutes }: StoredWorkload,
  namespace: SleepAnnotations | null,
  policy: StoredPolicy | null,
): Decision {
  // Most workloads, and a look at all of them costs this much for each.
  if (!seen.sleep && !namespace && !policy && !autoSleep) return UNDECIDED;
  const annotations: Sayings[] = [
    ...(seen.sleep ? [{ said: seen.sleep, source: 'workload' as const }] : []),
    ...(namespace ? [{ said: namespace, source: 'namespace' as const }] : []),
  ];
  const policyWho = sourceName('policy', policy?.name ?? null);
  const nearest = (name: keyof SleepAnnotations): Sayings | undefined =>
    annotations.find(({ said }) => said[name] !== undefined);
  const exclusion = nearest('isExcluded');
  const isExcluded = exclusion?.said.isExcluded === true;
  const idle = nearest('idleMinutes');
  const scheduled = nearest('schedule');
  const idles: Decision['idle'][] = [
    idle ? { minutes: idle.said.idleMinutes ?? 0, who: sourceName(idle.source, null) } : null,
    autoSleep ? { minutes: idleMinutes, who: sourceName('setting', null) } : null,
    policy && policy.idleMinutes !== null ? { minutes: policy.idleMinutes, who: policyWho } : null,
  ];
  const given = idles.find((one) => one !== null) ?? null;
  const awakeUntil = Math.max(
    ...annotations.map(({ said }) => said.awakeUntil ?? 0),
    policy?.awakeUntil ?? 0,
    0,
  );
  return {
    excludedBy: exclusion && isExcluded ? sourceName(exclusion.source, null) : null,
    idle: given && given.minutes > 0 && !isExcluded ? given : null,
    schedule: isExcluded
      ? null
      : scheduled?.said.schedule !== undefined
        ? { schedule: scheduled.said.schedule, who: sourceName(scheduled.source, null) }
        : policy?.schedule
          ? { schedule: policy.schedule, who: policyWho }
          : null,
    awakeUntil: awakeUntil > 0 ? awakeUntil : null,
    faults: annotations.flatMap(({ said, source }) =>
      (said.faults ?? []).map((fault) => (source === 'namespace' ? `namespace: ${fault}` : fault)),
    ),
  };
}

/** The phase that a schedule currently wants for a workload. */
export type WantedPhase = Omit<SwitchRecord, 'count' | 'sleptBy'>;

/** The phase that the schedule of `key` wants at `now`. Until `awakeUntil` it is awake. */
export function wantedPhase(
  timeline: SleepTimeline,
  key: string,
  awakeUntil: number | null,
  now: number,
): WantedPhase {
  const { to, since } = timeline.phaseAt(now);
  const isHeld = awakeUntil !== null && now < awakeUntil;
  return isHeld
    ? { to: 'awake', at: since, schedule: `${key} until ${awakeUntil}` }
    : { to, at: since, schedule: key };
}

/**
 * The switch due at `now`; null: none. `wanted` null: no schedule controls the workload. However long ago the
 * last look was, only the latest switch counts. docs/reference.md "Policies".
 */
export function dueSwitch(
  last: SwitchRecord | null,
  wanted: WantedPhase | null,
  now: number,
): 'asleep' | 'awake' | null {
  if (wanted === null) return last?.to === 'asleep' ? 'awake' : null;
  if (last === null) return wanted.to === 'asleep' ? 'asleep' : null;
  const isComparable = last.schedule === wanted.schedule && last.at <= now + SCHEDULE.setBackMs;
  const isDue = isComparable ? wanted.at > last.at : wanted.to !== last.to;
  return isDue ? wanted.to : null;
}

/** Whether a workload was created in the window that began at `began`, which has not switched it yet. */
const isNewSince = ({ switched, seen }: StoredWorkload, began: number): boolean =>
  switched === null && seen.createdAt !== null && seen.createdAt >= began;

/** Whether such a workload was put to sleep and woken, other than by a schedule: it stays awake. */
export const isWokenSince = (row: StoredWorkload, began: number): boolean => {
  const { uid, replicas, wakeReceipt } = row.seen;
  const isWoken = replicas > 0 && wakeReceipt?.uid === uid && wakeReceipt.by !== 'schedule';
  return isWoken && isNewSince(row, began);
};

/**
 * Until when such a workload is left awake to come up; null: it is not at `now`. All in epoch milliseconds.
 * docs/reference.md "Policies".
 */
export function graceEnd(row: StoredWorkload, began: number, now: number): number | null {
  const { createdAt } = row.seen;
  if (createdAt === null || !isNewSince(row, began) || isWokenSince(row, began)) return null;
  // The cluster's clock may be wrong.
  return Math.abs(now - createdAt) < POLICY.graceMs ? createdAt + POLICY.graceMs : null;
}

/** Until when `row` is kept awake, by `awakeUntil` or because it is new; `now`: by neither. */
export function keptAwakeUntil(
  row: StoredWorkload,
  timeline: SleepTimeline,
  awakeUntil: number | null,
  now: number,
): number {
  const from = Math.max(now, awakeUntil ?? now);
  const { to, since, until } = timeline.phaseAt(from);
  const ends = to === 'asleep' ? graceEnd(row, since, from) : null;
  // The next window puts it to sleep at once.
  return ends === null ? from : Math.min(ends, until ?? ends);
}
