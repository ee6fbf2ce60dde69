// The contents of the gateway thread.
import { gatewayActor } from '../actors/gateway/gateway_actor.ts';
import type { Node } from '../runtime/actor.ts';
import { reportCrash } from './daemon_log.ts';
import { runThread } from './thread_instance.ts';

/** Starts the gateway's actor, which listens once the main thread sends it the port. */
async function setupGateway(node: Node): Promise<void> {
  await node.start('gateway', gatewayActor, null);
}

/** The life of the thread: see `runThread`. */
export const runGatewayThread = (): Promise<void> => runThread(setupGateway, reportCrash);
