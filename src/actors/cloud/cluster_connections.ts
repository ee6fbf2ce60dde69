// The connections to all clusters in use, each opened when first needed with the access sealed in the vault.

import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { credentialEnd } from '../../adapters/kube/credential_end.ts';
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { kubeFailure } from '../../adapters/kube/kube_errors.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import { type Vault, VaultError } from '../../adapters/storage/vault.ts';
import type { ReviewedRight } from '../../protocol/cluster_account.ts';
import type { ClusterAccess, SealedSecret, StoredCluster } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import { isFailure } from '../../runtime/actor.ts';
import { withTimeout } from '../../runtime/deferred.ts';
import { KeyedMutex } from '../../runtime/keyed_mutex.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { ClusterInformer, type ClusterInformerOwner } from './cluster_informer.ts';
import { WatchGate } from './watch_gate.ts';

export interface ClusterConnectionsConfig {
  store: CloudStore;
  vault: Vault;
  /** Makes the client of the cluster `id`. It connects at its first use. */
  open: (access: ClusterAccess, id: string, gate: WatchGate) => KubeCluster;
  /** The access to the pod's own cluster; null outside of a pod. */
  podAccess: ClusterAccess | null;
}

interface Connection {
  clusterId: string;
  informer: ClusterInformer;
  access: ClusterAccess;
  /** The only namespaces that are listed; empty: all that the account may list. */
  given: readonly string[];
  /** Namespaces in which an account without rights on all of them may have some. */
  likely: readonly string[];
  /** Those under way. */
  calls: Set<Promise<unknown>>;
}

/** Identifies an API server: versions of one mean nothing to another. */
const originOf = ({ server, ca }: ClusterAccess): string =>
  createHash('sha256')
    .update(`${server}\n${ca ?? ''}`)
    .digest('hex')
    .slice(0, 16);

export class ClusterConnections {
  private readonly config: ClusterConnectionsConfig;
  private readonly owner: ClusterInformerOwner;
  private readonly entries = new Map<string, Connection>();
  /**
   * Clusters that are removed or being removed. They are not opened again, whatever was read from the store
   * before.
   */
  private readonly removed = new Set<string>();
  /** Replaced connections that still have calls under way. */
  private readonly retired = new Set<Connection>();
  private readonly replacing = new KeyedMutex();
  private readonly gate: WatchGate;
  private isClosed = false;

  constructor(config: ClusterConnectionsConfig, owner: ClusterInformerOwner) {
    this.config = config;
    this.owner = owner;
    this.gate = new WatchGate(() => owner.flush());
  }

  /**
   * Begins to watch these clusters, a few at a time, and then reads their namespaces. Skips clusters that
   * were never synced, and marks those whose access cannot be unsealed as unreachable. Rejects only for
   * defects.
   */
  async start(clusterIds: readonly string[]): Promise<void> {
    await this.inLanes(clusterIds, (id) => this.begin(id));
    await this.inLanes(clusterIds, (id) => this.readNamespaces(id));
  }

  /**
   * Syncs as `ClusterInformer.sync`; starts over if the connection is replaced meanwhile. Also fails
   * unknown_cluster, or when the access cannot be unsealed.
   */
  async sync(clusterId: string): Promise<number> {
    for (;;) {
      const { informer } = await this.entry(clusterId);
      const count = await informer.sync();
      if (count !== null) return count;
    }
  }

  /**
   * The cluster's address and credentials, a secret. Fails unknown_cluster, or when they cannot be unsealed.
   */
  async access(clusterId: string): Promise<ClusterAccess> {
    return (await this.entry(clusterId)).access;
  }

  /**
   * Calls a cluster and records its health. Errors of the cluster become Failures for the client; defects are
   * thrown.
   */
  async call<R>(clusterId: string, call: (cluster: KubeCluster) => Promise<R>): Promise<R> {
    const { informer, calls } = await this.entry(clusterId);
    const answer = call(informer.cluster);
    calls.add(answer);
    try {
      const result = await answer;
      informer.reportHealth(null);
      return result;
    } catch (error) {
      informer.reportHealth(error);
      throw kubeFailure(error);
    } finally {
      calls.delete(answer);
    }
  }

  /**
   * The account's rights in `namespaces`; null: in all of them; empty: where its first sync would look, if it
   * may not list all of them. Fails as `call`.
   */
  async rights(clusterId: string, namespaces: readonly string[] | null): Promise<ReviewedRight[]> {
    const { likely } = await this.entry(clusterId);
    const where = namespaces?.length === 0 ? (likely.length > 0 ? likely : null) : namespaces;
    return this.call(clusterId, (cluster) => cluster.rights(where));
  }

  /**
   * Reconnects with the stored record, if connected. Calls under way finish on the old connection. Resolves
   * when the new one is in use, whether or not the cluster answers: it is watched in the background.
   */
  async reconnect(clusterId: string): Promise<void> {
    // One at a time, so that the record read last is the one in use.
    await this.replacing.runExclusive(clusterId, async () => {
      const record = await this.read(clusterId);
      const old = this.entries.get(clusterId);
      if (!old || !record) return;
      this.entries.delete(clusterId);
      const isAnew = !isDeepStrictEqual(old.given, record.namespaces ?? []);
      const watched = this.watch(record, isAnew).then(() => this.readNamespaces(clusterId));
      for (const work of [this.retire(old), watched])
        work.catch((error: unknown) => this.owner.onDefect(error));
    });
  }

