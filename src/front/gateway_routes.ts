// What the gateway must know of the agents, told whenever that has changed.
import type { GatewayRoute } from '../protocol/gateway.ts';
import type { Views } from './views.ts';

/** ollama answers only to addresses: docs/reference.md "Gateway". */
const hostOf = (agentType: string | null, port: number): string | null =>
  agentType === 'ollama' ? `127.0.0.1:${port}` : null;

/** Every agent as the gateway reaches it. */
function gatewayRoutes(views: Views): GatewayRoute[] {
  return views.agentRows().map(({ spec, agent, state }) => {
    const port = state?.process?.port ?? spec.port;
    const active = state?.process != null;
    return { hostname: agent.hostname, name: spec.name, port, active, host: hostOf(agent.agentType, port) };
  });
}

/** Calls `tell` with all routes once per turn in which `changed` was called and they are not what was told last. */
export function routesTeller(views: Views, tell: (routes: GatewayRoute[]) => void): () => void {
  let told = '[]';
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    setImmediate(() => {
      isWaiting = false;
      const routes = gatewayRoutes(views);
      const text = JSON.stringify(routes);
      if (text === told) return;
      told = text;
      tell(routes);
    });
  };
}
