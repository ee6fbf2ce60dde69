// The contents of a clusters thread: its share of `cluster:<id>`.
import { clusterActor } from '../actors/clusters/cluster.ts';
import { mayChange } from '../adapters/change_permit.ts';
import { openKubeCluster } from '../adapters/kube/kube_cluster.ts';
import { fail } from '../protocol/errors.ts';
import type { Node } from '../runtime/actor.ts';
import { reportCrash } from './daemon_log.ts';
import type { ThreadData } from './thread_data.ts';
import { runThread } from './thread_instance.ts';

/** Connects to no cluster: `workloads` opens them. */
function setupClusters(node: Node, { addressRule, cloud }: ThreadData): void {
  const assertMayChange = (): void => {
    if (!mayChange(cloud.changePermit))
      throw fail('standing_by', 'the shared database does not confirm the lease');
  };
  node.family('cluster:', clusterActor, () => ({
    open: (access) => openKubeCluster(access, addressRule, node.clock, { assertMayChange }),
  }));
}

/** The life of the thread: see `runThread`. */
export const runClustersThread = (): Promise<void> =>
  runThread((node, data) => setupClusters(node, data as ThreadData), reportCrash);
