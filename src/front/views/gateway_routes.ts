// What the gateway must know of the agents, told whenever that has changed.
import type { GatewayRoute } from '../../protocol/gateway.ts';
import type { ServiceViews } from './service_views.ts';

/** ollama answers only to addresses: docs/reference.md "Gateway". */
const hostOverride = (agentType: string | null, port: number): string | null =>
  agentType === 'ollama' ? `127.0.0.1:${port}` : null;

/** Every agent as the gateway reaches it. */
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

/** Calls `tell` with all routes once per turn in which `changed` was called and they are not what was told last. */
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
