// The cloud part: records of clusters and workloads, and the messages of `clusters`, `workloads`, `sweeper`
// and `cloudviews`, docs/reference.md "Cloud". Tethers have tethers.ts.

import type { TetherRow } from './tethers.ts';

export const WORKLOAD_KINDS = ['Deployment', 'StatefulSet'] as const;
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number];
export const WORKLOAD_STATES = ['awake', 'sleeping', 'asleep', 'waking'] as const;
export type WorkloadState = (typeof WORKLOAD_STATES)[number];

/**
 * How to reach the API server of a cluster: what a kubeconfig was reduced to. A secret: it stays within the
 * cloud's threads and never stands in a message to the front, an error or a log line.
 */
export interface ClusterAccess {
  /** `https://host[:port][/prefix]`, normalised, without a slash at the end. */
  server: string;
  /** PEM; null: the system's roots. */
  ca: string | null;
  tlsServerName: string | null;
  /** `pod`: the service account of the pod this runs in; its token is read again from its file. */
  credential:
    | { kind: 'token'; token: string }
    | { kind: 'certificate'; certificate: string; key: string }
    | { kind: 'pod' };
}

/** A secret sealed with a data key of its own, which the key file's key `kek` wraps. */
export interface SealedSecret {
  kek: string;
  wrapped: Uint8Array;
  data: Uint8Array;
}

/** Times are epoch milliseconds throughout. */
export interface StoredCluster {
  id: string;
  name: string;
  provider: string;
  inCluster: boolean;
  createdAt: number;
  /** null: never synced, so nothing is followed. */
  lastSyncAt: number | null;
  version: string | null;
  capabilities: ClusterCapabilities | null;
  /** The sealed ClusterAccess as JSON; null for the pod's own cluster. */
  access: SealedSecret | null;
}

/** What the account may do in all namespaces, as the cluster itself answers. */
export interface ClusterCapabilities {
  sync: boolean;
  watch: boolean;
  sleep: boolean;
  tether: boolean;
  /** The rights that are missing, such as `patch deployments.apps`. */
  denied: string[];
}

/** The receipt of a sleep, kept in the annotation `berth/sleep` of the workload itself. */
export interface SleepReceipt {
  replicas: number;
  at: number;
  by: SleepCause;
}
export type SleepCause = 'request' | 'idle';

/** What is read of a Deployment or StatefulSet; everything else of the object is dropped at once. */
export interface ObservedWorkload {
  kind: WorkloadKind;
  namespace: string;
  name: string;
  uid: string;
  /** metadata.resourceVersion: opaque, but of two numbers the larger is the newer. */
  version: string;
  /** spec.replicas; 1 when the object has none. */
  replicas: number;
  /** status.replicas: pods there are, also those that are ending. */
  pods: number;
  ready: number;
  /** The status is of this version of the spec; until then `pods` and `ready` are those of the one before. */
  observed: boolean;
  /**
   * The label selector of its pods as the API takes it, such as `app=web,tier in (a,b)`; '' when there is
   * none.
   */
  selector: string;
  receipt: SleepReceipt | null;
  /**
   * Who wrote spec.replicas last (managedFields), and which tool keeps the object as it is (labels), where
   * known.
   */
  scaledBy: string | null;
  keeper: string | null;
}

export interface StoredWorkload {
  id: string;
  clusterId: string;
  seen: ObservedWorkload;
  state: WorkloadState;
  sleepReason: string | null;
  /** Saved by a sleep; never 0. */
  desiredReplicas: number | null;
  autoSleep: boolean;
  idleMinutes: number;
  /** When auto-sleep was switched on. */
  autoSleepSince: number | null;
  lastActivityAt: number | null;
  /**
   * When a connection last moved a byte, as the tethers tell it; none has where it is null or, in older
   * records, not there.
   */
  lastByteAt?: number | null;
  /** When it last began to run: idleness is counted from then at the earliest. */
  awakeSince: number;
  /** The receipt on it is of a sleep that is over; older records do not have it. */
  isReceiptSpent?: boolean;
  /**
   * How often something else has soon undone a sleep of auto-sleep, in a row; from 2 on the sweeper leaves it
   * alone.
   */
  undone: number;
  /** Not in the cluster at the last look: kept for its settings only, in no list. */
  gone: boolean;
}

export interface AutoSleepSettings {
  auto_sleep_enabled: boolean;
  idle_timeout_minutes: number;
}

/** The settings as clients read them. */
export const autoSleepSettings = ({
  autoSleep,
  idleMinutes,
}: Pick<StoredWorkload, 'autoSleep' | 'idleMinutes'>): AutoSleepSettings => ({
  auto_sleep_enabled: autoSleep,
  idle_timeout_minutes: idleMinutes,
});

/** A registration as it came in, shapes checked. */
export interface ClusterInput {
  name: string;
  provider: string;
  /** Raw or strict base64; null when `inCluster`. */
  kubeconfig: string | null;
  inCluster: boolean;
}

