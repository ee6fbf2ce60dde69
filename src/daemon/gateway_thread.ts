// What the gateway thread holds.
import { gatewayActor } from '../actors/gateway/gateway_actor.ts';
import type { Node } from '../runtime/actor.ts';

/** Starts the gateway's actor, which listens once the main thread tells it the port. */
export async function setupGateway(node: Node): Promise<void> {
  await node.start('gateway', gatewayActor, null);
}
