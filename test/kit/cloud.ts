// The cloud's actors on one node with the real store, vault, client and views; only the tethers are a
// stand-in.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { cloudEventsActor } from '../../src/actors/cloud/cloud_events.ts';
import { cloudOperationsActor } from '../../src/actors/cloud/cloud_operations.ts';
import { createClusterClient } from '../../src/actors/cloud/cluster_client.ts';
import type { ClusterConnectionsConfig } from '../../src/actors/cloud/cluster_connections.ts';
import { clustersActor } from '../../src/actors/cloud/clusters.ts';
import { policiesActor } from '../../src/actors/cloud/policies.ts';
import { principalsActor } from '../../src/actors/cloud/principals.ts';
import type { DaemonPod } from '../../src/actors/cloud/sleep.ts';
import { sweeperActor } from '../../src/actors/cloud/sweeper.ts';
import type { WatchGate } from '../../src/actors/cloud/watch_gate.ts';
import { workloadsActor } from '../../src/actors/cloud/workloads.ts';
import { clusterActor } from '../../src/actors/clusters/cluster.ts';
import type { AddressRule } from '../../src/adapters/address_rule.ts';
import { type KubeCluster, openKubeCluster } from '../../src/adapters/kube/kube_cluster.ts';
import { parseKubeconfig } from '../../src/adapters/kube/kubeconfig.ts';
import type { CloudHistory } from '../../src/adapters/storage/cloud_history.ts';
import type { CloudStore } from '../../src/adapters/storage/cloud_store.ts';
import { embeddedCloudStore } from '../../src/adapters/storage/embedded_cloud.ts';
import { EventHistory, type EventHistoryLimits } from '../../src/adapters/storage/event_history.ts';
import { openStore } from '../../src/adapters/storage/store.ts';
import { createVault, type Vault } from '../../src/adapters/storage/vault.ts';
import { CloudViews } from '../../src/front/views/cloud_views.ts';
import { cloudViewsActor } from '../../src/front/views/cloud_views_actor.ts';
import type { SweeperProtocol, WorkloadsProtocol } from '../../src/protocol/cloud.ts';
import type { CloudEventFilter, CloudEventsProtocol } from '../../src/protocol/cloud_events.ts';
import type { CloudOperationsProtocol } from '../../src/protocol/cloud_operations.ts';
import type { ClusterProtocol } from '../../src/protocol/cluster_calls.ts';
import type { ClusterAccess, ClusterInput, ClustersProtocol } from '../../src/protocol/clusters.ts';
import type { EventsProtocol } from '../../src/protocol/events.ts';
import type { PoliciesProtocol } from '../../src/protocol/policies.ts';
import type { PrincipalsProtocol } from '../../src/protocol/principals.ts';
import type { TethersProtocol } from '../../src/protocol/tethers.ts';
import type { Ref } from '../../src/runtime/actor.ts';
import { CLOUD_EVENTS } from '../../src/settings/cloud_limits.ts';
import {
  afterThisTest,
  closedLast,
  realTime,
  type Stand,
  type TestClock,
  tempDir,
  type World,
  world,
} from './actors.ts';
import { eventually } from './eventually.ts';
import { type Double, type Json, kubeDouble, workload } from './kube_double.ts';

export { eventually };

export const ALL_CLOUD_EVENTS: CloudEventFilter = {
  types: null,
  clusterId: null,
  namespaces: null,
  workloadId: null,
  who: null,
  operationId: null,
  since: null,
  until: null,
};

/** The whole audit log of a cloud, oldest first. */
export async function auditOf({ cloudEvents }: Pick<Cloud, 'cloudEvents'>): Promise<Json[]> {
  const { rows } = await cloudEvents.ask('page', { filter: ALL_CLOUD_EVENTS, before: null, limit: 10_000 });
  return rows.map((row) => JSON.parse(row)).reverse();
}

export const ANY = { allow: 'any', apiOnLoopback: true };

