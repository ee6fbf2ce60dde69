// The links to all clusters that are in use: opened when first needed, with what the vault has sealed.

import { explain } from '../../adapters/kube/http.ts';
import type { KubeCluster } from '../../adapters/kube/kube.ts';
import type { CloudStore } from '../../adapters/storage/cloudstore.ts';
import { type Vault, VaultError } from '../../adapters/storage/seal.ts';
import type { ClusterAccess, Sealed, StoredCluster } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import { isFailure } from '../../runtime/actor.ts';
import { ClusterLink, type LinkOwner } from './cluster_link.ts';

export interface LinksConfig {
  store: CloudStore;
  vault: Vault;
  /** Makes the client of a cluster; it connects when it is first used. */
  open: (access: ClusterAccess) => KubeCluster;
  /** How the pod's own cluster is reached; null: not in a pod. */
  podAccess: ClusterAccess | null;
}

export class ClusterLinks {
  private readonly config: LinksConfig;
  private readonly owner: LinkOwner;
  private readonly links = new Map<string, { link: ClusterLink; access: ClusterAccess }>();
  /** Being removed, or removed: whoever still asks for one opens it no more, whatever the store has read before. */
  private readonly dropped = new Set<string>();

  constructor(config: LinksConfig, owner: LinkOwner) {
    this.config = config;
    this.owner = owner;
  }

  /** Follows every cluster that was synced before; one whose access does not open keeps no other from it. */
  async begin(): Promise<void> {
    for (const record of await this.config.store.clusters()) {
      if (record.lastSyncAt === null) continue;
      try {
        this.connect(record).link.begin();
      } catch (error) {
        if (!isFailure(error)) throw error;
        this.owner.looked(record.id, { reachable: false });
      }
    }
  }

  async link(clusterId: string): Promise<ClusterLink> {
    return (await this.get(clusterId)).link;
  }

  /** A secret: for who dials the cluster itself. */
  async access(clusterId: string): Promise<ClusterAccess> {
    return (await this.get(clusterId)).access;
  }

  /** Calls a cluster; what goes wrong is a Failure for the client, and the cluster's health is noted. */
  async calling<R>(clusterId: string, call: (cluster: KubeCluster) => Promise<R>): Promise<R> {
    const { link } = await this.get(clusterId);
    try {
      const result = await call(link.cluster);
      link.health(null);
      return result;
    } catch (error) {
      link.health(error);
      throw explain(error);
    }
  }

  has(clusterId: string): boolean {
    return this.links.has(clusterId);
  }

  async drop(clusterId: string): Promise<void> {
    this.dropped.add(clusterId);
    const entry = this.links.get(clusterId);
    this.links.delete(clusterId);
    await entry?.link.close();
  }

  /** One that was dropped may be opened again. */
  restore(clusterId: string): void {
    this.dropped.delete(clusterId);
  }

  async close(): Promise<void> {
    await Promise.all([...this.links.values()].map(({ link }) => link.close()));
  }

  private async get(clusterId: string): Promise<{ link: ClusterLink; access: ClusterAccess }> {
    const entry = this.links.get(clusterId);
    if (entry) return entry;
    const record = (await this.config.store.clusters()).find((row) => row.id === clusterId);
    if (!record || this.dropped.has(clusterId))
      throw fail('unknown_cluster', `there is no cluster ${clusterId}`);
    return this.links.get(clusterId) ?? this.connect(record);
  }

  private connect(record: StoredCluster): { link: ClusterLink; access: ClusterAccess } {
    const access = this.accessOf(record);
    const link = new ClusterLink(record.id, this.config.open(access), this.owner);
    const entry = { link, access };
    this.links.set(record.id, entry);
    return entry;
  }

  private accessOf({ id, access, inCluster }: StoredCluster): ClusterAccess {
    if (access) return this.opened(id, access);
    if (inCluster && this.config.podAccess) return this.config.podAccess;
    throw fail(
      'cluster_unreachable',
      'it is the cluster of a pod, and this is no pod with a service account',
    );
  }

  private opened(id: string, access: Sealed): ClusterAccess {
    try {
      // What comes out of the vault is what was sealed.
      return JSON.parse(this.config.vault.open(id, access).toString()) as ClusterAccess;
    } catch (error) {
      if (!(error instanceof VaultError)) throw error;
      throw fail('internal', `the access to the cluster cannot be opened: ${error.message}`, {
        hint: 'Delete the cluster and register it again.',
      });
    }
  }
}
