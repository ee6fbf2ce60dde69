// The records of workloads in memory, found by id, or by cluster and kind at the cost of those rows only.
import type { StoredWorkload, WorkloadRow } from '../../protocol/cloud.ts';
import { WORKLOAD_KINDS, type WorkloadKind } from '../../protocol/workload_kinds.ts';

export interface TableEntry {
  row: StoredWorkload;
  /** As shown to clients; null: it is not shown. */
  shown: WorkloadRow | null;
  /** When it was last observed (monotonic milliseconds). */
  observedAt: number;
}

const kindKey = (clusterId: string, kind: WorkloadKind): string => `${clusterId}/${kind}`;

export class WorkloadEntries {
  private readonly byId = new Map<string, TableEntry>();
  /** The same entries by cluster and kind, then by id. */
  private readonly byKind = new Map<string, Map<string, TableEntry>>();

  get(id: string): TableEntry | undefined {
    return this.byId.get(id);
  }

  /** The records of the workloads that are in their clusters. */
  rows(): StoredWorkload[] {
    const found: StoredWorkload[] = [];
    for (const { row } of this.byId.values()) if (!row.gone) found.push(row);
    return found;
  }

  /** The number of entries of a kind in a cluster. */
  countOf(clusterId: string, kind: WorkloadKind): number {
    return this.byKind.get(kindKey(clusterId, kind))?.size ?? 0;
  }

  /** The current entries of a kind in a cluster, as a copy: the caller may add and remove entries. */
  ofKind(clusterId: string, kind: WorkloadKind): TableEntry[] {
    return [...(this.byKind.get(kindKey(clusterId, kind))?.values() ?? [])];
  }

  /** The current entries of a cluster, also as a copy. */
  ofCluster(clusterId: string): TableEntry[] {
    return WORKLOAD_KINDS.flatMap((kind) => this.ofKind(clusterId, kind));
  }

  /** Adds an entry, or replaces the one with the same id. */
  set(entry: TableEntry): void {
    const { id, clusterId, seen } = entry.row;
    const key = kindKey(clusterId, seen.kind);
    const ofKind = this.byKind.get(key) ?? new Map<string, TableEntry>();
    this.byKind.set(key, ofKind);
    ofKind.set(id, entry);
    this.byId.set(id, entry);
  }

  delete({ id, clusterId, seen }: StoredWorkload): void {
    const key = kindKey(clusterId, seen.kind);
    const ofKind = this.byKind.get(key);
    ofKind?.delete(id);
    if (ofKind?.size === 0) this.byKind.delete(key);
    this.byId.delete(id);
  }
}