export interface CloudOptions {
  clock?: TestClock;
  /** An existing node and front views, in place of new ones. */
  world?: World;
  views?: CloudViews;
  /** The stand-in at `events` of that node, if it has one. */
  events?: Stand<EventsProtocol>;
  folder?: string;
  vault?: Vault;
  /** Addresses that clusters may be registered with. */
  rule?: AddressRule;
  ownPod?: DaemonPod;
  /** The name of this Berth. */
  self?: string;
  podAccess?: ClusterAccess;
  allowInCluster?: boolean;
  /** Wraps the calls to the clusters, or to the store. */
  open?: ClusterConnectionsConfig['open'];
  store?: (store: CloudStore) => CloudStore;
  /** Replaces the store below `folder`. */
  shared?: CloudStore;
  sweepMs?: number;
  /** Of each token and person. */
  wakesPerHour?: number;
  historyLimits?: EventHistoryLimits;
  /** Wraps the journal of cloud events. */
  history?: (history: CloudHistory) => CloudHistory;
}

export interface Cloud {
  world: World;
  views: CloudViews;
  clusters: Ref<ClustersProtocol>;
  workloads: Ref<WorkloadsProtocol>;
  sweeper: Ref<SweeperProtocol>;
  policies: Ref<PoliciesProtocol>;
  principals: Ref<PrincipalsProtocol>;
  operations: Ref<CloudOperationsProtocol>;
  cloudEvents: Ref<CloudEventsProtocol>;
  tethers: Stand<TethersProtocol>;
  events: Stand<EventsProtocol>;
  folder: string;
  vault: Vault;
  /** Registers and syncs a kubeconfig; returns its id. */
  add(kubeconfig: string, name?: string): Promise<string>;
  /** The list as a client reads it. */
  list(clusterId?: string): Json[];
  /** One entry of the list, by `namespace/name`. */
  find(name: string): Json;
  /** Waits until `check` holds for a workload in the list. */
  until(name: string, check: (row: Json) => boolean): Promise<Json>;
  stop(): Promise<void>;
}

export const parse = async (text: string): Promise<ClusterAccess> => parseKubeconfig(text, Date.now());

/** A double with Deployments of three replicas in the namespace web; stopped after the test. */
export async function doubleWith(...names: string[]): Promise<Double> {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  for (const name of names) double.put('Deployment', workload('web', name, 3));
  return double;
}

/** Limits a cluster to `namespaces`; none: all. */
export const giveNamespaces = ({ clusters }: Pick<Cloud, 'clusters'>, id: string, namespaces: string[]) => {
  const nothing = { name: null, provider: null, kubeconfig: null, renewToken: false };
  return clusters.ask('change', { id, change: { ...nothing, namespaces } });
};

/** A client's registration, with `more` added. */
export const clusterInput = (more: Partial<ClusterInput>): ClusterInput => ({
  name: 'one',
  provider: 'other',
  kubeconfig: null,
  inCluster: false,
  namespaces: [],
  renewToken: false,
  ...more,
});

/** The embedded store in a folder; closed after the test, or earlier by hand. */
export function openCloudStore(folder: string): { cloudStore: CloudStore; close(): Promise<void> } {
  const store = openStore(join(folder, 'store.mdb'));
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (isOpen) await store.close();
    isOpen = false;
  };
  afterThisTest(close);
  return { cloudStore: embeddedCloudStore(store), close };
}

/** API servers send a bookmark about as often. */
const BOOKMARK_MS = 60_000;

/**
 * The double sends no bookmarks, so minutes of virtual time would end a watch as too silent, and the time
 * until it is made again would not pass.
 */
function withBookmarks(cluster: KubeCluster, clock: TestClock): KubeCluster {
  const watch = cluster.watch.bind(cluster);
  cluster.watch = (resource, from, handler, signal) => {
    const stop = clock.every(BOOKMARK_MS, () => handler.onEvent(null));
    return watch(resource, from, handler, signal).finally(stop);
  };
  return cluster;
}

