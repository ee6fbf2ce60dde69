// Services as lists show them: by stack or group, filtered by a search.
import type { Agent, Service } from '../client/records.ts';
import { isHook } from '../protocol/hooks.ts';
import { compareNames } from './format.ts';

/** A stack, a group, or the services that belong to neither. */
export interface Section {
  key: string;
  title: string;
  /** The group that consists of exactly its services, apart from hooks; null: none, and for agents. */
  group: string | null;
  services: readonly Service[];
}

/** The group of all agents. The file that checks names loads what browsers lack. */
const AGENTS = 'Agents';

/** Whether a service is an agent. */
export const isOfAgents = ({ group }: Pick<Service, 'group'>): boolean => group === AGENTS;

/** Whether a service is a hook of a stack, which only the stack starts. */
export const isStackHook = ({ service }: Pick<Service, 'service'>): boolean => isHook(service);

/** Whether actions on many apply to a service: not to agents, which may work, nor to hooks. */
export const takesBulkActions = (service: Pick<Service, 'group' | 'service'>): boolean =>
  !isOfAgents(service) && !isStackHook(service);

/** The words of a search, in lower case. */
export const wordsOfSearch = (search: string): string[] => search.toLowerCase().split(/\s+/).filter(Boolean);

/** Whether the listed fields of a service contain every word of the search. */
function isWanted(service: Service, state: string, words: readonly string[]): boolean {
  const { name, group, stack, status, port } = service;
  const text = [name, group, stack, status, state, port].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

const sectionTitle = ({ stack, group }: Service): string => {
  if (group === AGENTS) return stack === null ? AGENTS : `${stack} agents`;
  return stack ?? group ?? '';
};

/** The group that consists of exactly `members`. `sizes`: how many services are in each group. */
function wholeGroup(members: readonly Service[], sizes: ReadonlyMap<string | null, number>): string | null {
  const [{ group } = { group: null }] = members;
  if (group === null || group === AGENTS || sizes.get(group) !== members.length) return null;
  return members.every((one) => one.group === group) ? group : null;
}

/** The sections of the `services`, whose states `stateIn` returns, that match every word. Agents are last. */
export function sectionsOf(
  services: readonly Service[],
  words: readonly string[],
  stateIn: (service: Service) => string,
): Section[] {
  const found = new Map<string, Service[]>();
  const sizes = new Map<string | null, number>();
  for (const service of services) {
    sizes.set(service.group, (sizes.get(service.group) ?? 0) + 1);
    if (words.length > 0 && !isWanted(service, stateIn(service), words)) continue;
    const key = `${isOfAgents(service) ? 1 : 0}${sectionTitle(service)}`;
    const members = found.get(key);
    if (members) members.push(service);
    else found.set(key, [service]);
  }
  return [...found]
    .sort(([one], [other]) => compareNames(one, other))
    .map(([key, members]) => {
      const own = members.filter((one) => !isStackHook(one));
      const title = key.slice(1) || 'Without a group';
      return { key, title, group: wholeGroup(own, sizes), services: members };
    });
}

/** Whether a section is a stack or a group, not the services that belong to neither. */
export const isNamed = ({ key }: Pick<Section, 'key'>): boolean => key.length > 1;

/** How many services are in each status; agents are counted separately, except for crashed ones. */
export function statusCountsOf(services: readonly Service[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const service of services)
    if (!isOfAgents(service) || service.status === 'crashed')
      counts.set(service.status, (counts.get(service.status) ?? 0) + 1);
  return counts;
}

/** How many need attention: services that have crashed, and agents that wait for an answer. */
export const attentionOf = (
  services: readonly Service[],
  agents: readonly Agent[],
): { services: number; agents: number } => ({
  services: services.filter((one) => one.status === 'crashed' && !isOfAgents(one)).length,
  agents: agents.filter(({ state }) => state === 'blocked').length,
});

/** The name as lists show it: short within its stack. */
export const listedName = ({ name, service, stack }: Service): string =>
  stack !== null && service !== null && name !== service ? service : name;