/**
 * Owns which clusters are registered. Asks workloads and tethers. At its start it tells the views every
 * cluster.
 */
export interface ClustersProtocol {
  /** Makes no connection. Fails invalid_spec, name_in_use, storage_full. */
  register(message: { input: ClusterInput }): { id: string; name: string };
  /**
   * Closes its tethers and forgets it with its workloads' records; the workloads themselves are left alone.
   */
  remove(message: { id: string }): { removed: true; id: string };
  /** Fails unknown_cluster, cluster_unreachable, cluster_denied. */
  sync(message: { id: string }): { synced: number };
  /** Once it is answered, what the actors of this thread told the views at their start has arrived. */
  viewsReady(message: Record<string, never>): null;
  /** From workloads: what a look at the cluster has shown. */
  updateFacts(message: ClusterFacts & { id: string }): null;
}

export interface ClusterFacts {
  /** null: not tried since the start. */
  reachable: boolean | null;
  version?: string;
  capabilities?: ClusterCapabilities;
  lastSyncAt?: number;
}

/** What a tether needs to carry a connection: where the pods are, and how to get there. */
export interface ForwardTarget {
  clusterId: string;
  access: ClusterAccess;
  workload: { id: string; kind: WorkloadKind; namespace: string; name: string; selector: string };
  state: WorkloadState;
  replicas: number;
}

/**
 * Owns the rows of all workloads and the connections to the clusters' API servers. At its start it tells the
 * views every workload of the store and follows every cluster that was synced before.
 */
export interface WorkloadsProtocol {
  /**
   * Lists both kinds of a cluster anew, then watches them. Two at a time are one. Fails as clusters.sync
   * does.
   */
  sync(message: { clusterId: string }): { synced: number };
  /** The cluster is no longer registered: lets go of it and drops its rows. */
  detach(message: { clusterId: string }): null;
  /** A cluster that was detached could not be removed: it may be used again. */
  attach(message: { clusterId: string }): null;
  /**
   * Fails unknown_workload, sleep_refused, cluster_unreachable, cluster_denied. `idle`: only if it still is
   * idle.
   */
  sleep(message: { id: string; by: SleepCause }): { replicas: number; slept: boolean };
  /**
   * Single-flight per workload. `waitMs` null: answers when the cluster has taken the change; else when a pod
   * is Ready, or ready_timeout.
   */
  wake(message: { id: string; waitMs: number | null }): { replicas: number };
  autoSleep(message: { id: string; enabled: boolean | null; minutes: number | null }): AutoSleepSettings;
  /** Workloads that auto-sleep should put to sleep now. */
  idle(message: Record<string, never>): { ids: string[] };
  /** The cluster of a workload. Fails unknown_workload (also when it is gone from the cluster). */
  clusterOf(message: { id: string }): { clusterId: string };
  /** From tethers. Fails unknown_workload (also when it is gone from the cluster). Makes no connection. */
  forwardTarget(message: { id: string }): ForwardTarget;
  /** From tethers, for each new connection, before its first byte is carried. */
  activity(message: { id: string; at: number }): null;
  /**
   * From tethers, at least every 15 s while connections move bytes, and at once when the last one closes.
   * Epoch milliseconds.
   */
  traffic(message: { id: string; lastByteAt: number }): null;
}

/** Puts idle workloads to sleep, every sweep_interval_ms. */
export interface SweeperProtocol {
  /** Sweeps now; the interval goes on as it was. */
  sweep(message: Record<string, never>): { slept: string[]; left: { id: string; reason: string }[] };
}

/** A cluster as clients may see it: without its secret. */
export interface ClusterRow extends Omit<StoredCluster, 'access'> {
  /** Whether the last call reached it; null: none was made since the start. */
  reachable: boolean | null;
}
/** What clients may see of a workload. */
export interface WorkloadRow
  extends Pick<StoredWorkload, 'id' | 'clusterId' | 'state' | 'sleepReason' | 'desiredReplicas'>,
    Pick<StoredWorkload, 'autoSleep' | 'idleMinutes' | 'lastActivityAt'>,
    Pick<ObservedWorkload, 'kind' | 'namespace' | 'name' | 'replicas' | 'ready'> {}

/** The front's copies of the cloud's rows: it answers all reads from them. */
export interface CloudViewsProtocol {
  /** The cloud part cannot be used (a wrong key file): every request under /k8s is answered with this. */
  unavailable(message: { reason: string; hint: string }): null;
  /** `all`: these are all there are. */
  clusters(message: { rows: ClusterRow[]; all: boolean }): null;
  /** The cluster and every workload of it are forgotten. */
  clusterRemoved(message: { id: string }): null;
  workloads(message: { rows: WorkloadRow[] }): null;
  workloadsRemoved(message: { ids: string[] }): null;
  /** Every workload that is not among these is forgotten (sent at boot). */
  workloadsRetained(message: { ids: string[] }): null;
  /** `all`: these are all there are. */
  tethers(message: { rows: TetherRow[]; all: boolean }): null;
  tethersRemoved(message: { ids: string[] }): null;
}
