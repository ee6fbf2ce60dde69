// The contents of the doors thread: `door:<name>` of every service that may sleep.
import { doorActor } from '../actors/doors/door.ts';
import { loadLibc } from '../adapters/process/libc.ts';
import { openLoopbackPeers } from '../adapters/process/loopback_peers.ts';
import { ServiceDialer } from '../adapters/service_dialer.ts';
import type { Node } from '../runtime/actor.ts';
import { reportCrash } from './daemon_log.ts';
import { runThread } from './thread_instance.ts';

/** Opens no doors: the services do. */
async function setupDoors(node: Node): Promise<void> {
  const libc = await loadLibc();
  const peers = await openLoopbackPeers();
  node.scope.defer(() => peers.close());
  const dialer = new ServiceDialer();
  node.scope.defer(() => dialer.close());
  node.family('door:', doorActor, () => ({ dialer, libc, peers }));
}

/** The life of the thread: see `runThread`. */
export const runDoorsThread = (): Promise<void> => runThread(setupDoors, reportCrash);
