// State: the registered clusters, and whether each answers. Rebuilt from: the store, and the next call of
// each cluster.

import { credentialEnd } from '../../adapters/kube/credential_end.ts';
import { tokenRenewal } from '../../adapters/kube/service_account.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { Vault } from '../../adapters/storage/vault.ts';
import type {
  ClusterAccess,
  ClusterChange,
  ClusterInput,
  ClusterRow,
  ClustersProtocol,
  SealedSecret,
  StoredCluster,
  WorkloadsProtocol,
} from '../../protocol/cloud.ts';
import type { CloudViewsProtocol } from '../../protocol/cloud_views.ts';
import type { ReviewedRight } from '../../protocol/cluster_account.ts';
import { fail } from '../../protocol/errors.ts';
import { newUlid } from '../../protocol/ulid.ts';
import {
  actor,
  type Context,
  type Handlers,
  isFailure,
  type MessageOf,
  type Ref,
  tolerateFailure,
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
import { namespacesOf } from './cluster_scopes.ts';
import { TokenRenewals } from './token_renewals.ts';

export interface ClustersConfig extends ClusterAccessConfig {
  store: CloudStore;
  vault: Vault;
}

/** Interval of the check for credentials that end soon. */
const EXPIRY_CHECK_MS = 3_600_000;

type RemovedCluster = { removed: true; id: string };

class Clusters {
  private readonly context: Context;
  private readonly config: ClustersConfig;
  private readonly rows: Map<string, StoredCluster>;
  private readonly health: ClusterHealth;
  private readonly renewals: TokenRenewals;
  /** Names of registrations under way. */
  private readonly registering = new Set<string>();
  private readonly removing = new Map<string, Promise<RemovedCluster>>();
  /** Settles when the latest facts of a cluster are on disk. */
  private factsSaved: Promise<void> = Promise.resolve();
  private readonly views: Ref<CloudViewsProtocol>;
  private readonly workloads: Ref<WorkloadsProtocol>;

  constructor(context: Context, config: ClustersConfig, rows: readonly StoredCluster[]) {
    this.context = context;
    this.config = config;
    this.rows = new Map(rows.map((row) => [row.id, row]));
    this.views = context.ref('cloudviews');
    this.workloads = context.ref('workloads');
    this.health = new ClusterHealth(context.clock, context.ref('events'), context.ref('cloudevents'));
    this.renewals = new TokenRenewals(
      context.clock,
      (id) => this.renewToken(id),
      (error) => context.crash(error),
    );
    for (const row of rows) this.renewals.schedule(row);
    context.scope.defer(() => {
      for (const id of this.rows.keys()) this.renewals.cancel(id);
    });
    this.views.tell('clusters', {
      rows: [...this.rows.values()].map((row) => this.shownRow(row)),
      all: true,
    });
    const names = Object.fromEntries(rows.map(({ id, name }) => [id, name]));
    this.context.ref('cloudevents').tell('named', { names });
  }

  async register(input: ClusterInput, wantedId?: string): Promise<{ id: string; name: string }> {
    const { name } = input;
    const known = wantedId === undefined ? undefined : this.rows.get(wantedId);
    if (known) return { id: known.id, name: known.name };
    this.refuseDuplicate(input);
    this.registering.add(name);
    try {
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
        ...(checked ? this.storedAccess(id, checked) : { access: null }),
      };
      if (!(await this.config.store.addCluster(row))) throw clusterNameInUse(input);
      this.rows.set(id, row);
      this.renewals.schedule(row);
      this.publish(row);
      return { id, name };
    } finally {
      this.registering.delete(name);
    }
  }

  async change(id: string, change: ClusterChange): Promise<{ id: string; name: string }> {
    const { name: before, inCluster } = this.get(id);
    const { kubeconfig, namespaces, renewToken } = change;
    const name = change.name ?? before;
    if (name !== before) this.refuseDuplicate({ name, inCluster: false });
    if (inCluster && kubeconfig !== null)
      throw invalidField('kubeconfig', 'must be absent: in_cluster is true');
    if (renewToken && kubeconfig === null)
      throw invalidField('renew_token', 'is about the token of a new kubeconfig, which is absent');
    this.registering.add(name);
    try {
      const checked = kubeconfig === null ? null : await checkAccess(this.config, kubeconfig, renewToken);
      const next: StoredCluster = {
        ...this.get(id),
        name,
        ...(change.provider === null ? {} : { provider: change.provider }),
        ...(namespaces === null ? {} : { namespaces }),
        ...(checked && this.storedAccess(id, checked)),
      };
      await this.save(next);
      if (checked || namespaces) await this.renew(id);
      return { id, name };
    } finally {
      this.registering.delete(name);
    }
  }

  /**
   * Has everybody use the new access. The next sync, or a tether's next connection, shows whether it
   * works.
   */
  private async renew(id: string): Promise<void> {
    this.health.forget(id);
    await this.workloads.ask('renew', { clusterId: id });
    await this.context.ref('tethers').ask('renewCluster', { clusterId: id });
  }

  /**
   * Has a cluster make a new token of the account, by its present one, and uses it from then on. Resolves
   * with whether it did.
   */
  private async renewToken(id: string): Promise<boolean> {
    const { access: sealed, renewal, credentialEndsAt } = this.get(id);
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
      const row = this.rows.get(id);
      // Meanwhile it was removed, or has got other credentials.
      if (row?.access !== sealed) return false;
      const access = { ...this.opened(id, sealed), credential: { kind: 'token' as const, token } };
      const next = tokenRenewal(token);
      if (!next) throw fail('cluster_unreachable', 'the new token does not say whose it is and when it ends');
      const checked = { access, credentialEndsAt: credentialEnd(access.credential), renewal: next };
      await this.save({ ...row, ...this.storedAccess(id, checked) });
      await this.renew(id);
      return true;
    } catch (error) {
      if (!isFailure(error)) throw error;
      const row = this.rows.get(id);
      if (!row) return false;
      this.health.noteRenewal(id, error.message);
      this.publish(row);
      return false;
    }
  }

  /** Stores a changed record, then shows it. */
  private async save(row: StoredCluster): Promise<void> {
    await this.config.store.saveCluster(row);
    this.rows.set(row.id, row);
    this.renewals.schedule(row);
    this.publish(row);
  }

  /** What the account may do wherever the cluster is listed. */
  rights(id: string): Promise<ReviewedRight[]> {
    const { scope, namespaces = [] } = this.get(id);
    const where = scope ? namespacesOf(scope) : namespaces.length > 0 ? namespaces : null;
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
    this.get(id);
    try {
      // First, so that no tether to a workload of this cluster is made any more.
      await this.workloads.ask('detach', { clusterId: id });
      await this.context.ref('tethers').ask('closeCluster', { clusterId: id });
      await this.config.store.removeCluster(id);
    } catch (error) {
      // The cluster is still registered: the next sync opens it again, or the next attempt removes it.
      this.workloads.tell('attach', { clusterId: id });
      throw error;
    }
    this.rows.delete(id);
    this.renewals.cancel(id);
    this.health.forget(id);
    this.views.tell('clusterRemoved', { id });
    return { removed: true, id };
  }

  async sync(id: string): Promise<{ synced: number }> {
    this.get(id);
    const answer = await this.workloads.ask('sync', { clusterId: id }, { deadlineMs: CLOUD.syncTimeoutMs });
    // The sync has told its facts before it answered.
    await this.factsSaved;
    return answer;
  }

  updateFacts(facts: MessageOf<ClustersProtocol, 'updateFacts'>): null {
    const row = this.rows.get(facts.id);
    if (!row) return null;
    this.health.note(row, facts);
    const { version = row.version, capabilities = row.capabilities, lastSyncAt = row.lastSyncAt } = facts;
    const next: StoredCluster = {
      ...row,
      ...{ version, capabilities, lastSyncAt },
      ...(facts.scope && { scope: facts.scope }),
      ...(facts.credentialEndsAt !== undefined && { credentialEndsAt: facts.credentialEndsAt }),
    };
    this.rows.set(row.id, next);
    this.publish(next);
    // The next sync finds all of it out again, so a full disk loses nothing.
    this.factsSaved = tolerateFailure(this.config.store.saveCluster(next), () => undefined);
    this.factsSaved.catch((error: unknown) => this.context.crash(error));
    return null;
  }

  warnOfExpiry(): void {
    this.health.warnOfExpiry(this.rows.values());
  }

  /** The fields of a record that an access gives. */
  private storedAccess(
    id: string,
    { access, credentialEndsAt, renewal }: CheckedAccess,
  ): Pick<StoredCluster, 'access' | 'credentialEndsAt' | 'renewal'> {
    const sealed = this.config.vault.seal(id, Buffer.from(JSON.stringify(access)));
    return { access: sealed, credentialEndsAt, renewal };
  }

  private opened(id: string, sealed: SealedSecret): ClusterAccess {
    // The vault gives back what `storedAccess` has sealed.
    return JSON.parse(this.config.vault.open(id, sealed).toString()) as ClusterAccess;
  }

  private get(id: string): StoredCluster {
    const row = this.rows.get(id);
    if (!row) throw fail('unknown_cluster', `there is no cluster ${id}`);
    return row;
  }

  private refuseDuplicate(input: Pick<ClusterInput, 'name' | 'inCluster'>): void {
    const rows = [...this.rows.values()];
    const isTaken = rows.some((row) => row.name === input.name || (row.inCluster && input.inCluster));
    if (isTaken || this.registering.has(input.name)) throw clusterNameInUse(input);
  }

  /** What the front may know of a cluster: everything but its secret. */
  private shownRow({ access: _secret, ...row }: StoredCluster): ClusterRow {
    return { ...row, ...this.health.get(row.id) };
  }

  private publish(row: StoredCluster): void {
    this.context.ref('cloudevents').tell('named', { names: { [row.id]: row.name } });
    this.views.tell('clusters', { rows: [this.shownRow(row)], all: false });
  }
}

const clusterNameInUse = ({ name, inCluster }: Pick<ClusterInput, 'name' | 'inCluster'>) =>
  fail(
    'name_in_use',
    `there is a cluster with the name ${name} already${inCluster ? ', or the own one of this pod' : ''}`,
  );

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
