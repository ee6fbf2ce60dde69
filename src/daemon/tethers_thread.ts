// The contents of a tethers thread: its share of `tether:<id>`.

import { HeldConnections } from '../actors/tethers/held_connections.ts';
import { relayActor } from '../actors/tethers/relay.ts';
import { tetherActor } from '../actors/tethers/tether.ts';
import { openLoopbackPeers } from '../adapters/process/loopback_peers.ts';
import { createNodeLookup } from '../protocol/address.ts';
import type { Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { TETHER } from '../settings/cloud_limits.ts';
import { POOL_SIZES } from '../settings/pool_sizes.ts';
import { report, reportCrash, reportDefect } from './daemon_log.ts';
import type { ThreadData } from './thread_data.ts';
import { runThread } from './thread_instance.ts';

const nodeOf = createNodeLookup(POOL_SIZES);

const reportRelay = (result: { port: number } | { error: Error }): void =>
  report(
    'port' in result
      ? `the relay listens on port ${result.port}`
      : `the relay does not listen: ${result.error.message}`,
  );

/** Starts no tethers: `tethers` opens them. */
async function setupTethers(node: Node, { addressRule, cloud }: ThreadData): Promise<void> {
  const peers = await openLoopbackPeers();
  const share = (all: number): number => Math.floor(all / POOL_SIZES.tethers);
  const held = new HeldConnections({
    maxConnections: share(TETHER.held.maxConnections),
    maxBytes: share(TETHER.held.maxBytes),
  });
  const isShared = cloud.databaseUrl !== '';
  const config = { rule: addressRule, peers, networkClock: systemClock, held, isShared };
  const link = cloud.remote && (await import('./remote_berth.ts')).remoteLink(cloud.remote, reportDefect);
  if (link) node.scope.defer(() => link.close());
  node.family('tether:', tetherActor, () => ({ ...config, link }));
  if (cloud.relay === null || nodeOf('relay') !== node.name) return;
  await node.start('relay', relayActor, {
    ...config,
    ...cloud.relay,
    maxStreams: cloud.quotas.connections,
    onListening: reportRelay,
  });
}

/** The life of the thread: see `runThread`. */
export const runTethersThread = (): Promise<void> =>
  runThread((node, data) => setupTethers(node, data as ThreadData), reportCrash);
