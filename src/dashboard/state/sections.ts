// What the list at the left shows: services by section, and workloads, only those that match the search.
import { computed } from '@preact/signals';
import type { Service } from '../../client/browser.ts';
import { isOfAgents, type Section, sectionsOf, statusCountsOf } from '../../presentation/sections.ts';
import { serviceByName, serviceList, shownState } from './daemon.ts';
import { searchWords } from './place.ts';
import { type WorkloadTreeRow, workloadTreeRows } from './workload_tree.ts';

/** A row of the list: the head of a section, a service, or a row of workloads. */
export type ListRow =
  | WorkloadTreeRow
  | { key: string; kind: 'head'; section: Section }
  | { key: string; kind: 'service'; service: Service };

/** The sections with the services that match the search, agents last. */
export const sections = computed((): readonly Section[] =>
  sectionsOf(serviceList.value ?? [], searchWords.value, shownState),
);

/** The rows of the list. */
export const listRows = computed((): readonly ListRow[] => [
  ...sections.value.flatMap((section): ListRow[] => [
    { key: `head ${section.key}`, kind: 'head', section },
    ...section.services.map((service): ListRow => ({ key: service.name, kind: 'service', service })),
  ]),
  ...workloadTreeRows.value,
]);

/** How many services have each status; agents are counted separately. */
export const statusCounts = computed(() => statusCountsOf(serviceList.value ?? []));

/** Whether `name` is an agent. */
export const isAgent = (name: string): boolean => {
  const service = serviceByName.value.get(name);
  return service !== undefined && isOfAgents(service);
};
