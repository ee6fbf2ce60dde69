// State: the registered clusters, and whether each answers. Rebuilt from: the store, and the next call of
// each cluster.

import { credentialEnd } from '../../adapters/kube/credential_end.ts';
import { tokenRenewal } from '../../adapters/kube/service_account.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { Vault } from '../../adapters/storage/vault.ts';
import type { WorkloadsProtocol } from '../../protocol/cloud.ts';
import type { ReviewedRight } from '../../protocol/cluster_account.ts';
import type {
  ClusterAccess,
  ClusterChange,
  ClusterInput,
  ClustersProtocol,
  SealedSecret,
  StoredCluster,
} from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import { newUlid } from '../../protocol/ulid.ts';
import {
  actor,
  type Context,
  type Handlers,
  isFailure,
  type MessageOf,
  type Ref,
} from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import {
  accessOfInput,
  type CheckedAccess,
  type ClusterAccessConfig,
  checkAccess,
  invalidField,
} from './cluster_access.ts';
import { ClusterHealth } from './cluster_health.ts';
import { ClusterRecords } from './cluster_records.ts';
import { namespacesOf } from './cluster_scopes.ts';
import { TokenRenewals } from './token_renewals.ts';

export interface ClustersConfig extends ClusterAccessConfig {
  store: CloudStore;
  vault: Vault;
}

/** How often to check for credentials that expire soon. */
const EXPIRY_CHECK_MS = 3_600_000;

type RemovedCluster = { removed: true; id: string };

class Clusters {
  private readonly context: Context;
  private readonly config: ClustersConfig;
  private readonly records: ClusterRecords;
  private readonly health: ClusterHealth;
  private readonly renewals: TokenRenewals;
  private readonly removing = new Map<string, Promise<RemovedCluster>>();
  private readonly workloads: Ref<WorkloadsProtocol>;

  constructor(context: Context, config: ClustersConfig, rows: readonly StoredCluster[]) {
    this.context = context;
    this.config = config;
    this.workloads = context.ref('workloads');
    this.health = new ClusterHealth(context.clock, context.ref('events'), context.ref('cloudevents'));
    this.records = new ClusterRecords(context, config.store, this.health, rows);
    this.renewals = new TokenRenewals(
      context.clock,
      (id) => this.renewToken(id),
      (error) => context.crash(error),
    );
    for (const row of rows) this.renewals.schedule(row);
    context.scope.defer(() => {
      for (const { id } of this.records.all()) this.renewals.cancel(id);
    });
  }

  async register(input: ClusterInput, wantedId?: string): Promise<{ id: string; name: string }> {
    const { name } = input;
    const known = wantedId === undefined ? undefined : this.records.find(wantedId);
    if (known) return { id: known.id, name: known.name };
    return this.records.withName(input, async () => {
      const checked = await accessOfInput(this.config, input);
      const now = this.context.clock.now();
      const id = wantedId ?? newUlid(now);
      const row: StoredCluster = {
        id,
        name,
        provider: input.provider,
        inCluster: input.inCluster,
        createdAt: now,
        lastSyncAt: null,
        version: null,
        capabilities: null,
        namespaces: input.namespaces,
        ...(checked ? this.storedAccess(id, checked) : { access: null, server: null }),
      };
      await this.records.add(row);
      this.renewals.schedule(row);
      return { id, name };
    });
  }

  async change(id: string, change: ClusterChange): Promise<{ id: string; name: string }> {
    const { name: before, inCluster } = this.records.get(id);
    const { kubeconfig, renewToken } = change;
    const name = change.name ?? before;
    const make = (): Promise<{ id: string; name: string }> => this.changeTo(id, name, change);
    if (inCluster && kubeconfig !== null)
      throw invalidField('kubeconfig', 'must be absent: in_cluster is true');
    if (renewToken && kubeconfig === null)
      throw invalidField('renew_token', 'is about the token of a new kubeconfig, which is absent');
    return name === before ? make() : this.records.withName({ name, inCluster: false }, make);
  }

  private async changeTo(
    id: string,
    name: string,
    { kubeconfig, namespaces, provider, renewToken }: ClusterChange,
  ): Promise<{ id: string; name: string }> {
    const checked = kubeconfig === null ? null : await checkAccess(this.config, kubeconfig, renewToken);
    await this.save({
      ...this.records.get(id),
      name,
      ...(provider === null ? {} : { provider }),
      ...(namespaces === null ? {} : { namespaces }),
      ...(checked && this.storedAccess(id, checked)),
    });
    if (checked || namespaces) await this.renew(id);
    return { id, name };
  }

  /** Makes everyone use the new access. The next sync or tether connection shows whether it works. */
  private async renew(id: string): Promise<void> {
    this.health.renewed(id);
    await this.workloads.ask('renew', { clusterId: id });
    await this.context.ref('tethers').ask('renewCluster', { clusterId: id });
  }

