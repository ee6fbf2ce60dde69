// What is known about the watches of a cluster.
import type { WorkloadKind } from './workload_kinds.ts';

/** A unit of listing and watching: the workloads of one kind in a namespace, or (null) in all. */
export interface WorkloadScope {
  kind: WorkloadKind;
  namespace: string | null;
}

/** Up to which version the stored records of a scope follow the cluster; a watch resumes from there. */
export interface WatchPosition extends WorkloadScope {
  clusterId: string;
  /** Identifies the API server that `version` belongs to. For any other, the scope is listed anew. */
  origin: string;
  /** The resourceVersion of the last change, or of the listing. */
  version: string;
  /** When `version` was current; epoch milliseconds. */
  at: number;
}

/** The key of a scope within its cluster. */
export const scopeKey = ({ kind, namespace }: WorkloadScope): string => `${kind}/${namespace ?? ''}`;
