// Passes what the informers see of their clusters to the table, the policies and the records of the clusters.
import type { NamespaceRow } from '../../adapters/kube/namespaces.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { WatchPosition, WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { ClusterFacts, ClustersProtocol } from '../../protocol/clusters.ts';
import type { Clock, Ref } from '../../runtime/actor.ts';
import type { ClusterInformerOwner } from './cluster_informer.ts';
import type { WorkloadPolicies } from './workload_policies.ts';
import type { WorkloadTable } from './workload_table.ts';

export interface InformerReportsParts {
  readonly clock: Clock;
  readonly table: WorkloadTable;
  readonly policies: Pick<WorkloadPolicies, 'onListed' | 'setNamespaces'>;
  readonly clusters: Pick<Ref<ClustersProtocol>, 'tell'>;
  /** Whether the cluster is connected. A removed one may still report. */
  isConnected(clusterId: string): boolean;
  /** Receives errors of work that is not awaited. */
  onDefect(error: unknown): void;
}

export class InformerReports implements ClusterInformerOwner {
  readonly clock: Clock;
  private readonly parts: InformerReportsParts;

  constructor(parts: InformerReportsParts) {
    this.clock = parts.clock;
    this.parts = parts;
  }

  onListing(clusterId: string, scope: WorkloadScope, rows: ObservedWorkload[], startedAt: number): void {
    this.parts.table.replace(clusterId, scope, rows, startedAt);
    this.parts.policies.onListed(clusterId);
  }

  onNamespaces(clusterId: string, rows: readonly NamespaceRow[] | null): void {
    this.parts.policies.setNamespaces(clusterId, rows);
  }

  onScopes(clusterId: string, scopes: readonly WorkloadScope[]): void {
    this.parts.table.retainScopes(clusterId, scopes);
  }

  onStale(clusterId: string, scope: WorkloadScope, since: number | null): void {
    this.parts.table.setStaleSince(clusterId, scope, since);
    if (since === null) this.parts.policies.onListed(clusterId);
  }

  onWatchEvent(clusterId: string, row: ObservedWorkload, isDeleted: boolean): void {
    if (isDeleted) this.parts.table.markDeleted(clusterId, row);
    else this.parts.table.observe(clusterId, row);
  }

  onPosition(position: WatchPosition): void {
    if (this.parts.isConnected(position.clusterId)) this.parts.table.setPosition(position);
  }

  position(clusterId: string, scope: WorkloadScope, origin: string): WatchPosition | null {
    return this.parts.table.position(clusterId, scope, origin);
  }

  flush(): Promise<void> {
    return this.parts.table.flush();
  }

  onFacts(id: string, facts: ClusterFacts): void {
    this.parts.clusters.tell('updateFacts', { id, ...facts });
  }

  onDefect(error: unknown): void {
    this.parts.onDefect(error);
  }
}
