import type { GatewayProtocol } from '../../protocol/gateway.ts';
import { actor } from '../../runtime/actor.ts';
import { Gateway } from './gateway_server.ts';

/**
 * State: the listener and the table of host names. Rebuilt from: the main thread, which tells settings and
 * routes again when the thread was restarted.
 */
export const gatewayActor = actor<GatewayProtocol, null>('gateway', (context) => {
  const gateway = new Gateway({ agentDomain: '', allowedExtensions: [], tokens: [] });
  context.scope.defer(() => gateway.close());
  return {
    listen: async ({ port, agentDomain, allowedExtensions, tokens }) => {
      gateway.settings = { agentDomain, allowedExtensions, tokens };
      return { port: await gateway.listen(port) };
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
