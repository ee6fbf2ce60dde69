// Where every actor lives and who may ask whom. Asks go down (to a larger rank), tells go up: so no two
// actors can wait for each other.

import type { PlacementKey } from '../runtime/actor.ts';
import type { PoolSizes } from '../settings/pool_sizes.ts';
import type { AgentStateProtocol } from './agent_state.ts';
import type { AgentsProtocol } from './agents.ts';
import type { SweeperProtocol, WorkloadsProtocol } from './cloud.ts';
import type { CloudEventsProtocol } from './cloud_events.ts';
import type { CloudOperationsProtocol } from './cloud_operations.ts';
import type { CloudViewsProtocol } from './cloud_views.ts';
import type { ClusterProtocol } from './cluster_calls.ts';
import type { ClustersProtocol } from './clusters.ts';
import type { CommandProtocol } from './commands.ts';
import type { DoorProtocol } from './doors.ts';
import type { EventsProtocol } from './events.ts';
import type { GatewayProtocol, RoutesProtocol } from './gateway.ts';
import type { GroupsProtocol } from './groups.ts';
import type { HostProtocol } from './host.ts';
import type { McpCallersProtocol, McpProtocol } from './mcp.ts';
import type { NoticesProtocol } from './notices.ts';
import type { PoliciesProtocol } from './policies.ts';
import type { PortsProtocol } from './ports.ts';
import type { PrincipalsProtocol } from './principals.ts';
import type { PromptProtocol } from './prompts.ts';
import type { RegistryProtocol } from './registry.ts';
import type { RelayProtocol } from './relay.ts';
import type { SchedulesProtocol } from './schedules.ts';
import type { ServiceProtocol } from './service.ts';
import type { StacksProtocol } from './stacks.ts';
import type { StatsProtocol } from './stats.ts';
import type { TerminalProtocol, TerminalViewersProtocol } from './terminal.ts';
import type { TetherProtocol, TethersProtocol } from './tethers.ts';
import type { ThreadsProtocol } from './threads.ts';
import type { ViewsProtocol } from './views.ts';
import type { WatchedServiceProtocol, WatcherProtocol } from './watcher.ts';

/** Every actor of the product with its protocol. */
interface Actors {
  views: ViewsProtocol;
  cloudviews: CloudViewsProtocol;
  viewers: TerminalViewersProtocol;
  mcpcallers: McpCallersProtocol;
  mcp: McpProtocol;
  agents: AgentsProtocol;
  groups: GroupsProtocol;
  stacks: StacksProtocol;
  schedules: SchedulesProtocol;
  registry: RegistryProtocol;
  stats: StatsProtocol;
  [service: `service:${string}`]: ServiceProtocol &
    TerminalProtocol &
    WatchedServiceProtocol &
    CommandProtocol &
    AgentStateProtocol &
    PromptProtocol;
  ports: PortsProtocol;
  events: EventsProtocol;
  notices: NoticesProtocol;
  watcher: WatcherProtocol;
  host: HostProtocol;
  [door: `door:${string}`]: DoorProtocol;
  gateway: GatewayProtocol;
  routes: RoutesProtocol;
  sweeper: SweeperProtocol;
  policies: PoliciesProtocol;
  operations: CloudOperationsProtocol;
  clusters: ClustersProtocol;
  tethers: TethersProtocol;
  threads: ThreadsProtocol;
  [tether: `tether:${string}`]: TetherProtocol;
  relay: RelayProtocol;
  principals: PrincipalsProtocol;
  workloads: WorkloadsProtocol;
  [cluster: `cluster:${string}`]: ClusterProtocol;
  cloudevents: CloudEventsProtocol;
}

/** The family of the actors of services. */
export const SERVICE_PREFIX = 'service:';

/** The address of the actor of the service `name`. */
export const serviceAddress = (name: string): `service:${string}` => `${SERVICE_PREFIX}${name}`;

declare module '../runtime/actor.ts' {
  interface Directory extends Actors {}
}