export async function cloud(options: CloudOptions = {}): Promise<Cloud> {
  // The actors of a world that was made before write to the store until it ends.
  const opened = closedLast(() => {
    const made = options.folder ?? tempDir();
    const store = options.shared
      ? { cloudStore: options.shared, close: async () => undefined }
      : openCloudStore(made);
    return { folder: made, store };
  });
  const { folder } = opened;
  const { cloudStore: embedded, close: closeStore } = opened.store;
  const cloudStore = options.store?.(embedded) ?? embedded;
  const key = options.vault ?? createVault(randomBytes(32));
  const here = options.world ?? world({ clock: options.clock ?? realTime });
  const views = options.views ?? new CloudViews();
  await here.start('cloudviews', cloudViewsActor, views);
  const cloudEvents = await here.start('cloudevents', cloudEventsActor, {
    openHistory: () => {
      const limits = options.historyLimits ?? CLOUD_EVENTS.history;
      const history = new EventHistory(join(folder, 'cloud-events'), limits);
      return options.history?.(history) ?? history;
    },
    report: () => undefined,
    subscribed: false,
    names: null,
  });
  let connections = 0;
  const client = (access: ClusterAccess, id: string, gate: WatchGate): KubeCluster => {
    connections += 1;
    const cluster = here.ref<ClusterProtocol>(`cluster:${id}.${connections}`);
    const made = createClusterClient({ access, cluster, ensure: async () => null, clock: realTime, gate });
    // On both sides of the actor: from the other one they may come too late for the watch.
    return withBookmarks(made, here.clock);
  };
  here.node.family('cluster:', clusterActor, () => ({
    open: (access) => withBookmarks(openKubeCluster(access, ANY, realTime), here.clock),
  }));
  const workloads = await here.start('workloads', workloadsActor, {
    store: cloudStore,
    vault: key,
    open: options.open ?? client,
    podAccess: options.podAccess ?? null,
    ownPod: options.ownPod ?? null,
    self: options.self ?? 'here',
    quotas: { wakesPerHour: options.wakesPerHour ?? 0 },
  });
  const events = options.events ?? (await here.stand<EventsProtocol>('events'));
  const tethers = await here.stand<TethersProtocol>('tethers', {
    closeCluster: () => null,
    renewCluster: () => null,
    revoked: () => null,
  });
  const operations = await here.start('operations', cloudOperationsActor, { store: cloudStore });
  const clusters = await here.start('clusters', clustersActor, {
    store: cloudStore,
    vault: key,
    parse,
    rule: options.rule ?? ANY,
    allowInCluster: options.allowInCluster ?? false,
    inPod: options.podAccess !== undefined,
  });
  const principals = await here.start('principals', principalsActor, { store: cloudStore, hasRelay: false });
  const policies = await here.start('policies', policiesActor, { store: cloudStore });
  const sweeper = await here.start('sweeper', sweeperActor, { intervalMs: options.sweepMs ?? 600_000 });
  // The owners have sent their initial state once one of them answers.
  await workloads.ask('idle', {});
  const list = (clusterId?: string): Json[] => JSON.parse(views.workloads(clusterId ?? null).toString());
  const find = (name: string): Json => list().find((row) => `${row.namespace}/${row.name}` === name);
  return {
    world: here,
    views,
    clusters,
    workloads,
    sweeper,
    policies,
    principals,
    operations,
    cloudEvents,
    tethers,
    events,
    folder,
    vault: key,
    list,
    find,
    async add(kubeconfig, name = 'test') {
      const { id } = await clusters.ask('register', {
        input: clusterInput({ name, kubeconfig }),
      });
      await clusters.ask('sync', { id });
      return id;
    },
    until: (name, check) =>
      eventually(() => {
        const row = find(name);
        return row && check(row) ? row : undefined;
      }),
    async stop() {
      await here.node.stop();
      await closeStore();
    },
  };
}