  /**
   * Has a cluster issue a new token for the account, using its present one, and switches to it. Resolves with
   * whether it succeeded.
   */
  private async renewToken(id: string): Promise<boolean> {
    const { access: sealed, renewal, credentialEndsAt } = this.records.get(id);
    if (!sealed || !renewal || !credentialEndsAt) return false;
    const lifetimeS = Math.max(
      Math.round((credentialEndsAt - renewal.issuedAt) / 1_000),
      CLOUD.tokenRenewal.minLifetimeS,
    );
    const { namespace, name } = renewal;
    try {
      const { token } = await this.workloads.ask(
        'requestToken',
        { clusterId: id, account: { namespace, name }, lifetimeS },
        { deadlineMs: CLOUD.syncTimeoutMs },
      );
      const row = this.records.find(id);
      // Meanwhile the cluster was removed, or got other credentials.
      if (row?.access !== sealed) return false;
      const access = { ...this.opened(id, sealed), credential: { kind: 'token' as const, token } };
      const next = tokenRenewal(token);
      if (!next) throw fail('cluster_unreachable', 'the new token has no subject or no expiry time');
      const renewed = { ...next, renewedAt: this.context.clock.now() };
      const checked = { access, credentialEndsAt: credentialEnd(access.credential), renewal: renewed };
      this.health.noteRenewal(id, null);
      await this.save({ ...row, ...this.storedAccess(id, checked) });
      await this.renew(id);
      return true;
    } catch (error) {
      if (!isFailure(error)) throw error;
      const row = this.records.find(id);
      if (!row) return false;
      this.health.noteRenewal(id, error.message);
      this.records.publish(id);
      return false;
    }
  }

  private async save(row: StoredCluster): Promise<void> {
    await this.records.save(row);
    this.renewals.schedule(row);
  }

  /** The account's rights wherever the cluster is listed. */
  rights(id: string): Promise<ReviewedRight[]> {
    const { scope, namespaces = [] } = this.records.get(id);
    const where = scope ? namespacesOf(scope) : namespaces;
    return this.workloads.ask(
      'rights',
      { clusterId: id, namespaces: where },
      { deadlineMs: CLOUD.syncTimeoutMs },
    );
  }

  /** Joins a removal that is under way. */
  remove(id: string): Promise<RemovedCluster> {
    const removal = this.removing.get(id) ?? this.removal(id).finally(() => this.removing.delete(id));
    this.removing.set(id, removal);
    return removal;
  }

  private async removal(id: string): Promise<RemovedCluster> {
    this.records.get(id);
    try {
      // Comes first, so that no new tether to a workload of this cluster is made.
      await this.workloads.ask('detach', { clusterId: id });
      await this.context.ref('tethers').ask('closeCluster', { clusterId: id });
      await this.records.remove(id);
    } catch (error) {
      // The cluster is still registered: the next sync reopens it, or the next attempt removes it.
      this.workloads.tell('attach', { clusterId: id });
      throw error;
    }
    this.renewals.cancel(id);
    this.health.forget(id);
    return { removed: true, id };
  }

  async sync(id: string): Promise<{ synced: number }> {
    this.records.get(id);
    try {
      return await this.workloads.ask('sync', { clusterId: id }, { deadlineMs: CLOUD.syncTimeoutMs });
    } finally {
      // The sync has reported its facts before it answered, even if it failed.
      await this.records.whenFactsSaved();
    }
  }

  updateFacts({ id, ...facts }: MessageOf<ClustersProtocol, 'updateFacts'>): null {
    this.records.noteFacts(id, facts);
    return null;
  }

  warnOfExpiry(): void {
    this.health.warnOfExpiry(this.records.all());
  }

  /** The fields of a record that are derived from an access. */
  private storedAccess(
    id: string,
    { access, credentialEndsAt, renewal }: CheckedAccess,
  ): Pick<StoredCluster, 'access' | 'credentialEndsAt' | 'renewal' | 'server'> {
    const sealed = this.config.vault.seal(id, Buffer.from(JSON.stringify(access)));
    return { access: sealed, credentialEndsAt, renewal, server: access.server };
  }

  private opened(id: string, sealed: SealedSecret): ClusterAccess {
    // The vault gives back what `storedAccess` has sealed.
    return JSON.parse(this.config.vault.open(id, sealed).toString()) as ClusterAccess;
  }
}

async function init(context: Context, config: ClustersConfig): Promise<Handlers<ClustersProtocol>> {
  const clusters = new Clusters(context, config, await config.store.clusters());
  clusters.warnOfExpiry();
  context.clock.every(EXPIRY_CHECK_MS, () => clusters.warnOfExpiry());
  return {
    register: ({ input, id }) => context.replyLater(clusters.register(input, id)),
    change: ({ id, change }) => context.replyLater(clusters.change(id, change)),
    remove: ({ id }) => context.replyLater(clusters.remove(id)),
    sync: ({ id }) => context.replyLater(clusters.sync(id)),
    rights: ({ id }) => context.replyLater(clusters.rights(id)),
    viewsReady: () => null,
    updateFacts: (facts) => clusters.updateFacts(facts),
  };
}

/** At `clusters`: see ClustersProtocol. */
export const clustersActor = actor<ClustersProtocol, ClustersConfig>('clusters', init);
