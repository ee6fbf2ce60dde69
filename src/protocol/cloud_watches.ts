// What is known of the watches of a cluster, beside its workloads.
import type { WorkloadKind } from './workload_kinds.ts';

/** What is listed and watched on its own: the workloads of a kind in a namespace, or (null) in all. */
export interface WorkloadScope {
  kind: WorkloadKind;
  namespace: string | null;
}

/** How far the stored records of a scope follow their cluster: a watch goes on from there. */
export interface WatchPosition extends WorkloadScope {
  clusterId: string;
  /** Marks the API server that `version` is of: another one is listed anew. */
  origin: string;
  /** The resourceVersion of the last change, or of the listing. */
  version: string;
  /** When that was known; epoch milliseconds. */
  at: number;
}

/** The key of a scope among those of its cluster. */
export const scopeKey = ({ kind, namespace }: WorkloadScope): string => `${kind}/${namespace ?? ''}`;
