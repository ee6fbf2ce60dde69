// The rows of the list: sections of services and agents as on the page, then workloads by namespace.
import type { Agent, Service, Workload } from '../../client/records.ts';
import { compareNames } from '../../presentation/format.ts';
import { isOfAgents, sectionsOf, wordsOfSearch } from '../../presentation/sections.ts';
import { stateOf, type Tone, toneOf } from '../../presentation/state_tone.ts';
import type { Model, Order, Target, UiRow } from './model.ts';

/** The fields of the model that determine the rows. */
type RowsInput = Pick<Model, 'services' | 'agents' | 'workloads' | 'usages' | 'filter' | 'order' | 'folded'>;

type ServiceRow = Extract<UiRow, { kind: 'service' }>;

/** The sort order of tones: services that need the user's attention come first. */
const URGENCY: Readonly<Record<Tone, number>> = { bad: 0, busy: 1, good: 2, calm: 3, rest: 4 };
const urgencyOf = ({ service, agent }: ServiceRow): number => URGENCY[toneOf(stateOf(service, agent))];

/** When an agent began to wait for an answer; Infinity if it does not. Those that wait longest come first. */
const waitOf = ({ agent }: ServiceRow): number =>
  agent?.state === 'blocked' ? Date.parse(agent.stateSince ?? '') || 0 : Number.POSITIVE_INFINITY;

const used = ({ service }: ServiceRow, { usages }: RowsInput) => usages.get(service.name);

/** Compares two rows by each order; for 0, their names decide. */
const COMPARISONS: Readonly<Record<Order, (one: ServiceRow, other: ServiceRow, input: RowsInput) => number>> =
  {
    name: () => 0,
    state: (one, other) => urgencyOf(one) - urgencyOf(other),
    cpu: (one, other, input) => (used(other, input)?.cpu ?? -1) - (used(one, input)?.cpu ?? -1),
    memory: (one, other, input) => (used(other, input)?.rssMB ?? -1) - (used(one, input)?.rssMB ?? -1),
  };

/** Orders the rows of a section. */
function compareRows(one: ServiceRow, other: ServiceRow, input: RowsInput): number {
  const [wait, otherWait] = [waitOf(one), waitOf(other)];
  if (wait !== otherWait) return wait - otherWait;
  return COMPARISONS[input.order](one, other, input) || compareNames(one.service.name, other.service.name);
}

/** The states that count as up in the note of a section. */
const UP: ReadonlySet<string> = new Set(['running', 'completed']);

/** Whether the members of a section are hidden. A filter shows all its matches. */
const isHidden = (key: string, { filter, folded }: Pick<RowsInput, 'filter' | 'folded'>): boolean =>
  filter === '' && folded.has(key);

function serviceRows(input: RowsInput): UiRow[] {
  const { services, agents, filter } = input;
  const agentByName = new Map(agents.map((agent) => [agent.name, agent]));
  const agentOf = ({ name }: Service): Agent | null => agentByName.get(name) ?? null;
  const stateIn = (service: Service): string => stateOf(service, agentOf(service));
  const sections = sectionsOf(services ?? [], wordsOfSearch(filter), stateIn);
  return sections.flatMap(({ key, title, group, services: all }) => {
    const rows = all
      .map((service): ServiceRow => {
        const agent = agentOf(service);
        return { kind: 'service', key: `service ${service.name}`, service, agent };
      })
      .sort((one, other) => compareRows(one, other, input));
    const isFolded = isHidden(key, input);
    const up = all.filter(({ status }) => UP.has(status)).length;
    const stacks = new Set(all.map(({ stack }) => stack));
    const [stack = null] = stacks.size === 1 ? stacks : [];
    const members = { names: rows.map(({ service: { name } }) => name), group, stack };
    const note = `${up} of ${all.length} up`;
    const head: UiRow = { kind: 'head', key, title, note, isFolded, members };
    return isFolded ? [head] : [head, ...rows];
  });
}

function workloadRows({ workloads, filter, folded }: RowsInput): UiRow[] {
  const words = wordsOfSearch(filter);
  const sections = new Map<string, Workload[]>();
  for (const workload of workloads) {
    const { name, namespace, state } = workload;
    const text = [name, namespace, state].join(' ').toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    sections.set(namespace, [...(sections.get(namespace) ?? []), workload]);
  }
  return [...sections]
    .sort(([one], [other]) => compareNames(one, other))
    .flatMap(([namespace, members]) => {
      const key = `namespace ${namespace}`;
      const awake = members.filter(({ state }) => state === 'awake').length;
      const head = {
        kind: 'head' as const,
        key,
        title: `${namespace} workloads`,
        note: `${awake} of ${members.length} awake`,
        isFolded: isHidden(key, { filter, folded }),
        members: { names: [], group: null, stack: null },
      };
      const rows = [...members]
        .sort((one, other) => compareNames(one.name, other.name))
        .map((workload): UiRow => ({ kind: 'workload', key: `workload ${workload.id}`, workload }));
      return head.isFolded ? [head] : [head, ...rows];
    });
}

/** The rows of a model. */
export const listRowsOf = (model: RowsInput): UiRow[] => [...serviceRows(model), ...workloadRows(model)];

/** Whether a row needs the user's attention: its service has crashed, or its agent is blocked. */
export const needsAttention = (row: UiRow): boolean =>
  row.kind === 'service' && (row.service.status === 'crashed' || row.agent?.state === 'blocked');

/** The target of a row's actions; null if it has none. */
export function targetOf(row: UiRow | undefined): Target | null {
  if (!row) return null;
  if (row.kind === 'service') {
    const { name, status } = row.service;
    const isAsleep = row.agent ? row.agent.state === 'asleep' : status === 'sleeping';
    return { kind: isOfAgents(row.service) ? 'agent' : 'service', name, label: name, isAsleep };
  }
  if (row.kind === 'workload') {
    const { id, name, namespace, state } = row.workload;
    return { kind: 'workload', name: id, label: `${namespace}/${name}`, isAsleep: state === 'asleep' };
  }
  const { group } = row.members;
  if (group === null) return null;
  return { kind: 'group', name: group, label: `all of ${row.title}`, isAsleep: false };
}
