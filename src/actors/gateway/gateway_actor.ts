import type { GatewayProtocol } from '../../protocol/gateway.ts';
import { actor, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { WakeAgent } from './agent_wakes.ts';
import { Gateway } from './gateway_server.ts';

const DEADLINE = { deadlineMs: SERVICE.askDeadlineMs };

/**
 * State: the listeners and the table of host names. Rebuilt from: the main thread, which holds the port, and
 * sends settings and routes again after the thread restarts.
 */
export const gatewayActor = actor<GatewayProtocol, null>('gateway', (context) => {
  const wake: WakeAgent = async (name) => {
    const asked = context.ref('groups').ask('wake', { name, timeoutMs: null }, DEADLINE);
    return { pid: (await asked).pid };
  };
  // Without a reply, the table that the gateway has is the best one.
  const update = (): Promise<null> =>
    tolerateFailure(context.ref('routes').ask('flush', null, DEADLINE), () => null);
  const settings = { agentDomain: '', allowedExtensions: [], tokens: [] };
  const gateway = new Gateway(settings, { wake, update });
  context.scope.defer(() => gateway.close());
  return {
    listen: async ({ port, descriptors, agentDomain, allowedExtensions, tokens }) => {
      gateway.settings = { agentDomain, allowedExtensions, tokens };
      await gateway.listen(port, descriptors);
      return null;
    },
    adopt: ({ descriptors }) => {
      gateway.adopt(descriptors);
      return null;
    },
    routes: ({ rows }) => {
      gateway.setRoutes(rows);
      return null;
    },
    accessRules: ({ tokens, allowedExtensions }) => {
      gateway.settings = { ...gateway.settings, tokens, allowedExtensions };
      return null;
    },
  };
});
