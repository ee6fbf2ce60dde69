// What an open tether does when the cloud thread ends: docs/reference.md "Crash of a thread", "Shared database".
import { expect, it } from 'vitest';
import { tetherActor } from '../../../src/actors/tethers/tether.ts';
import { openLoopbackPeers } from '../../../src/adapters/process/loopback_peers.ts';
import type { WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { TetherProtocol, TethersProtocol } from '../../../src/protocol/tethers.ts';
import { afterThisTest, realTime, world } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { freePort } from '../../kit/free_ports.ts';
import { type Client, client, heldConnections, RULE, STORED, UNUSED } from './tether_kit.ts';

/** An open tether, whose connections wait. */
async function open(isShared: boolean) {
  const space = world({ clock: realTime });
  await space.stand<WorkloadsProtocol>('workloads', {
    tetherTarget: () => {
      throw fail('daemon_busy', 'connections wait until it is not');
    },
  });
  await space.stand<TethersProtocol>('tethers');
  const peers = await openLoopbackPeers();
  afterThisTest(() => peers.close());
  const config = { rule: RULE, peers, networkClock: realTime, held: heldConnections(), link: null };
  space.node.family('tether:', tetherActor, () => ({ ...config, isShared }));
  const ports = [freePort()];
  const openAgain = () =>
    space.ref<TetherProtocol>('tether:T1').ask('open', { tether: STORED, ports, numbers: UNUSED });
  await openAgain();
  return { space, port: ports[0] ?? 0, openAgain };
}

async function connected(port: number): Promise<Client> {
  const made = client(port);
  await new Promise((resolve, reject) => made.socket.once('connect', resolve).once('error', reject));
  return made;
}

it('with a shared database, a tether ends with the cloud thread, and is opened again by the next one', async () => {
  const { space, port, openAgain } = await open(true);
  const { ended } = await connected(port);
  await space.node.end('tethers');
  expect(await ended).toBe('ECONNRESET');
  await eventually(async () => (await client(port).ended) === 'ECONNREFUSED');
  const next = await space.stand<TethersProtocol>('tethers');
  await openAgain();
  await connected(port);
  await eventually(() => next.of('stats').some(({ numbers }) => numbers.connections === 1));
});

it('with a shared database, an order of the ended cloud thread leaves nothing open', async () => {
  const { space, port, openAgain } = await open(true);
  await space.node.end('tethers');
  await openAgain();
  await eventually(async () => (await client(port).ended) === 'ECONNREFUSED');
});

it('without a shared database, a tether and its connections outlast the cloud thread', async () => {
  const { space, port, openAgain } = await open(false);
  const early = await connected(port);
  await space.node.end('tethers');
  const late = await connected(port);
  const next = await space.stand<TethersProtocol>('tethers');
  await openAgain();
  await eventually(() => next.of('stats').some(({ numbers }) => numbers.connections === 2));
  expect([early.socket.destroyed, late.socket.destroyed]).toEqual([false, false]);
});
