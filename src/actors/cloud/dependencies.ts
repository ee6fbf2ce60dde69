// What workloads depend on, by their annotations: pure. docs/reference.md "Wake order".
import type { StoredWorkload } from '../../protocol/cloud.ts';
import type { WakeOrder } from '../../protocol/policies.ts';
import { WORKLOAD_KINDS } from '../../protocol/workload_kinds.ts';
import { WAKE_ORDER } from '../../settings/cloud_limits.ts';
import { workloadId } from './workload_record.ts';

type Row = StoredWorkload;
type Lookup = (id: string) => Row | undefined;

export const dependencyNames = (row: Row): readonly string[] => row.seen.sleep?.after ?? [];

/** Identifies what `name` may mean in the namespace of a workload. */
export const dependencyKey = ({ clusterId, seen }: Row, name: string): string =>
  `${clusterId}/${seen.namespace}/${name}`;

/** The workloads in its namespace that match `name`, which may be `kind/name`. */
function named({ clusterId, seen: { namespace } }: Row, text: string, get: Lookup): Row[] {
  const [name = '', kind] = text.split('/').reverse();
  return WORKLOAD_KINDS.filter(
    (one) => kind === undefined || one.toLowerCase() === kind.toLowerCase(),
  ).flatMap((one) => get(workloadId(clusterId, { kind: one, namespace, name })) ?? []);
}

/** The workloads that it depends on. */
export const dependenciesOf = (row: Row, get: Lookup): Row[] => [
  ...new Set(dependencyNames(row).flatMap((name) => named(row, name, get))),
];

/** The names of a cycle through `row`; null: there is none, or it is too long. */
function cycleOf(row: Row, get: Lookup): string[] | null {
  const seen = new Set<string>();
  const search = (from: Row, way: readonly string[]): string[] | null => {
    for (const next of dependenciesOf(from, get)) {
      if (next.id === row.id) return [...way, row.seen.name];
      if (seen.has(next.id) || seen.size >= WAKE_ORDER.maxLooked) continue;
      seen.add(next.id);
      const found = search(next, [...way, next.seen.name]);
      if (found) return found;
    }
    return null;
  };
  return search(row, [row.seen.name]);
}

/** The dependencies of a workload and their faults; null if it has none. */
export function wakeOrderOf(row: Row, get: Lookup): WakeOrder | null {
  const names = dependencyNames(row);
  if (names.length === 0) return null;
  const unknown = names.filter((name) => named(row, name, get).length === 0);
  const cycle = cycleOf(row, get);
  return {
    workloads: names,
    faults: [
      ...unknown.map((name) => `there is no workload ${name} in its namespace`),
      ...(cycle ? [`it comes after itself: ${cycle.join(', ')}`] : []),
    ],
  };
}
