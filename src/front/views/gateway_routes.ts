// What the gateway must know of the agents, told whenever that has changed.
import { AGENT_TYPES, agentKind } from '../../protocol/agent_types.ts';
import type { GatewayRoute } from '../../protocol/gateway.ts';
import type { ServiceViews } from './service_views.ts';

/** What the gateway sends as `Host`; null: what the client has sent. docs/reference.md "Gateway". */
function hostHeaderOf(agentType: string | null, port: number): string | null {
  // A record that a newer version has stored may have a type that is not in the table.
  const type = AGENT_TYPES.find((known) => known === agentType);
  return (type && agentKind(type).hostHeader?.replace('$PORT', String(port))) ?? null;
}

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
      hostHeader: hostHeaderOf(agent.agentType, port),
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
