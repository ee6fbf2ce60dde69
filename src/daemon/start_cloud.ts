// Starts the actors of the cloud part on the cloud thread, over either store.
import { type CloudEventsConfig, cloudEventsActor } from '../actors/cloud/cloud_events.ts';
import { cloudOperationsActor } from '../actors/cloud/cloud_operations.ts';
import { createClusterClient } from '../actors/cloud/cluster_client.ts';
import { clustersActor } from '../actors/cloud/clusters.ts';
import { policiesActor } from '../actors/cloud/policies.ts';
import { principalsActor } from '../actors/cloud/principals.ts';
import { sweeperActor } from '../actors/cloud/sweeper.ts';
import type { WatchGate } from '../actors/cloud/watch_gate.ts';
import { workloadsActor } from '../actors/cloud/workloads.ts';
import { tethersActor } from '../actors/tethers/tethers.ts';
import type { KubeCluster } from '../adapters/kube/kube_cluster.ts';
import { readOwnPod } from '../adapters/kube/own_pod.ts';
import type { CloudHistory } from '../adapters/storage/cloud_history.ts';
import type { CloudStore } from '../adapters/storage/cloud_store.ts';
import { EventHistory } from '../adapters/storage/event_history.ts';
import { isDiskFull } from '../adapters/storage/store_file.ts';
import { openVault, type Vault, VaultError } from '../adapters/storage/vault.ts';
import type { ClusterAccess } from '../protocol/clusters.ts';
import { fail } from '../protocol/errors.ts';
import { newUlid } from '../protocol/ulid.ts';
import type { Node } from '../runtime/actor.ts';
import { CLOUD_EVENTS } from '../settings/cloud_limits.ts';
import { SettingsError } from '../settings/config.ts';
import { statePaths } from '../settings/state_paths.ts';
import { report } from './daemon_log.ts';
import { createJobPool } from './job_pool.ts';
import type { ThreadData } from './thread_data.ts';

/** The journal of cloud events in a state directory. */
export const historyIn = (stateDir: string) => (): CloudHistory =>
  new EventHistory(statePaths(stateDir).cloudEvents, CLOUD_EVENTS.history);

/** Starts the journal of cloud events. `names`: as in its config. */
export const startEvents = (
  node: Node,
  openHistory: CloudEventsConfig['openHistory'],
  names: CloudEventsConfig['names'],
) => node.start('cloudevents', cloudEventsActor, { openHistory, report, subscribed: false, names });

/**
 * The vault of a store; null when the key file does not match the store, which every answer of the cloud API
 * then reports. In that case nothing is overwritten. Fails storage_full when there is no room for a new key.
 */
export async function vaultOf(node: Node, keyFile: string, store: CloudStore): Promise<Vault | null> {
  try {
    return await openVault(keyFile, store.canary);
  } catch (error) {
    if (!(error instanceof VaultError || error instanceof SettingsError)) throw error;
    if (isDiskFull(error.cause)) throw fail('storage_full', error.message);
    report(`the cloud part is closed: ${error.message}`);
    const hint = 'Put the key file back that the store was sealed with, or name it in cloud.key_file.';
    const reason = `the cloud part is closed: ${error.message}`;
    node.ref('cloudviews').tell('unavailable', { code: 'key_unusable', reason, hint, holder: null });
    return null;
  }
}

export interface CloudParts {
  store: CloudStore;
  /** Opens the journal of cloud events. */
  openHistory: CloudEventsConfig['openHistory'];
  vault: Vault;
  /** The name of this Berth on the workloads of a cluster. */
  self: string;
}

/** The client of the cluster `id`, with connections of its own on a thread of the pool `clusters`. */
function clusterClient(node: Node, id: string, access: ClusterAccess, gate: WatchGate): KubeCluster {
  // Of its own, also after a restart of this thread: the connections of before may still be closing.
  const address = `cluster:${id}.${newUlid(node.clock.now())}` as const;
  return createClusterClient({
    access,
    cluster: node.ref(address),
    ensure: () => node.ref('threads').ask('ensure', { address }),
    clock: node.clock,
    gate,
  });
}

/** Starts the actors. Resolves when the views have all rows. */
export async function startCloud(
  node: Node,
  data: ThreadData,
  { store, openHistory, vault, self }: CloudParts,
): Promise<void> {
  const { tetherPorts, sweepMs, allowInCluster, relay, isServer, quotas } = data.cloud;
  const jobs = createJobPool();
  node.scope.defer(() => jobs.close());
  await startEvents(node, openHistory, null);
  const rule = data.addressRule;
  const pod = readOwnPod(process.env) ?? null;
  await node.start('workloads', workloadsActor, {
    store,
    vault,
    open: (access, id, gate) => clusterClient(node, id, access, gate),
    podAccess: pod?.access ?? null,
    ownPod: pod,
    self,
    quotas,
  });
  const opener = await node.start('tethers', tethersActor, {
    store,
    ports: tetherPorts,
    hasRelay: relay !== null,
    remote: null,
    isServer,
    quotas,
  });
  await node.start('operations', cloudOperationsActor, { store });
  await node.start('clusters', clustersActor, {
    store,
    vault,
    parse: (upload) => jobs.run('parseKubeconfig', { upload, now: Date.now() }),
    rule,
    allowInCluster,
    inPod: pod !== null,
  });
  // Active tethers are reopened before anything is answered. `clusters`, which receives the state of each
  // cluster, has already started.
  await opener.ask('boot', {});
  // Not before there are workloads: it closes what it carries without them.
  if (relay) node.ref('relay').tell('passOn', { target: null });
  await node.start('principals', principalsActor, { store, hasRelay: relay !== null });
  await node.start('policies', policiesActor, { store });
  await node.start('sweeper', sweeperActor, { intervalMs: sweepMs });
  node.ref('cloudviews').tell('available', {});
}
