// Savings as clients see them: docs/reference.md "Savings".
import type { SavingsItem, StoredSavings } from '../../protocol/savings.ts';

/** `cluster`: the name of its cluster. */
export const savingsItem = (row: StoredSavings, cluster: string): SavingsItem => ({
  month: row.month,
  cluster_id: row.clusterId,
  cluster,
  namespace: row.namespace,
  pod_seconds: Math.round(row.podSeconds),
  cpu_request_core_seconds: Math.round(row.cpuSeconds),
  memory_request_byte_seconds: Math.round(row.memorySeconds),
});
