// Workloads: docs/reference.md "Workloads". Their records, and the messages of `workloads` and `sweeper`.

import type { ReviewedRight, ServiceAccountName } from './cluster_account.ts';
import type { ClusterAccess } from './clusters.ts';
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
import type { TetherOpener } from './relay.ts';
import type { PodRequests, SavingsProtocol, SleepSpan } from './savings.ts';
import type { TetheredWorkload } from './tethers.ts';
import type { WorkloadKind, WorkloadState } from './workload_kinds.ts';

/** The part of a Deployment or StatefulSet that is kept; the rest of the object is dropped at once. */
export interface ObservedWorkload {
  kind: WorkloadKind;
  namespace: string;
  name: string;
  uid: string;
  /** metadata.creationTimestamp, by the cluster's clock. Epoch milliseconds; null: unknown. */
  createdAt: number | null;
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
   * Whether the status belongs to this version of the spec. If not, `pods` and `ready` describe the previous
   * one.
   */
  observed: boolean;
  /** Its own labels. */
  labels: LabelText;
  /** The label selector of its pods in API syntax, such as `app=web,tier in (a,b)`; '' when there is none. */
  selector: string;
  /** Its current ReplicaSet, if the status names it. */
  replicaSet: string | null;
  /** The resource requests of one of its pods. */
  requests: PodRequests;
  receipt: SleepReceipt | null;
  wakeReceipt: WakeReceipt | null;
  activity: WorkloadActivity | null;
  /** The sleep settings in its own annotations; null if none. */
  sleep: SleepAnnotations | null;
  /**
   * The last writer of spec.replicas (from managedFields), and the tool that manages the object (from that
   * writer's name, or its labels and annotations); null if unknown.
   */
  scaledBy: string | null;
  keeper: string | null;
}

/** A tool other than Berth that sets a workload's replicas. */
export interface WorkloadManager {
  /** Its name, such as `Argo CD` or `HorizontalPodAutoscaler web`. */
  tool: string;
  /** The settings that make it leave a sleeping workload alone, as an instruction to its user. */
  settings: string;
}

