// The workloads as the list at the left shows them: namespaces that open and close, and their workloads.
import { computed, effect, signal } from '@preact/signals';
import type { Workload } from '../../client/browser.ts';
import {
  countInState,
  foundWorkloads,
  type WorkloadGroup,
  workloadGroupKey,
  workloadGroupsOf,
} from '../../presentation/workload_groups.ts';
import { clusterList, clusterNames, workloadPages } from './cloud_data.ts';
import { searchWords, shownPlace } from './place.ts';
import { hasCloudToken } from './session.ts';

/** A row of workloads: the head of all, the head of a namespace, or a workload. */
export type WorkloadTreeRow =
  | { key: string; kind: 'workloads'; awake: number; all: number }
  | { key: string; kind: 'namespace'; group: WorkloadGroup; awake: number; isOpen: boolean }
  | { key: string; kind: 'workload'; workload: Workload };

/** Up to so many workloads, all namespaces are open at first. */
const MAX_OPEN_AT_FIRST = 50;

/** Whether namespaces are open that nobody has opened or closed. Settled once, so that rows do not jump. */
const areOpenAtFirst = signal<boolean | null>(null);
effect(() => {
  if (workloadPages.isWhole.value && areOpenAtFirst.peek() === null)
    areOpenAtFirst.value = workloadPages.rows.peek().length <= MAX_OPEN_AT_FIRST;
});

/** The namespaces that a person has opened (true) or closed, by key. */
const chosen = signal<ReadonlyMap<string, boolean>>(new Map());

/** The namespaces closed since the search began, which opens all of them. */
const closedInSearch = signal<ReadonlySet<string>>(new Set());
const isSearch = computed(() => searchWords.value.length > 0);
effect(() => {
  if (!isSearch.value) closedInSearch.value = new Set();
});

const isOpen = (key: string): boolean =>
  isSearch.value ? !closedInSearch.value.has(key) : (chosen.value.get(key) ?? areOpenAtFirst.value ?? false);

/** Opens a closed namespace, and closes an open one; during a search only for its time. */
export function toggleNamespace(key: string): void {
  if (!isSearch.peek()) chosen.value = new Map(chosen.peek()).set(key, !isOpen(key));
  else if (isOpen(key)) closedInSearch.value = new Set(closedInSearch.peek()).add(key);
  else closedInSearch.value = new Set([...closedInSearch.peek()].filter((one) => one !== key));
}

/** Opens the namespace of a workload, so that the list shows its row. */
export function openNamespaceOf(workload: Workload): void {
  const key = workloadGroupKey(workload);
  if (!isOpen(key)) toggleNamespace(key);
}

/** The key of the row of a workload. */
const workloadRowKey = (id: string): string => `workload ${id}`;

/** The id of the selected workload; null: none is selected. */
export const selectedWorkloadId = computed(() =>
  shownPlace.value.view === 'cloud' ? shownPlace.value.name : null,
);

/** The key of the row of the selected service, agent or workload; null: none is selected. */
export const selectedRowKey = computed(() =>
  selectedWorkloadId.value === null ? shownPlace.value.name : workloadRowKey(selectedWorkloadId.value),
);

/** Whether any cluster is known, without which the list has no workloads. */
const hasClusters = computed(() => hasCloudToken.value && (clusterList.value?.length ?? 0) > 0);

const found = computed(() => foundWorkloads(workloadPages.rows.value, searchWords.value, clusterNames.value));

const groups = computed(() => workloadGroupsOf(found.value, clusterNames.value));

/** The rows of workloads that match the search. */
export const workloadTreeRows = computed((): readonly WorkloadTreeRow[] => {
  if (!hasClusters.value || (isSearch.value && found.value.length === 0)) return [];
  const rows: WorkloadTreeRow[] = [];
  let allAwake = 0;
  for (const group of groups.value) {
    const awake = countInState(group.workloads, 'awake');
    const isGroupOpen = isOpen(group.key);
    allAwake += awake;
    rows.push({ key: `namespace ${group.key}`, kind: 'namespace', group, awake, isOpen: isGroupOpen });
    if (!isGroupOpen) continue;
    for (const workload of group.workloads)
      rows.push({ key: workloadRowKey(workload.id), kind: 'workload', workload });
  }
  return [{ key: 'workloads', kind: 'workloads', awake: allAwake, all: found.value.length }, ...rows];
});
