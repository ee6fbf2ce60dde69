// What the gateway knows of the agents.
import type { GatewayRoute } from '../../protocol/gateway.ts';
import type { ServiceViews } from './service_views.ts';

/** ollama answers only to a Host that is an address: docs/reference.md "Gateway". */
const hostOverride = (agentType: string | null, port: number): string | null =>
  agentType === 'ollama' ? `127.0.0.1:${port}` : null;

/** Every agent, by name. */
function gatewayRoutes(views: ServiceViews): GatewayRoute[] {
  return views.agentRows().map(({ spec, agent, state }) => {
    const port = state?.process?.port ?? spec.port;
    const isRunning = state?.process != null;
    return {
      hostname: agent.hostname,
      name: spec.name,
      port,
      isRunning,
      hostHeader: hostOverride(agent.agentType, port),
    };
  });
}

/**
 * Returns a function that passes all routes to `onRoutes`, once per turn and only if they differ from the
 * last ones.
 */
export function gatewayRoutesPublisher(
  views: ServiceViews,
  onRoutes: (routes: GatewayRoute[]) => void,
): () => void {
  let lastPublished = '[]';
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      const routes = gatewayRoutes(views);
      const text = JSON.stringify(routes);
      if (text === lastPublished) return;
      lastPublished = text;
      onRoutes(routes);
    });
  };
}
