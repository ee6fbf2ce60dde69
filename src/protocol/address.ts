// Where every actor lives and who may ask whom. Asks go down (to a larger rank), tells go up: so no two actors can wait
// for each other.

interface ActorPlacement {
  /** The address, or a prefix that ends in a colon for a family. */
  address: string;
  /** The node (thread or process) that holds it; a family may be spread over several. */
  node: NodeName;
  rank: number;
}

export type NodeName = 'front' | 'services' | 'cloud' | 'tethers' | 'gateway' | 'host';

/** The one table of placement and rank. */
const ACTOR_PLACEMENTS: readonly ActorPlacement[] = [
  { address: 'views', node: 'front', rank: 0 },
  { address: 'cloudviews', node: 'front', rank: 0 },
  { address: 'viewers', node: 'front', rank: 0 },
  { address: 'agents', node: 'services', rank: 10 },
  { address: 'groups', node: 'services', rank: 20 },
  { address: 'registry', node: 'services', rank: 30 },
  { address: 'stats', node: 'services', rank: 40 },
  { address: 'service:', node: 'services', rank: 50 },
  { address: 'ports', node: 'services', rank: 60 },
  { address: 'events', node: 'services', rank: 70 },
  { address: 'host', node: 'host', rank: 80 },
  { address: 'gateway', node: 'gateway', rank: 5 },
  { address: 'sweeper', node: 'cloud', rank: 110 },
  { address: 'clusters', node: 'cloud', rank: 120 },
  { address: 'tethers', node: 'cloud', rank: 125 },
  { address: 'threads', node: 'front', rank: 127 },
  { address: 'tether:', node: 'tethers', rank: 130 },
  { address: 'workloads', node: 'cloud', rank: 140 },
];

/** The row of `address`: its own, or that of its family. */
function placementOf(address: string): ActorPlacement | undefined {
  const colon = address.indexOf(':');
  const key = colon < 0 ? address : address.slice(0, colon + 1);
  return ACTOR_PLACEMENTS.find((place) => place.address === key);
}

/** Whether an actor at `from` may ask one at `to`: only downwards. An address without a row is under no rule. */
export function mayAsk(from: string, to: string): boolean {
  const above = placementOf(from);
  const below = placementOf(to);
  return !above || !below || above.rank < below.rank;
}

/** FNV-1a over the address: the same actor is always on the same thread of its pool. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value >>> 0;
}

/**
 * Gives the node of an address, with the families spread over pools: `sizes.services = 2` puts `service:web` on
 * `services-0` or `services-1`. Singletons live on number 0. The host and the front are one each.
 */
export function createNodeLookup(poolSizes: {
  services: number;
  tethers: number;
}): (address: string) => string | undefined {
  return (address) => {
    const place = placementOf(address);
    if (!place) return undefined;
    if (place.node !== 'services' && place.node !== 'tethers') return place.node;
    const index = place.address.endsWith(':') ? hash(address) % poolSizes[place.node] : 0;
    return `${place.node}-${index}`;
  };
}
