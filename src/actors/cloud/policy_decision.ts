// Which policy, annotation or setting decides when a workload sleeps: docs/reference.md "Policies". Pure.
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
import { SCHEDULE } from '../../settings/limits.ts';
import type { SleepTimeline } from './sleep_timeline.ts';

/** A policy with what its selector has. */
export interface SelectingPolicy {
  readonly policy: StoredPolicy;
  has(row: StoredWorkload): boolean;
}

const partsOf = ({ selector }: StoredPolicy): number =>
  Object.values(selector).filter((part) => part !== null).length;

/**
 * Policies in the order in which they are asked: those first whose selector has more parts (clusters,
 * namespaces, labels), of equal ones the first by name. Throws invalid_spec for a selector that is none.
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
      // Every policy asks every workload: nothing is made here.
      has: ({ clusterId, seen }) =>
        (clusterIds === null || clusterIds.includes(clusterId)) &&
        (namespaces === null || namespaces.includes(seen.namespace)) &&
        (hasLabels === null || hasLabels(seen.labels)),
    };
  });
}

/** A schedule with the name of who gives it. */
export interface GivenSchedule {
  schedule: SleepSchedule | string;
  who: string;
}

/** What decides on one workload. */
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

/**
 * What decides on `row`, `namespace` being the annotations of its namespace and `policy` the first that has
 * it. Each setting is that of the nearest that says it: the workload, its namespace, its own auto-sleep, the
 * policy. Of the times until which it stays awake the latest holds.
 */
export function decide(
  { seen, autoSleep, idleMinutes }: StoredWorkload,
  namespace: SleepAnnotations | null,
  policy: StoredPolicy | null,
): Decision {
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

/** What a schedule wants of a workload now. */
export type WantedPhase = Omit<SwitchRecord, 'count'>;

/** What the schedule of `key` wants at `now`; until `awakeUntil` it is awake. */
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
 * The switch that is due at `now`; null: none. `wanted` null: no schedule governs the workload. However long
 * nobody has looked, only the last switch counts. docs/reference.md "Policies".
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
