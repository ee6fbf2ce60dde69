// The services as the lists show them: by stack or group, those that a search wants.
import { computed } from '@preact/signals';
import type { Service } from '../../client/browser.ts';
import { serviceByName, serviceList } from './daemon.ts';
import { compareNames } from './format.ts';
import { shownPlace } from './place.ts';

/** A stack, a group, or what belongs to neither. */
export interface Section {
  key: string;
  title: string;
  /** The group that its actions are for; null: there is none. */
  group: string | null;
  services: readonly Service[];
}

/** A row of the list: the head of a section, or a service. */
export type ListRow =
  | { key: string; kind: 'head'; section: Section }
  | { key: string; kind: 'service'; service: Service };

const AGENTS = 'Agents';

/** Whether a service has every word of the search somewhere in what the list shows of it. */
function isWanted(service: Service, words: readonly string[]): boolean {
  const { name, group, stack, status, port } = service;
  const text = [name, group, stack, status, port].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The words of the search. */
export const searchWords = computed(() =>
  (shownPlace.value.query['find'] ?? '').toLowerCase().split(/\s+/).filter(Boolean),
);

const sectionTitle = ({ stack, group }: Service): string => {
  if (group === AGENTS) return stack === null ? AGENTS : `${stack} agents`;
  return stack ?? group ?? '';
};

/** The sections with the services that the search wants, agents last. */
export const sections = computed((): readonly Section[] => {
  const words = searchWords.value;
  const found = new Map<string, Service[]>();
  for (const service of serviceList.value ?? []) {
    if (!isWanted(service, words)) continue;
    const title = sectionTitle(service);
    const key = `${service.group === AGENTS ? 1 : 0}${title}`;
    found.set(key, [...(found.get(key) ?? []), service]);
  }
  return [...found]
    .sort(([one], [other]) => compareNames(one, other))
    .map(([key, members]) => {
      const groups = new Set(members.map(({ group }) => group));
      const [group = null] = groups.size === 1 ? groups : [];
      return { key, title: key.slice(1) || 'Without a group', group, services: members };
    });
});

/** The rows of the list. */
export const listRows = computed((): readonly ListRow[] =>
  sections.value.flatMap((section): ListRow[] => [
    { key: `head ${section.key}`, kind: 'head', section },
    ...section.services.map((service): ListRow => ({ key: service.name, kind: 'service', service })),
  ]),
);

/** How many services are in each status; agents are counted apart. */
export const statusCounts = computed(() => {
  const counts = new Map<string, number>();
  for (const { status, group } of serviceList.value ?? [])
    if (group !== AGENTS || status === 'crashed') counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
});

/** The name as the list shows it: short within its stack. */
export const listedName = ({ name, service, stack }: Service): string =>
  stack !== null && service !== null && name !== service ? service : name;

/** Whether `name` is an agent. */
export const isAgent = (name: string): boolean => serviceByName.value.get(name)?.group === AGENTS;
