// The agents as the gateway sees them.
import { AGENT_TYPES, agentKind } from '../../protocol/agent_types.ts';
import type { GatewayRoute } from '../../protocol/gateway.ts';
import { portOfAgent } from '../../protocol/service.ts';
import type { ServiceViews } from './service_views.ts';

/** The `Host` that the gateway sends; null: the client's. docs/reference.md "Gateway". */
function hostHeaderOf(agentType: string | null, port: number): string | null {
  // A record stored by a newer version may have a type that is not in the table.
  const type = AGENT_TYPES.find((known) => known === agentType);
  return (type && agentKind(type).hostHeader?.replace('$PORT', String(port))) ?? null;
}

/** Every agent, by name. */
function gatewayRoutes(views: ServiceViews): GatewayRoute[] {
  return views.agentRows().map(({ spec, agent, state }) => {
    const port = portOfAgent((state?.process ?? spec).port);
    return {
      hostname: agent.hostname,
      name: spec.name,
      port,
      pid: state?.process?.pid ?? null,
      hostHeader: hostHeaderOf(agent.agentType, port),
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
