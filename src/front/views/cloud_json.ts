// Clusters, workloads and tethers as clients see them, docs/reference.md "Clusters", "Workloads", "Tethers":
// the fields of the base API in its order, then the additions.
import type { WorkloadRow } from '../../protocol/cloud.ts';
import type { ReviewedRight } from '../../protocol/cluster_account.ts';
import { renewalTime } from '../../protocol/cluster_account.ts';
import type { ClusterRow } from '../../protocol/clusters.ts';
import type { TetherRow } from '../../protocol/tethers.ts';
import { utcTime } from '../../protocol/timestamps.ts';
import { workloadPolicy } from './policy_json.ts';

/** A cluster in the list. */
export const clusterItem = (row: ClusterRow) => ({
  id: row.id,
  name: row.name,
  provider: row.provider,
  in_cluster: row.inCluster,
  created_at: utcTime(row.createdAt),
});

/** A cluster read on its own. */
export const clusterDetail = (row: ClusterRow) => ({
  ...clusterItem(row),
  version: row.version,
  reachable: row.reachable,
  reason: row.reason,
  last_sync_at: utcTime(row.lastSyncAt),
  capabilities: row.capabilities,
  authenticated: row.authenticated,
  authenticated_since: utcTime(row.authenticatedSince),
  credentials_expire_at: utcTime(row.credentialEndsAt ?? null),
  server: row.server ?? null,
  namespaces: row.namespaces ?? [],
  scope: row.scope ?? null,
  token_renewal: row.renewal
    ? {
        namespace: row.renewal.namespace,
        service_account: row.renewal.name,
        uid: row.renewal.uid,
        due_at: utcTime(renewalTime(row)),
        last_error: row.renewalError,
      }
    : null,
});

const DENIED_NAMESPACE = / in namespace (\S+)$/;

/** The JSON of a cluster, for viewers restricted to some of its namespaces. */
export function clusterWithin(json: string, isKnown: (namespace: string) => boolean): string {
  const cluster: ReturnType<typeof clusterDetail> = JSON.parse(json);
  const { capabilities, scope, namespaces } = cluster;
  const isShown = (denied: string): boolean => {
    const namespace = DENIED_NAMESPACE.exec(denied)?.[1];
    return namespace === undefined || isKnown(namespace);
  };
  return JSON.stringify({
    ...cluster,
    // It may name a namespace.
    reason: null,
    server: null,
    capabilities: capabilities && { ...capabilities, denied: capabilities.denied.filter(isShown) },
    namespaces: namespaces.filter(isKnown),
    scope: scope?.map((part) => ({ ...part, namespaces: part.namespaces?.filter(isKnown) ?? null })) ?? null,
    token_renewal: null,
  });
}

/** A right of the account of a cluster. */
export const clusterRight = ({ isAllowed, isOptional, ...right }: ReviewedRight) => ({
  namespace: right.namespace,
  verb: right.verb,
  resource: right.resource,
  allowed: isAllowed,
  optional: isOptional,
  without: right.without,
});

/** A workload in the list. */
export const workloadItem = (row: WorkloadRow) => ({
  id: row.id,
  name: row.name,
  namespace: row.namespace,
  kind: row.kind,
  replicas: row.replicas,
  desired_replicas: row.desiredReplicas,
  auto_sleep_enabled: row.autoSleep,
  idle_timeout_minutes: row.idleMinutes,
  last_activity_at: utcTime(row.lastActivityAt),
  cluster_id: row.clusterId,
  ready_replicas: row.ready,
  state: row.state,
  sleep_reason: row.sleepReason,
  wake_reason: row.wakeReason,
  stale_since: utcTime(row.staleSince),
  policy: row.policy && workloadPolicy(row.policy),
  after: row.after,
  managed_by: row.managers,
});

/** The JSON of a workload in the list without the faults of its wake order, which tell of other workloads. */
export function withoutOrderFaults(json: string): string {
  const workload: ReturnType<typeof workloadItem> = JSON.parse(json);
  return JSON.stringify({ ...workload, after: workload.after && { ...workload.after, faults: [] } });
}

/**
 * The JSON of a workload in the list with another `stale_since`. No text in it can look like the field,
 * because its quotes would be escaped.
 */
export const withStaleSince = (json: string, staleSince: number | null): string =>
  json.replace(/"stale_since":(?:null|"[^"]*")/, `"stale_since":${JSON.stringify(utcTime(staleSince))}`);

/** A tether in the list. */
export const tetherItem = (row: TetherRow) => ({
  tether_id: row.id,
  workload_id: row.workloadId,
  workload: row.workload,
  container_port: row.containerPort,
  label: row.label,
  local_port: row.localPort,
  state: row.isOpen ? 'active' : 'idle',
  connections: row.connections,
  bytes_in: row.bytesIn,
  bytes_out: row.bytesOut,
  last_error: row.lastError,
  previous_port: row.previousPort,
  wake: row.wake,
  pod: row.pod,
  allow_not_ready: row.allowNotReady,
  half_closed_timeout: row.halfClosedTimeoutMs,
});
