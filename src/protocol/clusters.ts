// Clusters: docs/reference.md "Clusters". Their records, and the messages of `clusters`.
import type { ReviewedRight, TokenRenewal } from './cluster_account.ts';
import type { WorkloadKind } from './workload_kinds.ts';

/**
 * The access to a cluster's API server, reduced from a kubeconfig. A secret: it stays within the cloud's
 * threads and must not appear in a message to the front, an error or a log line.
 */
export interface ClusterAccess {
  /** `https://host[:port][/prefix]`, normalised, without a trailing slash. */
  server: string;
  /** PEM; null: the system's root certificates. */
  ca: string | null;
  tlsServerName: string | null;
  /** The namespace of the context. Absent in older records. */
  namespace?: string | null;
  /** `pod`: the service account of this process's own pod, whose token file is reread regularly. */
  credential:
    | { kind: 'token'; token: string }
    | { kind: 'certificate'; certificate: string; key: string }
    | { kind: 'pod' };
}

/** A secret sealed with a data key of its own, which is wrapped by the key `kek` of the key file. */
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
  /** null: never synced, so it is not watched. */
  lastSyncAt: number | null;
  version: string | null;
  capabilities: ClusterCapabilities | null;
  /** The sealed ClusterAccess as JSON; null for the pod's own cluster. */
  access: SealedSecret | null;
  /** The address of its API server; null: the pod's own cluster. Absent in older records. */
  server?: string | null;
  /** The only namespaces that are listed; empty: all that the account may list. Absent in older records. */
  namespaces?: string[];
  /** What the last sync was able to list. Absent in older records and before the first sync. */
  scope?: ClusterScope[];
  /** When the certificate or token expires; null: unknown. Absent in older records. */
  credentialEndsAt?: number | null;
  /** How its token is renewed; null: not at all. Absent in older records. */
  renewal?: TokenRenewal | null;
}

/** The namespaces in which one kind of workload is listed and watched; null: all. */
export interface ClusterScope {
  kind: WorkloadKind;
  namespaces: string[] | null;
}

/** The account's rights in all listed namespaces, as reported by the cluster. */
export interface ClusterCapabilities {
  sync: boolean;
  watch: boolean;
  sleep: boolean;
  tether: boolean;
  /** The missing rights, such as `patch deployments.apps` or `patch deployments.apps in namespace web`. */
  denied: string[];
}

/** A registration whose shape has been checked. */
export interface ClusterInput {
  name: string;
  provider: string;
  /** Raw or strict base64; null when `inCluster`. */
  kubeconfig: string | null;
  inCluster: boolean;
  namespaces: string[];
  /** Renew its token before it expires. */
  renewToken: boolean;
}

/** A change of a cluster; null keeps a value. */
export interface ClusterChange {
  name: string | null;
  provider: string | null;
  kubeconfig: string | null;
  namespaces: string[] | null;
  /** As in `ClusterInput`, for the token in `kubeconfig`. */
  renewToken: boolean;
}

/**
 * Owns the registered clusters. Asks workloads and tethers. At its start it sends every cluster to the views.
 */
export interface ClustersProtocol {
  /**
   * Does not connect. `id`: the new cluster's id; if a cluster already has it, that cluster is returned, so a
   * retry is harmless. Fails invalid_spec, name_in_use, storage_full.
   */
  register(message: { input: ClusterInput; id?: string }): { id: string; name: string };
  /**
   * Changes a cluster's record. New credentials take effect with the next call. Fails unknown_cluster,
   * invalid_spec, name_in_use, storage_full.
   */
  change(message: { id: string; change: ClusterChange }): { id: string; name: string };
  /**
   * Closes the cluster's tethers and deletes it with its workloads' records. The workloads themselves are
   * left alone.
   */
  remove(message: { id: string }): { removed: true; id: string };
  /** Fails unknown_cluster, cluster_unreachable, cluster_denied. */
  sync(message: { id: string }): { synced: number };
  /** The account's rights that Berth uses, wherever the cluster is listed. Fails as `sync`. */
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
  /** Why the cluster is unreachable or refuses the account; null: neither is so. */
  reason?: string | null;
  /** Whether the cluster accepts the account. */
  authenticated?: boolean;
  scope?: ClusterScope[];
  credentialEndsAt?: number | null;
  server?: string | null;
}

/** A cluster as clients see it, without its secret. */
export interface ClusterRow extends Omit<StoredCluster, 'access'> {
  /** Whether the last call reached it; null: not called since the daemon started. */
  reachable: boolean | null;
  /** Whether it accepts the account; null: not called since the daemon started. */
  authenticated: boolean | null;
  /** Why it is unreachable or refuses the account; null: neither is so. */
  reason: string | null;
  /** When `authenticated` last changed. */
  authenticatedSince: number | null;
  /** Why the last attempt to renew its token failed; null if it did not. */
  renewalError: string | null;
}
