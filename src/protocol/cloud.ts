// The cloud part: records of clusters and workloads, and the messages of `clusters`, `workloads`, `sweeper`
// and `cloudviews`, docs/reference.md "Cloud". Tethers have tethers.ts.

import type { ReviewedRight, ServiceAccountName, TokenRenewal } from './cluster_account.ts';
import type { Within } from './grants.ts';
import type { LabelText } from './labels.ts';
import type {
  GovernedWorkloadsProtocol,
  SleepAnnotations,
  SwitchRecord,
  WakeOrder,
  WorkloadPolicy,
  WorkloadSubject,
} from './policies.ts';
import type { SleepCause, SleepReceipt, WakeCause, WakeReceipt, WorkloadActivity } from './receipts.ts';
import type { PodRequests, SavingsProtocol, SleepSpan } from './savings.ts';
import type { WorkloadKind, WorkloadState } from './workload_kinds.ts';

/**
 * The access to a cluster's API server, reduced from a kubeconfig. A secret: it stays within the cloud's
 * threads and must not appear in a message to the front, an error or a log line.
 */
export interface ClusterAccess {
  /** `https://host[:port][/prefix]`, normalised, without a trailing slash. */
  server: string;
  /** PEM; null: the system's roots. */
  ca: string | null;
  tlsServerName: string | null;
  /** `pod`: the service account of this process's own pod; its token file is reread regularly. */
  /** The namespace of the context. Absent in older records. */
  namespace?: string | null;
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
  /** null: never synced, so not watched. */
  lastSyncAt: number | null;
  version: string | null;
  capabilities: ClusterCapabilities | null;
  /** The sealed ClusterAccess as JSON; null for the pod's own cluster. */
  access: SealedSecret | null;
  /** Where an account without rights on all namespaces may have some. Absent in older records. */
  namespaces?: string[];
  /** What the last sync could list. Absent in older records and before the first sync. */
  scope?: ClusterScope[];
  /** When the certificate or token ends; null: not known. Absent in older records. */
  credentialEndsAt?: number | null;
  /** How its token is renewed; null: it is not. Absent in older records. */
  renewal?: TokenRenewal | null;
}

/** Of one kind of workload, the namespaces that are listed and watched; null: all. */
export interface ClusterScope {
  kind: WorkloadKind;
  namespaces: string[] | null;
}

/** The rights of the account in all namespaces that are listed, as reported by the cluster. */
export interface ClusterCapabilities {
  sync: boolean;
  watch: boolean;
  sleep: boolean;
  tether: boolean;
  /** The missing rights, such as `patch deployments.apps` or `patch deployments.apps in namespace web`. */
  denied: string[];
}

/** The part of a Deployment or StatefulSet that is kept; the rest of the object is dropped at once. */
export interface ObservedWorkload {
  kind: WorkloadKind;
  namespace: string;
  name: string;
  uid: string;
  /** metadata.generation: grows with every change of the spec. */
  generation: number;
  /** metadata.resourceVersion: opaque, except that the larger of two numbers is the newer version. */
  version: string;
  /** spec.replicas; 1 when the object has none. */
  replicas: number;
  /** status.replicas: existing pods, terminating ones included. */
  pods: number;
  ready: number;
  /**
   * The status belongs to this version of the spec; otherwise `pods` and `ready` belong to the previous one.
   */
  observed: boolean;
  /** Its own labels. */
  labels: LabelText;
  /** The label selector of its pods in API syntax, such as `app=web,tier in (a,b)`; '' when there is none. */
  selector: string;
  /** Its current ReplicaSet, if the status names it. */
  replicaSet: string | null;
  /** What one of its pods requests. */
  requests: PodRequests;
  receipt: SleepReceipt | null;
  wakeReceipt: WakeReceipt | null;
  activity: WorkloadActivity | null;
  /** What its own annotations say of its sleep; null: nothing. */
  sleep: SleepAnnotations | null;
  /**
   * The last writer of spec.replicas (managedFields), and the tool that manages the object (labels), if
   * known.
   */
  scaledBy: string | null;
  keeper: string | null;
}

/** A tool that gives a workload its replicas, beside Berth. */
export interface WorkloadManager {
  /** Its name, such as `Argo CD` or `HorizontalPodAutoscaler web`. */
  tool: string;
  /** The settings with which it leaves a sleep alone, as an order to whoever has it. */
  settings: string;
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
  /** When a connection was last opened through a tether, for people. */
  lastActivityAt: number | null;
  /** When it was last used, by what counts as use: idleness begins there. Steady time (steady_clock.ts). */
  usedAt: number;
  /** When it last went to 0 replicas or came back. Steady time. */
  scaledAt: number;
  /** The largest count of replicas that was seen of it. */
  maxReplicas: number;
  /** The receipt belongs to a sleep that is over. */
  isReceiptSpent: boolean;
  /**
   * Consecutive sleeps of auto-sleep that something else soon undid; from 2 on the sweeper skips the
   * workload. One by a tool that is known to do it counts as 2.
   */
  undone: number;
  /** The names of its HorizontalPodAutoscalers when a sleep was last undone; absent: none was. */
  autoscalers?: readonly string[];
  /** The sleep that its savings are counted of; null: it does not sleep by Berth. */
  span: SleepSpan | null;
  /** The last switch by its schedule; null: there was none. */
  switched: SwitchRecord | null;
  /** Absent from the cluster in the last listing: kept only for its settings, and not listed. */
  gone: boolean;
}