  has(clusterId: string): boolean {
    return this.entries.has(clusterId);
  }

  /** Closes the connection, which ends its calls, and refuses new ones until `restore`. */
  async remove(clusterId: string): Promise<void> {
    this.removed.add(clusterId);
    const all = this.all().filter((connection) => connection.clusterId === clusterId);
    this.entries.delete(clusterId);
    await Promise.all(all.map(({ informer }) => informer.close()));
  }

  /** Allows a removed cluster to be opened again. */
  restore(clusterId: string): void {
    this.removed.delete(clusterId);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all(this.all().map(({ informer }) => informer.close()));
  }

  private all(): Connection[] {
    return [...this.entries.values(), ...this.retired];
  }

  /** Closes a replaced connection once its calls are over. */
  private async retire(old: Connection): Promise<void> {
    old.informer.stop();
    this.retired.add(old);
    // A call that was given this connection a moment ago has begun by then.
    await nextTurn();
    await withTimeout(CLOUD.scaleTimeoutMs, Promise.allSettled(old.calls), this.owner.clock);
    this.retired.delete(old);
    await old.informer.close();
  }

  private async inLanes(clusterIds: readonly string[], work: (id: string) => Promise<void>): Promise<void> {
    const queue = [...clusterIds];
    const lane = async (): Promise<void> => {
      for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
        // Opening a connection blocks the thread for a while.
        await nextTurn();
        if (this.isClosed) return;
        // A cluster that is down must not delay the others.
        await withTimeout(CLOUD.beginning.slowMs, work(id), this.owner.clock);
      }
    };
    await Promise.all(Array.from({ length: CLOUD.beginning.lanes }, lane));
  }

  private async readNamespaces(clusterId: string): Promise<void> {
    await this.entries.get(clusterId)?.informer.readNamespaces();
  }

  private async entry(clusterId: string): Promise<Connection> {
    const entry = this.entries.get(clusterId);
    if (entry) return entry;
    const record = await this.read(clusterId);
    if (!record) throw fail('unknown_cluster', `there is no cluster ${clusterId}`);
    return this.entries.get(clusterId) ?? this.connect(record);
  }

  /** The record of a cluster; undefined when it is not registered, or is being removed. */
  private async read(clusterId: string): Promise<StoredCluster | undefined> {
    const record = await this.config.store.cluster(clusterId);
    return record === null || this.removed.has(clusterId) ? undefined : record;
  }

  /**
   * Watches a previously synced cluster, unless it is already watched. Resolves as `ClusterInformer.begin`.
   */
  private async begin(clusterId: string): Promise<void> {
    const record = await this.read(clusterId);
    if (record) await this.watch(record);
  }

  private async watch(record: StoredCluster, isAnew = false): Promise<void> {
    if (record.lastSyncAt === null || this.isClosed) return;
    try {
      const { informer } = this.entries.get(record.id) ?? this.connect(record);
      await (isAnew ? informer.beginAnew() : informer.begin());
    } catch (error) {
      if (!isFailure(error)) throw error;
      this.owner.onFacts(record.id, { reachable: false, reason: error.message });
    }
  }

  private connect(record: StoredCluster): Connection {
    const access = this.accessOf(record);
    const { id, scope = null, lastSyncAt, inCluster, namespaces: given = [] } = record;
    const likely = access.namespace ? [access.namespace] : [];
    const informer = new ClusterInformer({
      id,
      cluster: this.config.open(access, id, this.gate),
      origin: originOf(access),
      owner: this.owner,
      given,
      likely,
      scope,
      lastSyncAt,
    });
    if (record.credentialEndsAt === undefined || record.server === undefined)
      this.owner.onFacts(id, {
        reachable: null,
        credentialEndsAt: credentialEnd(access.credential),
        server: inCluster ? null : access.server,
      });
    const entry: Connection = {
      clusterId: id,
      informer,
      access,
      given,
      likely,
      calls: new Set(),
    };
    this.entries.set(record.id, entry);
    return entry;
  }

  private accessOf({ id, access, inCluster }: StoredCluster): ClusterAccess {
    if (access) return this.unseal(id, access);
    if (inCluster && this.config.podAccess) return this.config.podAccess;
    throw fail(
      'cluster_unreachable',
      'it is the cluster of a pod, and this is no pod with a service account',
    );
  }

  private unseal(id: string, access: SealedSecret): ClusterAccess {
    try {
      // The vault gives back what `Clusters.register` has sealed.
      return JSON.parse(this.config.vault.open(id, access).toString()) as ClusterAccess;
    } catch (error) {
      if (!(error instanceof VaultError)) throw error;
      throw fail('internal', `the credentials of the cluster cannot be decrypted: ${error.message}`, {
        hint: 'Delete the cluster and register it again.',
      });
    }
  }
}
