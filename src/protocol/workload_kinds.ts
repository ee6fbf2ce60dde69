// The kinds of workloads that Berth puts to sleep, and their states: docs/reference.md "Workloads".

export const WORKLOAD_KINDS = ['Deployment', 'StatefulSet'] as const;
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number];
export const WORKLOAD_STATES = ['awake', 'sleeping', 'asleep', 'waking'] as const;
export type WorkloadState = (typeof WORKLOAD_STATES)[number];