/** The kinds of node. Each is a thread or a process; those in `PoolSizes` are pools of threads. */
export type NodeKind =
  | 'front'
  | 'services'
  | 'cloud'
  | 'clusters'
  | 'tethers'
  | 'doors'
  | 'gateway'
  | 'watcher'
  | 'mcp'
  | 'host';

interface Placement {
  /** The kind of node that holds the actor. */
  readonly node: NodeKind;
  readonly rank: number;
}

/** The one table of placement and rank. An actor without a row does not compile. */
const PLACEMENTS = {
  views: { node: 'front', rank: 0 },
  cloudviews: { node: 'front', rank: 0 },
  viewers: { node: 'front', rank: 0 },
  mcpcallers: { node: 'front', rank: 0 },
  mcp: { node: 'mcp', rank: 5 },
  agents: { node: 'services', rank: 10 },
  groups: { node: 'services', rank: 20 },
  stacks: { node: 'services', rank: 25 },
  registry: { node: 'services', rank: 30 },
  schedules: { node: 'services', rank: 35 },
  stats: { node: 'services', rank: 40 },
  'service:': { node: 'services', rank: 50 },
  ports: { node: 'services', rank: 60 },
  notices: { node: 'services', rank: 65 },
  events: { node: 'services', rank: 70 },
  watcher: { node: 'watcher', rank: 75 },
  host: { node: 'host', rank: 80 },
  gateway: { node: 'gateway', rank: 5 },
  sweeper: { node: 'cloud', rank: 110 },
  policies: { node: 'cloud', rank: 112 },
  operations: { node: 'cloud', rank: 115 },
  clusters: { node: 'cloud', rank: 120 },
  tethers: { node: 'cloud', rank: 125 },
  'tether:': { node: 'tethers', rank: 130 },
  relay: { node: 'tethers', rank: 130 },
  'door:': { node: 'doors', rank: 135 },
  principals: { node: 'cloud', rank: 138 },
  workloads: { node: 'cloud', rank: 140 },
  cloudevents: { node: 'cloud', rank: 145 },
  threads: { node: 'front', rank: 150 },
  routes: { node: 'front', rank: 150 },
  'cluster:': { node: 'clusters', rank: 155 },
} as const satisfies Record<PlacementKey<keyof Actors & string>, Placement>;

const placements: ReadonlyMap<string, Placement> = new Map(Object.entries(PLACEMENTS));

/** The row of `address` itself, or of its family. */
const placementOf = (address: string): Placement | undefined =>
  placements.get(address.slice(0, address.indexOf(':') + 1) || address);

/**
 * Whether an actor at `from` may ask one at `to`: only downwards. Addresses without a row are unrestricted.
 */
export function mayAsk(from: string, to: string): boolean {
  const above = placementOf(from);
  const below = placementOf(to);
  return !above || !below || above.rank < below.rank;
}

/** The node of the services thread. Process hosts of other versions know it by this name. */
export const SERVICES_NODE = 'services-0';

const isPool = (kind: NodeKind): kind is keyof PoolSizes => kind === 'tethers' || kind === 'clusters';

const pooledNode = (kind: keyof PoolSizes, index: number): string => `${kind}-${index}`;

/** The names of the nodes of `kind`. */
export function nodesOf(kind: NodeKind, pools: PoolSizes): string[] {
  if (kind === 'services') return [SERVICES_NODE];
  if (isPool(kind)) return Array.from({ length: pools[kind] }, (_, index) => pooledNode(kind, index));
  return [kind];
}

/** FNV-1a hash of the address, so that an actor always stays on the same thread of its pool. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value >>> 0;
}

/** Returns a function from an address to its node, undefined for an address without a row. */
export function createNodeLookup(pools: PoolSizes): (address: string) => string | undefined {
  return (address) => {
    const kind = placementOf(address)?.node;
    if (kind === 'services') return SERVICES_NODE;
    if (kind !== undefined && isPool(kind)) return pooledNode(kind, hash(address) % pools[kind]);
    return kind;
  };
}
