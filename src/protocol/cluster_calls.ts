// The calls to the API server of a cluster: messages of `cluster:<id>`, which has its connections.
import type { PackedRows } from '../runtime/msgpack.ts';
import type { ObservedWorkload } from './cloud.ts';
import type { ReviewedRight, ServiceAccountName } from './cluster_account.ts';
import type { ClusterAccess, ClusterCapabilities } from './clusters.ts';
import type { WorkloadKind } from './workload_kinds.ts';

/** Names a workload of the cluster. */
export interface WorkloadReference {
  kind: WorkloadKind;
  namespace: string;
  name: string;
}

/** A workload, with what identifies its pods. */
export interface SelectedWorkload extends WorkloadReference {
  /** The label selector of its pods. */
  selector: string;
  /** Its current ReplicaSet, if known. */
  replicaSet?: string | null;
}

/** A workload as just read, the basis of a change. */
export interface CurrentWorkload {
  seen: ObservedWorkload;
  losesVolumes: boolean;
  /** metadata.annotations as read; null: the object has none. */
  annotations: Readonly<Record<string, unknown>> | null;
  /** spec.persistentVolumeClaimRetentionPolicy as read; null: the object has none. */
  retentionPolicy: unknown;
}

/** A HorizontalPodAutoscaler. */
export interface Autoscaler {
  name: string;
  maxReplicas: number;
  /** The KEDA ScaledObject that it belongs to; null: none. */
  scaledObject: string | null;
}

/** One step of a JSON patch (RFC 6902). A `test` of null holds where the path does not exist. */
export interface PatchStep {
  op: 'test' | 'add' | 'replace' | 'remove';
  path: string;
  value?: unknown;
}

/** Names a collection of objects. */
export type Collection =
  | { of: 'workloads'; kind: WorkloadKind; namespace: string | null }
  | { of: 'namespaces' }
  /** Those that the workload's selector matches. */
  | { of: 'pods' | 'replicasets'; workload: SelectedWorkload }
  /** Warnings about the object of that kind and name. */
  | { of: 'events'; namespace: string; kind: string; name: string };

/** What a watch reports: a changed object as a row, or only that everything up to `version` was reported. */
export type WatchedChange<Row> =
  | { type: 'changed' | 'deleted'; row: Row; version: string }
  | { type: 'bookmark'; version: string };

/** A part of a listing. */
export interface ListPart {
  rows: PackedRows<object>;
  /** The version of the whole listing, with its last part; null: more parts follow. */
  version: string | null;
}

/** A part of a watch. */
export interface WatchPart {
  /** null: an ignored line, which still shows that the watch is alive. */
  events: (WatchedChange<unknown> | null)[];
  /** The server has ended the watch. */
  isEnded: boolean;
}

/** Identifies a call among those of its caller to one cluster. */
interface NumberedCall {
  call: number;
}

/**
 * One API server: its connections, and the calls to it. Asked by workloads, and ends when that does. Fails
 * `gone` before `open`. Calls fail as those of `KubeCluster`; `restoredError` gives back its errors.
 */
export interface ClusterProtocol {
  /** Comes first. Connects at the first call. */
  open(message: { access: ClusterAccess }): null;
  version(message: Record<string, never>): string;
  capabilities(message: { namespaces: readonly string[] | null }): ClusterCapabilities;
  rights(message: { namespaces: readonly string[] | null }): ReviewedRight[];
  requestToken(message: { account: ServiceAccountName; lifetimeS: number }): string;
  currentVersion(message: NumberedCall & { collection: Collection }): string;
  getWorkload(message: { workload: WorkloadReference }): CurrentWorkload | null;
  patchWorkload(message: {
    workload: WorkloadReference;
    steps: readonly PatchStep[];
    isDryRun: boolean;
  }): ObservedWorkload;
  autoscalers(message: { workload: WorkloadReference }): Autoscaler[];
  /** Replies with the first part of a listing. */
  list(message: NumberedCall & { collection: Collection }): ListPart;
  /** The next part of a listing. */
  moreRows(message: NumberedCall): ListPart;
  /** Replies when the server has accepted the watch. */
  watch(message: NumberedCall & { collection: Collection; from: string }): null;
  /** Replies when the watch has something to report. Its failure ends the watch. */
  moreEvents(message: NumberedCall): WatchPart;
  /** Ends a listing, a watch or `currentVersion`. Harmless when it is over. */
  cancel(message: NumberedCall): null;
  /** Ends all calls and the actor. */
  close(message: Record<string, never>): null;
}
