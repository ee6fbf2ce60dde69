// The contents of the doors thread: `door:<name>` of every service that may sleep.
import { doorActor } from '../actors/doors/door.ts';
import { loadLibc } from '../adapters/process/libc.ts';
import { ServiceDialer } from '../adapters/service_dialer.ts';
import type { Node } from '../runtime/actor.ts';
import { reportCrash } from './daemon_log.ts';
import { runThread } from './thread_instance.ts';

/** Opens no door yet: the services do. */
async function setupDoors(node: Node): Promise<void> {
  const libc = await loadLibc();
  const dialer = new ServiceDialer();
  node.scope.defer(() => dialer.close());
  node.family('door:', doorActor, () => ({ dialer, libc }));
}

/** The life of the thread: see `runThread`. */
export const runDoorsThread = (): Promise<void> => runThread(setupDoors, reportCrash);
