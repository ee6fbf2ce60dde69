// Other tools that set a workload's replicas, and the settings that make each leave a sleep alone:
// docs/reference.md "GitOps tools and autoscalers". Pure.
import type { ObservedWorkload, StoredWorkload, WorkloadManager } from '../../protocol/cloud.ts';
import type { Autoscaler } from '../../protocol/cluster_calls.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

type Subject = Pick<ObservedWorkload, 'kind' | 'namespace' | 'name'>;

/** Keyed by the tools of KEEPER_MARKS and KEEPER_WRITERS in parse_objects.ts. */
const KEEPER_SETTINGS: Readonly<Record<string, (subject: Subject) => string>> = {
  'Argo CD': ({ kind, namespace, name }) =>
    'add RespectIgnoreDifferences=true to spec.syncPolicy.syncOptions of its Application, and ' +
    `{group: apps, kind: ${kind}, namespace: ${namespace}, name: ${name}, jsonPointers: [/spec/replicas]} ` +
    'to spec.ignoreDifferences',
  Flux: ({ kind, name }) =>
    'leave spec.replicas out of the manifest; for a HelmRelease with drift detection add ' +
    `{paths: [/spec/replicas], target: {kind: ${kind}, name: ${name}}} to spec.driftDetection.ignore`,
  Fleet: ({ kind, namespace, name }) =>
    `add {apiVersion: apps/v1, kind: ${kind}, namespace: ${namespace}, name: ${name}, ` +
    'operations: [{op: remove, path: /spec/replicas}]} to diff.comparePatches of fleet.yaml',
};

const scaledObjectManager = (name: string): WorkloadManager => ({
  tool: `KEDA ScaledObject ${name}`,
  settings: 'annotate it with autoscaling.keda.sh/paused-replicas: "0" while the workload sleeps',
});

const autoscalerManager = (name: string): WorkloadManager => ({
  tool: `HorizontalPodAutoscaler ${name}`,
  settings: 'set spec.minReplicas to 1 or more: then it rests while the count is 0',
});

/** The tools known to set the workload's replicas. */
export function managersOf({
  seen,
  autoscalers = [],
  scaledObjects = [],
}: StoredWorkload): WorkloadManager[] {
  const settings = seen.keeper === null ? undefined : KEEPER_SETTINGS[seen.keeper]?.(seen);
  const keepers = seen.keeper !== null && settings ? [{ tool: seen.keeper, settings }] : [];
  return [...keepers, ...scaledObjects.map(scaledObjectManager), ...autoscalers.map(autoscalerManager)];
}

/** People scale with kubectl, even workloads that a tool manages. */
const isByPerson = ({ scaledBy }: ObservedWorkload): boolean => scaledBy?.startsWith('kubectl') === true;

/** How much an undone sleep counts. A tool that is known to do it would do it again. */
export const strikesOf = (seen: ObservedWorkload): number =>
  seen.keeper !== null && !isByPerson(seen) ? CLOUD.undone.max : 1;

/** The record of a workload whose sleep was undone, once its autoscalers are known. */
export function withAutoscalers(row: StoredWorkload, all: readonly Autoscaler[]): StoredWorkload {
  const autoscalers = all.flatMap(({ name, scaledObject }) => (scaledObject === null ? [name] : []));
  const scaledObjects = all.flatMap(({ scaledObject }) => scaledObject ?? []);
  const isKnown = row.undone > 0 && scaledObjects.length > 0 && !isByPerson(row.seen);
  return { ...row, autoscalers, scaledObjects, undone: isKnown ? CLOUD.undone.max : row.undone };
}

/** Begins the `sleepReason` of a workload that could not be put to sleep. */
export const FAILED_SLEEP = 'auto-sleep: ';

/** Whether auto-sleep and schedules leave a workload alone, until its settings change. */
export const isLeftAlone = ({ undone }: Pick<StoredWorkload, 'undone'>): boolean =>
  undone >= CLOUD.undone.max;

/** Why auto-sleep and schedules leave a workload alone. */
export function leftReason(row: StoredWorkload): string {
  if (row.sleepReason?.startsWith(FAILED_SLEEP))
    return `auto-sleep leaves it alone after ${row.undone} attempts in a row: ${row.sleepReason.slice(FAILED_SLEEP.length)}`;
  const managers = managersOf(row);
  if (managers.length === 0)
    return `auto-sleep leaves it alone: it was woken ${row.undone} times in a row by something else`;
  const settings = managers.map(({ tool, settings: text }) => `${tool}: ${text}`).join('; ');
  return `auto-sleep leaves it alone, as something else gives it replicas. For peace with ${settings}`;
}
