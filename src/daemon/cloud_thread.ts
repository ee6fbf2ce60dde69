// The contents of the cloud thread.
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { cloudEventsActor } from '../actors/cloud/cloud_events.ts';
import { cloudOperationsActor } from '../actors/cloud/cloud_operations.ts';
import { clustersActor } from '../actors/cloud/clusters.ts';
import { policiesActor } from '../actors/cloud/policies.ts';
import { sweeperActor } from '../actors/cloud/sweeper.ts';
import { workloadsActor } from '../actors/cloud/workloads.ts';
import { tethersActor } from '../actors/tethers/tethers.ts';
import { openKubeCluster } from '../adapters/kube/kube_cluster.ts';
import { readOwnPod } from '../adapters/kube/own_pod.ts';
import type { CloudStore } from '../adapters/storage/cloud_store.ts';
import { openSharedStore } from '../adapters/storage/daemon_store.ts';
import { embeddedCloudStore } from '../adapters/storage/embedded_cloud.ts';
import { openVault, type Vault, VaultError } from '../adapters/storage/vault.ts';
import type { RemoteBerth } from '../client/remote_berth.ts';
import type { Node } from '../runtime/actor.ts';
import { CLOUD_EVENTS } from '../settings/cloud_limits.ts';
import { SettingsError } from '../settings/config.ts';
import { statePaths } from '../settings/state_paths.ts';
import { report, reportCrash } from './daemon_log.ts';
import { createJobPool } from './job_pool.ts';
import type { ThreadData } from './thread_data.ts';
import { runThread } from './thread_instance.ts';

/** The name of this Berth on the workloads of a cluster: its machine, and a mark of its state directory. */
const berthName = (stateDir: string): string =>
  `${hostname()}/${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}`;

/**
 * Opens the vault and starts the cloud's actors. With a key file that does not match the store, starts and
 * overwrites nothing: every request of the cloud API gets the reason.
 */
/** Starts what there is of tethers to the workloads of another Berth: no cluster, and so no vault. */
async function setupRemote(
  node: Node,
  data: ThreadData,
  store: CloudStore,
  remote: RemoteBerth,
): Promise<void> {
  await startEvents(node, data);
  const { remoteWorkloads } = await import('./remote_berth.ts');
  await node.start('tethers', tethersActor, {
    store,
    ports: data.cloud.tetherPorts,
    hasRelay: false,
    remote: remoteWorkloads(remote),
  });
  await node.start('operations', cloudOperationsActor, { store });
  await node.ref('tethers').ask('boot', {});
}

const startEvents = (node: Node, { stateDir }: ThreadData) =>
  node.start('cloudevents', cloudEventsActor, {
    folder: statePaths(stateDir).cloudEvents,
    limits: CLOUD_EVENTS.history,
    report,
    subscribed: false,
  });

async function setupCloud(node: Node, data: ThreadData): Promise<void> {
  const paths = statePaths(data.stateDir);
  const embedded = openSharedStore({ paths, inFlight: data.storeInFlight, report });
  const jobs = createJobPool();
  node.scope.defer(() => embedded.close());
  node.scope.defer(() => jobs.close());
  const store = embeddedCloudStore(embedded);
  const { keyFile, tetherPorts, sweepMs, allowInCluster, relay, remote } = data.cloud;
  if (remote) return setupRemote(node, data, store, remote);
  let vault: Vault;
  try {
    vault = await openVault(keyFile, store.canary);
  } catch (error) {
    if (!(error instanceof VaultError || error instanceof SettingsError)) throw error;
    report(`the cloud part is closed: ${error.message}`);
    const hint = 'Put the key file back that the store was sealed with, or name it in cloud.key_file.';
    node.ref('cloudviews').tell('unavailable', { reason: error.message, hint });
    return;
  }
  await startEvents(node, data);
  const rule = data.addressRule;
  const pod = readOwnPod(process.env) ?? null;
  await node.start('workloads', workloadsActor, {
    store,
    vault,
    open: (access) => openKubeCluster(access, rule, node.clock),
    podAccess: pod?.access ?? null,
    ownPod: pod,
    self: berthName(data.stateDir),
  });
  const opener = await node.start('tethers', tethersActor, {
    store,
    ports: tetherPorts,
    hasRelay: relay !== null,
    remote: null,
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
  // Reopen the active tethers before answering anything. `clusters`, which receives the state of each
  // cluster, has started by now.
  await opener.ask('boot', {});
  await node.start('policies', policiesActor, { store });
  await node.start('sweeper', sweeperActor, { intervalMs: sweepMs });
}

/** The life of the thread: see `runThread`. */
export const runCloudThread = (): Promise<void> =>
  runThread((node, data) => setupCloud(node, data as ThreadData), reportCrash);