export interface AutoSleepReply {
  auto_sleep_enabled: boolean;
  idle_timeout_minutes: number;
}

/** The settings as clients see them. */
export const autoSleepSettings = ({
  autoSleep,
  idleMinutes,
}: Pick<StoredWorkload, 'autoSleep' | 'idleMinutes'>): AutoSleepReply => ({
  auto_sleep_enabled: autoSleep,
  idle_timeout_minutes: idleMinutes,
});

/** A registration with its shape checked. */
export interface ClusterInput {
  name: string;
  provider: string;
  /** Raw or strict base64; null when `inCluster`. */
  kubeconfig: string | null;
  inCluster: boolean;
  namespaces: string[];
  /** Its token is renewed before it ends. */
  renewToken: boolean;
}

/** A change of a cluster; null for what stays. */
export interface ClusterChange {
  name: string | null;
  provider: string | null;
  kubeconfig: string | null;
  namespaces: string[] | null;
  /** Of the token in `kubeconfig`, as in `ClusterInput`. */
  renewToken: boolean;
}

/**
 * Owns the registered clusters. Asks workloads and tethers. At its start it sends every cluster to the views.
 */
export interface ClustersProtocol {
  /**
   * Does not connect. `id`: of the cluster to be; one that has it is this one, registered before. Fails
   * invalid_spec, name_in_use, storage_full.
   */
  register(message: { input: ClusterInput; id?: string }): { id: string; name: string };
  /**
   * Changes its record; new credentials are used from the next call on. Fails unknown_cluster, invalid_spec,
   * name_in_use, storage_full.
   */
  change(message: { id: string; change: ClusterChange }): { id: string; name: string };
  /**
   * Closes its tethers and deletes it with its workloads' records; the workloads themselves are left alone.
   */
  remove(message: { id: string }): { removed: true; id: string };
  /** Fails unknown_cluster, cluster_unreachable, cluster_denied. */
  sync(message: { id: string }): { synced: number };
  /** What the account may do of what Berth uses, wherever the cluster is listed. Fails as `sync`. */
  rights(message: { id: string }): ReviewedRight[];
  /** A reply implies that the initial rows of this thread's actors have reached the views. */
  viewsReady(message: Record<string, never>): null;
  /** From workloads: facts from the latest contact with the cluster. */
  updateFacts(message: ClusterFacts & { id: string }): null;
}

export interface ClusterFacts {
  /** null: not contacted since the start. */
  reachable: boolean | null;
  version?: string;
  capabilities?: ClusterCapabilities;
  lastSyncAt?: number;
  /** Whether the cluster accepts the account. */
  authenticated?: boolean;
  scope?: ClusterScope[];
  credentialEndsAt?: number | null;
}

/** What a tether needs to carry a connection: the location of the pods, and the access to them. */
export interface TetherTarget {
  clusterId: string;
  access: ClusterAccess;
  workload: Pick<ObservedWorkload, 'kind' | 'namespace' | 'name' | 'selector'> &
    Partial<Pick<ObservedWorkload, 'replicaSet'>> & { id: string };
  state: WorkloadState;
  replicas: number;
}

/** Workloads by what they are; null: anything. */
export interface WorkloadSelection extends Within {
  clusterId: string | null;
  namespaces: readonly string[] | null;
  states: readonly WorkloadState[] | null;
  /** A label selector. */
  selector: string | null;
}

/** A sleep or wake of many workloads. */
export interface BulkChange extends WorkloadSelection {
  /** The id of the operation; each workload is changed once for it. */
  operation?: string;
  to: 'asleep' | 'awake';
  /** Of a sleep: for so long connections do not wake them. */
  holdMs: number | null;
  /** Nothing is changed. */
  isDryRun: boolean;
}

export const BULK_OUTCOMES = ['changed', 'unchanged', 'would_change', 'failed'] as const;

/** What became of one workload. */
export interface BulkResult extends Pick<ObservedWorkload, 'kind' | 'namespace' | 'name'> {
  id: string;
  clusterId: string;
  outcome: (typeof BULK_OUTCOMES)[number];
  /** Afterwards; null: the change failed. */
  replicas: number | null;
  /** Of what failed. */
  code: string | null;
  message: string | null;
}

