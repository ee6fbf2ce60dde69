// Services and agents as the gateway sees them.
import { AGENT_TYPES, agentKind } from '../../protocol/agent_types.ts';
import type { GatewayRoute } from '../../protocol/gateway.ts';
import { gatewayHostname } from './service_json.ts';
import type { ServiceViews } from './service_views.ts';

/** The `Host` that the gateway sends; null: the client's. docs/reference.md "Gateway". */
function hostHeaderOf(agentType: string | null, port: number): string | null {
  // A record stored by a newer version may have a type that is not in the table.
  const type = AGENT_TYPES.find((known) => known === agentType);
  return (type && agentKind(type).hostHeader?.replace('$PORT', String(port))) ?? null;
}

/** Every service and agent that has a host name, by name. */
export function gatewayRoutes(views: ServiceViews): GatewayRoute[] {
  return views.rowsWithSpec().flatMap(({ spec, state }) => {
    const hostname = gatewayHostname(spec);
    const { port } = state?.process ?? spec;
    if (hostname === null || port === null) return [];
    const { name, agent } = spec;
    const pid = state?.process?.pid ?? null;
    const hostHeader = agent && hostHeaderOf(agent.agentType, port);
    const isDoorOpen = state?.isDoorOpen ?? false;
    const isAgent = agent !== null;
    const isAsleep = isAgent && state?.status === 'sleeping';
    const isStarting = isAgent && state?.status === 'starting' && pid === null;
    return [{ hostname, name, isAgent, port, pid, isDoorOpen, isAsleep, isStarting, hostHeader }];
  });
}
