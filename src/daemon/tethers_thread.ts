// The contents of a tethers thread: its share of `tether:<id>`.
import { HeldConnections } from '../actors/tethers/held_connections.ts';
import { tetherActor } from '../actors/tethers/tether.ts';
import { openLoopbackPeers } from '../adapters/process/loopback_peers.ts';
import type { Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { TETHER } from '../settings/cloud_limits.ts';
import { THREADS } from '../settings/limits.ts';
import { reportCrash } from './daemon_log.ts';
import type { ThreadData } from './thread_data.ts';
import { runThread } from './thread_instance.ts';

/** Starts no tether: `tethers` opens them. */
async function setupTethers(node: Node, { addressRule }: ThreadData): Promise<void> {
  const peers = await openLoopbackPeers();
  const share = (all: number): number => Math.floor(all / THREADS.tethers);
  const held = new HeldConnections({
    maxConnections: share(TETHER.held.maxConnections),
    maxBytes: share(TETHER.held.maxBytes),
  });
  node.family('tether:', tetherActor, () => ({
    rule: addressRule,
    peers,
    networkClock: systemClock,
    held,
  }));
}

/** The life of the thread: see `runThread`. */
export const runTethersThread = (): Promise<void> =>
  runThread((node, data) => setupTethers(node, data as ThreadData), reportCrash);