/**
 * Owns the rows of all workloads and the connections to the clusters' API servers. At its start it sends
 * every stored workload to the views and watches every cluster that was synced before.
 */
export interface WorkloadsProtocol extends GovernedWorkloadsProtocol, SavingsProtocol {
  /**
   * Lists both kinds of a cluster again, then watches them. Concurrent calls share one sync. Fails as
   * clusters.sync does.
   */
  sync(message: { clusterId: string }): { synced: number };
  /** The rights in `namespaces`: null, in all; none, where its first sync looks. Fails as `sync`. */
  rights(message: { clusterId: string; namespaces: readonly string[] | null }): ReviewedRight[];
  /** A new token of a ServiceAccount, a secret, by its present token. Fails as `sync`. */
  requestToken(message: { clusterId: string; account: ServiceAccountName; lifetimeS: number }): {
    token: string;
  };
  /** The cluster is no longer registered: closes its connections and drops its rows. */
  detach(message: { clusterId: string }): null;
  /** The record of the cluster has changed: connects anew, with the records of its workloads kept. */
  renew(message: { clusterId: string }): null;
  /** A detached cluster could not be removed: it may be used again. */
  attach(message: { clusterId: string }): null;
  /**
   * Fails unknown_workload, sleep_refused, workload_conflict, cluster_unreachable, cluster_denied. `idle`:
   * only if it is still idle; `schedule`: only if its schedule still wants it. `holdMs`: for so long
   * connections do not wake it. `policy`: who has decided.
   */
  sleep(message: {
    id: string;
    by: SleepCause;
    holdMs: number | null;
    operation?: string;
    policy?: string;
  }): {
    replicas: number;
    slept: boolean;
  };
  /**
   * Single-flight per workload. `waitMs` null: replies when the cluster has accepted the change. Otherwise
   * replies when a pod is Ready, or fails ready_timeout. A connection is refused (wake_refused) while a sleep
   * by request holds the door. `schedule`: only what a schedule has put to sleep.
   */
  wake(message: { id: string; by: WakeCause; waitMs: number | null; operation?: string; policy?: string }): {
    replicas: number;
  };
  /**
   * What a sleep or wake that was cut off has made of a workload, as the workload itself tells: the count of
   * replicas that it is answered with; null: the operation has not changed it, and will not. Fails as `wake`
   * does.
   */
  outcome(message: { id: string; operation: string }): { replicas: number | null };
  /** Sleeps or wakes all that are selected, each for itself. Fails invalid_spec. */
  changeMany(message: BulkChange): BulkResult[];
  autoSleep(message: { id: string; enabled: boolean | null; minutes: number | null }): AutoSleepReply;
  /**
   * The workloads that auto-sleep should put to sleep now; `policies`: of those that a policy or annotation
   * decides on, which one. Absent: of none.
   */
  idle(message: Record<string, never>): {
    ids: string[];
    policies?: Readonly<Record<string, { who: string; subject: WorkloadSubject }>>;
  };
  /** The cluster of a workload. Fails unknown_workload, also when the cluster no longer has it. */
  referenceOf(message: { id: string }): { clusterId: string; kind: WorkloadKind; name: string };
  /** From tethers. Fails unknown_workload, also when the cluster no longer has it. Does not connect. */
  tetherTarget(message: { id: string }): TetherTarget;
  /** From tethers: one of the workload `id` has been opened or closed. */
  tetherChanged(message: {
    id: string;
    clusterId: string;
    tetherId: string;
    isOpen: boolean;
    reason: string | null;
  }): null;
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
  /** Sweeps now; the interval is not restarted. */
  sweep(message: Record<string, never>): { slept: string[]; left: { id: string; reason: string }[] };
}

/** A cluster as clients may see it: without its secret. */
export interface ClusterRow extends Omit<StoredCluster, 'access'> {
  /** Whether the last call reached it; null: no call since the start. */
  reachable: boolean | null;
  /** Whether it accepts the account; null: no call since the start. */
  authenticated: boolean | null;
  /** Since when that is so. */
  authenticatedSince: number | null;
  /** Why the last attempt to renew its token has failed; null: it has not. */
  renewalError: string | null;
}
/** A workload as clients see it. */
export interface WorkloadRow
  extends Pick<StoredWorkload, 'id' | 'clusterId' | 'state' | 'sleepReason' | 'desiredReplicas'>,
    Pick<StoredWorkload, 'autoSleep' | 'idleMinutes' | 'lastActivityAt'>,
    Pick<ObservedWorkload, 'kind' | 'namespace' | 'name' | 'labels' | 'replicas' | 'ready'> {
  wakeReason: string | null;
  /** What governs its sleep; null: nothing but its own setting. */
  policy: WorkloadPolicy | null;
  /** What it is woken after; null: nothing. */
  after: WakeOrder | null;
  managers: readonly WorkloadManager[];
  /** From when on changes in the cluster may be missing; null: it is current. */
  staleSince: number | null;
}
