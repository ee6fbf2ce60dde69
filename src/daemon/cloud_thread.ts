// The contents of the cloud thread.
import { hostname } from 'node:os';
import { cloudOperationsActor } from '../actors/cloud/cloud_operations.ts';
import { tethersActor } from '../actors/tethers/tethers.ts';
import type { CloudStore } from '../adapters/storage/cloud_store.ts';
import { openDaemonStore, openSharedStore } from '../adapters/storage/daemon_store.ts';
import { embeddedCloudStore } from '../adapters/storage/embedded_cloud.ts';
import type { Store } from '../adapters/storage/store_tables.ts';
import type { RemoteBerth } from '../client/remote_berth.ts';
import type { Node } from '../runtime/actor.ts';
import { berthName } from '../settings/state_dir.ts';
import { statePaths } from '../settings/state_paths.ts';
import { report, reportCrash } from './daemon_log.ts';
import { endThread } from './end_thread.ts';
import { historyIn, startCloud, startEvents, vaultOf } from './start_cloud.ts';
import type { ThreadData } from './thread_data.ts';
import { runThread } from './thread_instance.ts';

/** Starts what tethers to another Berth's workloads need: no clusters, and so no vault. */
async function setupRemote(
  node: Node,
  data: ThreadData,
  store: CloudStore,
  remote: RemoteBerth,
): Promise<void> {
  // There are no clusters here that would tell their names.
  await startEvents(node, historyIn(data.stateDir), new Map());
  const { remoteWorkloads } = await import('./remote_berth.ts');
  await node.start('tethers', tethersActor, {
    store,
    ports: data.cloud.tetherPorts,
    hasRelay: false,
    remote: remoteWorkloads(remote),
    isServer: false,
    quotas: data.cloud.quotas,
  });
  await node.start('operations', cloudOperationsActor, { store });
  await node.ref('tethers').ask('boot', {});
}

/** Opens the store of the state directory. On a server, nobody else has it open. */
async function openEmbedded({ stateDir, storeInFlight, cloud }: ThreadData): Promise<Store> {
  const options = { paths: statePaths(stateDir), inFlight: storeInFlight, report };
  if (!cloud.isServer) return openSharedStore(options);
  // A server has no services, so there is nothing to seal.
  return openDaemonStore({ ...options, restore: null, isAlone: false, seal: (stored) => stored });
}

/** Opens the store and the vault, and starts the cloud's actors, unless the key does not match the store. */
async function setupCloud(node: Node, data: ThreadData): Promise<void> {
  const { keyFile, remote, databaseUrl } = data.cloud;
  if (databaseUrl !== '') {
    const { setupShared } = await import('./shared_cloud.ts');
    return setupShared(node, data, `${hostname()} (pid ${process.pid})`);
  }
  const embedded = await openEmbedded(data);
  node.scope.defer(() => embedded.close());
  const store = embeddedCloudStore(embedded);
  if (remote) return setupRemote(node, data, store, remote);
  const vault = await vaultOf(node, keyFile, store);
  if (!vault) return;
  const self = berthName(data.stateDir);
  const openHistory = historyIn(data.stateDir);
  await startCloud(node, data, { store, openHistory, vault, self });
}

/**
 * The life of the thread: see `runThread`. With a shared database, it ends with an actor that has crashed too
 * often, such as when the database refused its changes: that releases the lease.
 */
export function runCloudThread(): Promise<void> {
  let isShared = false;
  const setup = (node: Node, given: unknown): Promise<void> => {
    const data = given as ThreadData;
    isShared = data.cloud.databaseUrl !== '';
    return setupCloud(node, data);
  };
  return runThread(setup, (address, error, ended) => {
    reportCrash(address, error, ended);
    if (ended && isShared) endThread(`${address} has failed too often, so this replica starts again`);
  });
}
