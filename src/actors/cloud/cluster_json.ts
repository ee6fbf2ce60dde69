// Clusters as JSON: docs/reference.md "Clusters".
import type { ClusterView, StoredCluster } from '../../protocol/cloud.ts';
import { utcTime } from '../../protocol/timestamps.ts';

/** `reachable`: whether the last call has reached it; null: none was made since the start. */
export function clusterView(row: StoredCluster, reachable: boolean | null): ClusterView {
  const item = {
    id: row.id,
    name: row.name,
    provider: row.provider,
    in_cluster: row.inCluster,
    created_at: utcTime(row.createdAt),
  };
  const detail = {
    ...item,
    version: row.version,
    reachable,
    last_sync_at: utcTime(row.lastSyncAt),
    capabilities: row.capabilities,
  };
  return { id: row.id, json: JSON.stringify(item), detail: JSON.stringify(detail) };
}
