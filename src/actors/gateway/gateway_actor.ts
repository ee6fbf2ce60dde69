import type { GatewayProtocol } from '../../protocol/gateway.ts';
import { actor } from '../../runtime/actor.ts';
import { Gateway } from './gateway_server.ts';

/**
 * State: the listeners and the table of host names. Rebuilt from: the main thread, which holds the port, and
 * tells settings and routes again when the thread was restarted.
 */
export const gatewayActor = actor<GatewayProtocol, null>('gateway', (context) => {
  const gateway = new Gateway({ agentDomain: '', allowedExtensions: [], tokens: [] });
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
