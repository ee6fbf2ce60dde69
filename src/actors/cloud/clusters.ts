// State: the registered clusters, and whether each answers. Rebuilt from: the store, and the next call of
// each cluster.
import { isIP } from 'node:net';
import { type AddressRule, addressCheck } from '../../adapters/address_rule.ts';
import { credentialEnd } from '../../adapters/kube/credential_end.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { Vault } from '../../adapters/storage/vault.ts';
import { unbracketedHost } from '../../adapters/url_host.ts';
import type {
  CloudViewsProtocol,
  ClusterAccess,
  ClusterChange,
  ClusterFacts,
  ClusterInput,
  ClusterRow,
  ClustersProtocol,
  SealedSecret,
  StoredCluster,
  WorkloadsProtocol,
} from '../../protocol/cloud.ts';
import type { CloudEventType, NewCloudEvent } from '../../protocol/cloud_events.ts';
import { fail } from '../../protocol/errors.ts';
import type { EventType, NewEvent } from '../../protocol/events.ts';
import { utcTime } from '../../protocol/timestamps.ts';
import { newUlid } from '../../protocol/ulid.ts';
import {
  actor,
  type Context,
  type Handlers,
  type MessageOf,
  type Ref,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

export interface ClustersConfig {
  store: CloudStore;
  vault: Vault;
  /** Parses an uploaded kubeconfig, on a job thread. Fails invalid_spec. */
  parse: (text: string) => Promise<ClusterAccess>;
  rule: AddressRule;
  /** The setting `cloud.allow_in_cluster`. */
  allowInCluster: boolean;
  /** Whether this runs in a pod with a service account. */
  inPod: boolean;
}

/** What the calls since the start have told. */
type Contact = Pick<ClusterRow, 'reachable' | 'authenticated' | 'authenticatedSince'>;

const NO_CONTACT: Contact = { reachable: null, authenticated: null, authenticatedSince: null };

/** Interval of the check for credentials that end soon. */
const EXPIRY_CHECK_MS = 3_600_000;

type RemovedCluster = { removed: true; id: string };

class Clusters {
  private readonly context: Context;
  private readonly config: ClustersConfig;
  private readonly rows: Map<string, StoredCluster>;
  private readonly contacts = new Map<string, Contact>();
  /** The end of the credentials that was warned of, by cluster. */
  private readonly warnedOf = new Map<string, number>();
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
      const access = await this.access(input);
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
        credentialEndsAt: access && credentialEnd(access.credential),
        access: access && this.sealed(id, access),
      };
      if (!(await this.config.store.addCluster(row))) throw clusterNameInUse(input);
      this.rows.set(id, row);
      this.publish(row);
      return { id, name };
    } finally {
      this.registering.delete(name);
    }
  }

  async change(id: string, change: ClusterChange): Promise<{ id: string; name: string }> {
    const { name: before, inCluster } = this.get(id);
    const { kubeconfig, namespaces } = change;
    const name = change.name ?? before;
    if (name !== before) this.refuseDuplicate({ name, inCluster: false });
    if (inCluster && kubeconfig !== null) throw invalid('kubeconfig', 'must be absent: in_cluster is true');
    this.registering.add(name);
    try {
      const access = kubeconfig === null ? null : await this.parsed(kubeconfig);
      const next: StoredCluster = {
        ...this.get(id),
        name,
        ...(change.provider === null ? {} : { provider: change.provider }),
        ...(namespaces === null ? {} : { namespaces }),
        ...(access && {
          access: this.sealed(id, access),
          credentialEndsAt: credentialEnd(access.credential),
        }),
      };
      await this.config.store.saveCluster(next);
      this.rows.set(id, next);
      this.publish(next);
      if (access || namespaces) await this.renew(id);
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
    this.contacts.delete(id);
    await this.workloads.ask('renew', { clusterId: id });
    await this.context.ref('tethers').ask('renewCluster', { clusterId: id });
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
    this.contacts.delete(id);
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
    this.noteContact(row, facts);
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

  private noteContact({ id }: StoredCluster, { reachable, authenticated }: ClusterFacts): void {
    const known = this.contacts.get(id) ?? NO_CONTACT;
    if (reachable !== null && reachable !== (known.reachable ?? true))
      this.tellCloudEvent(reachable ? 'cluster.reachable' : 'cluster.unreachable', id, {});
    const isNews = authenticated !== undefined && authenticated !== known.authenticated;
    if (isNews && (known.authenticated !== null || !authenticated)) this.tellAccount(id, authenticated);
    this.contacts.set(id, {
      ...known,
      ...(reachable === null ? {} : { reachable }),
      ...(isNews ? { authenticated, authenticatedSince: this.context.clock.now() } : {}),
    });
  }

  /** Clients learn of it without asking; docs/reference.md "Event types". */
  private tellAccount(id: string, isAccepted: boolean): void {
    const { name } = this.get(id);
    const type = isAccepted ? 'cluster.accepted' : 'cluster.refused';
    this.tellEvent(type, name, { name, clusterId: id });
    this.tellCloudEvent(type, id, isAccepted ? {} : { result: 'cluster_denied' });
  }

  /** Warns, once per start and end, of credentials that end soon. */
  warnOfExpiry(): void {
    const now = this.context.clock.now();
    for (const { id, name, credentialEndsAt } of this.rows.values()) {
      if (!credentialEndsAt || credentialEndsAt - now > CLOUD.expiryWarningMs) continue;
      if (this.warnedOf.get(id) === credentialEndsAt) continue;
      this.warnedOf.set(id, credentialEndsAt);
      const data = { name, clusterId: id, expiresAt: utcTime(credentialEndsAt) };
      this.tellEvent('cluster.expiring', name, data);
      this.tellCloudEvent('cluster.expiring', id, { reason: `its credentials end at ${data.expiresAt}` });
    }
  }

  private tellEvent(type: EventType, name: string, data: object): void {
    const event: NewEvent = { type, name, run: null, data: JSON.stringify(data) };
    this.context.ref('events').tell('append', { events: [event] });
  }

  private tellCloudEvent(
    type: CloudEventType,
    clusterId: string,
    more: Pick<NewCloudEvent, 'result' | 'reason'>,
  ): void {
    this.context.ref('cloudevents').tell('append', { events: [{ type, clusterId, ...more }] });
  }

  private sealed(id: string, access: ClusterAccess): SealedSecret {
    return this.config.vault.seal(id, Buffer.from(JSON.stringify(access)));
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

  /** The access in the kubeconfig, checked; null for the pod's own cluster. Fails invalid_spec. */
  private async access({ kubeconfig, inCluster }: ClusterInput): Promise<ClusterAccess | null> {
    if (inCluster) {
      const { allowInCluster, inPod } = this.config;
      if (!allowInCluster) throw invalid('in_cluster', 'is not allowed: cloud.allow_in_cluster is false');
      if (!inPod) throw invalid('in_cluster', 'is not possible: this is no pod with a service account');
      if (kubeconfig !== null) throw invalid('kubeconfig', 'must be absent when in_cluster is true');
      return null;
    }
    if (kubeconfig === null) throw invalid('kubeconfig', 'is required unless in_cluster is true');
    return this.parsed(kubeconfig);
  }

  /** The access in the kubeconfig, checked. Fails invalid_spec. */
  private async parsed(kubeconfig: string): Promise<ClusterAccess> {
    const access = await this.config.parse(kubeconfig);
    const host = unbracketedHost(new URL(access.server));
    // A name is checked when it is dialled. An address can be refused at once, and so can a name that is
    // always one.
    const address = LOOPBACK_NAME.test(host) ? '127.0.0.1' : host;
    const reason = isIP(address) === 0 ? null : addressCheck(this.config.rule)(address);
    if (reason !== null) throw invalid('kubeconfig', `its server ${host} ${reason}`);
    return access;
  }

  /** What the front may know of a cluster: everything but its secret. */
  private shownRow({ access: _secret, ...row }: StoredCluster): ClusterRow {
    return { ...row, ...(this.contacts.get(row.id) ?? NO_CONTACT) };
  }

  private publish(row: StoredCluster): void {
    this.context.ref('cloudevents').tell('named', { names: { [row.id]: row.name } });
    this.views.tell('clusters', { rows: [this.shownRow(row)], all: false });
  }
}

/** Names that lead to the own machine everywhere (RFC 6761). */
const LOOPBACK_NAME = /^(.+\.)?localhost\.?$/i;

const invalid = (path: string, message: string) =>
  fail('invalid_spec', `${path} ${message}`, { details: [{ path, message: `${path} ${message}` }] });

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
    viewsReady: () => null,
    updateFacts: (facts) => clusters.updateFacts(facts),
  };
}

/** At `clusters`: see ClustersProtocol. */
export const clustersActor = actor<ClustersProtocol, ClustersConfig>('clusters', init);