export interface StoredWorkload {
  id: string;
  clusterId: string;
  seen: ObservedWorkload;
  state: WorkloadState;
  sleepReason: string | null;
  /** The replica count saved by a sleep; never 0. */
  desiredReplicas: number | null;
  autoSleep: boolean;
  idleMinutes: number;
  /** When a connection was last opened through a tether, to show to people. */
  lastActivityAt: number | null;
  /**
   * When it was last used, by anything that counts as use: the start of its idle time. Steady time
   * (steady_clock.ts).
   */
  usedAt: number;
  /** When it last changed to or from 0 replicas. Steady time. */
  scaledAt: number;
  /** The highest replica count seen. */
  maxReplicas: number;
  /** The receipt belongs to a sleep that has ended. */
  isReceiptSpent: boolean;
  /**
   * The number of consecutive auto-sleeps that something else undid shortly afterwards. From 2 on the sweeper
   * skips the workload. A sleep undone by a tool that is known to do so counts as 2.
   */
  undone: number;
  /** The names of its HorizontalPodAutoscalers when a sleep was last undone; absent: none has been undone. */
  autoscalers?: readonly string[];
  /** The same of its KEDA ScaledObjects, whose autoscalers are not among those. */
  scaledObjects?: readonly string[];
  /** The sleep whose savings are being counted; null: Berth has not put it to sleep. */
  span: SleepSpan | null;
  /** The last switch made by its schedule; null if none. */
  switched: SwitchRecord | null;
  /** Missing from the cluster's last listing: kept only for its settings, and hidden. */
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

/** What a tether needs to carry a connection: where the pods are, and access to them. */
export interface TetherTarget {
  clusterId: string;
  access: ClusterAccess;
  workload: Pick<ObservedWorkload, 'kind' | 'namespace' | 'name' | 'selector'> &
    Partial<Pick<ObservedWorkload, 'replicaSet'>> & { id: string };
  state: WorkloadState;
  replicas: number;
}

/** Selects workloads; null: any. */
export interface WorkloadSelection extends Within {
  clusterId: string | null;
  namespaces: readonly string[] | null;
  states: readonly WorkloadState[] | null;
  /** A label selector. */
  selector: string | null;
}

/** A sleep or wake of many workloads. */
export interface BulkChange extends WorkloadSelection {
  /** The id of the operation. Each workload is changed only once for it. */
  operation?: string;
  /** Who requests it, and from which address, for the audit log. */
  asker?: { readonly who: string; readonly from: string };
  to: 'asleep' | 'awake';
  /** For a sleep: how long connections do not wake the workloads, in milliseconds. */
  holdMs: number | null;
  /** The subject whose quota its wakes count against; absent: no quota applies. */
  subject?: string;
  /** Report only; change nothing. */
  isDryRun: boolean;
}

export const BULK_OUTCOMES = ['changed', 'unchanged', 'would_change', 'failed'] as const;

/** The outcome for one workload. */
export interface BulkResult extends Pick<ObservedWorkload, 'kind' | 'namespace' | 'name'> {
  id: string;
  clusterId: string;
  outcome: (typeof BULK_OUTCOMES)[number];
  /** The replica count afterwards; null: the change failed. */
  replicas: number | null;
  /** The error; null if it succeeded. */
  code: string | null;
  message: string | null;
}

/**
 * Owns the rows of all workloads and the connections to the clusters' API servers. At its start it sends
 * every stored workload to the views and watches every cluster synced before.
 */
export interface WorkloadsProtocol extends GovernedWorkloadsProtocol, SavingsProtocol {
  /**
   * Lists both kinds of workload of a cluster again, then watches them. Concurrent calls share one sync.
   * Fails as clusters.sync does.
   */
  sync(message: { clusterId: string }): { synced: number };
  /**
   * The account's rights in `namespaces`; null: in all of them; empty: where its first sync would look. Fails
   * as `sync`.
   */
  rights(message: { clusterId: string; namespaces: readonly string[] | null }): ReviewedRight[];
  /**
   * Uses the present token to request a new one of a ServiceAccount. The reply is a secret. Fails as `sync`.
   */
  requestToken(message: { clusterId: string; account: ServiceAccountName; lifetimeS: number }): {
    token: string;
  };
  /** The cluster is no longer registered: closes its connections and drops its rows. */
  detach(message: { clusterId: string }): null;
  /** The cluster's record has changed: reconnects, and keeps the records of its workloads. */
  renew(message: { clusterId: string }): null;
  /** Removing a detached cluster has failed: it is in use again. */
  attach(message: { clusterId: string }): null;
  /**
   * Fails unknown_workload, sleep_refused, workload_conflict, cluster_unreachable, cluster_denied. `idle`:
   * only if it is still idle; `schedule`: only if its schedule still wants it. `holdMs`: how long connections
   * do not wake it. `policy`: who decided.
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
   * replies when a pod is Ready, or fails ready_timeout. A wake by a connection is refused (wake_refused)
   * while a requested sleep holds it off. `schedule`: only if a schedule put it to sleep.
   * `subject`: the wake counts against this subject's quota, and may fail quota_exceeded.
   */
  wake(message: {
    id: string;
    by: WakeCause;
    waitMs: number | null;
    operation?: string;
    policy?: string;
    subject?: string;
  }): { replicas: number };
  /**
   * What an interrupted sleep or wake did to a workload, according to the receipt on the workload itself: the
   * replica count to answer with; null: the operation has not changed it, and never will. Fails as `wake`
   * does.
   */
  outcome(message: { id: string; operation: string }): { replicas: number | null };
  /** Waits for a Ready pod of a workload that has been woken. Fails as the wait of `wake` does. */
  untilReady(message: { id: string; waitMs: number }): null;
  /**
   * The server shuts down: every wait for a Ready pod, and every `changeMany` that is not done, fails
   * daemon_busy, now and later. Changes under way finish.
   */
  endLongRequests(message: Record<string, never>): null;
  /** Puts every selected workload to sleep or wakes it, independently of the others. Fails invalid_spec. */
  changeMany(message: BulkChange): BulkResult[];
  autoSleep(message: { id: string; enabled: boolean | null; minutes: number | null }): AutoSleepReply;
  /**
   * The workloads that auto-sleep should put to sleep now. `policies`: the policy or annotation that decides,
   * for those workloads that have one; absent if none has.
   */
  idle(message: Record<string, never>): {
    ids: string[];
    policies?: Readonly<Record<string, { who: string; subject: WorkloadSubject }>>;
  };
  /** Cluster and name of a workload. Fails unknown_workload, also when it is no longer in the cluster. */
  referenceOf(message: { id: string }): { clusterId: string } & TetheredWorkload;
  /** From tethers. Does not connect. Fails unknown_workload, also when it is no longer in the cluster. */
  tetherTarget(message: { id: string }): TetherTarget;
  /** From tethers: a tether of workload `id` was opened or closed. `opener` absent: by Berth itself. */
  tetherChanged(message: {
    id: string;
    clusterId: string;
    tetherId: string;
    isOpen: boolean;
    reason: string | null;
    opener?: TetherOpener;
  }): null;
  /** From tethers, for each new connection, before its first byte is carried. */
  activity(message: { id: string; at: number }): null;
  /**
   * From tethers: at least every 15 s while connections carry bytes, and at once when the last one closes.
   * `lastByteAt` in epoch milliseconds.
   */
  traffic(message: { id: string; lastByteAt: number }): null;
}

/** Puts idle workloads to sleep, every sweep_interval_ms. */
export interface SweeperProtocol {
  /** Sweeps now; the interval is not restarted. */
  sweep(message: Record<string, never>): { slept: string[]; left: { id: string; reason: string }[] };
}

/** A workload as clients see it. */
export interface WorkloadRow
  extends Pick<StoredWorkload, 'id' | 'clusterId' | 'state' | 'sleepReason' | 'desiredReplicas'>,
    Pick<StoredWorkload, 'autoSleep' | 'idleMinutes' | 'lastActivityAt'>,
    Pick<ObservedWorkload, 'kind' | 'namespace' | 'name' | 'labels' | 'replicas' | 'ready'> {
  wakeReason: string | null;
  /** What decides on its sleep; null: only its own setting. */
  policy: WorkloadPolicy | null;
  /** The workloads it waits for when it wakes; null if none. */
  after: WakeOrder | null;
  managers: readonly WorkloadManager[];
  /** Since when changes in the cluster may have been missed; null: it is up to date. */
  staleSince: number | null;
}
