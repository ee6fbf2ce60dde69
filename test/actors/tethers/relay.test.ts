// The ports that a relay carries connections to: docs/reference.md "Relay".
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { relayActor } from '../../../src/actors/tethers/relay.ts';
import { openLoopbackPeers } from '../../../src/adapters/process/loopback_peers.ts';
import { dialRelay } from '../../../src/adapters/relay/dial_relay.ts';
import { RELAY_PROTOCOL } from '../../../src/adapters/relay/frames.ts';
import type { Mux } from '../../../src/adapters/relay/mux.ts';
import { openRequestBody } from '../../../src/adapters/relay/open_request.ts';
import { RELAY_PATH } from '../../../src/adapters/relay/relay_path.ts';
import { newTicket } from '../../../src/adapters/relay/ticket.ts';
import { WebSocketServer } from '../../../src/adapters/websocket.ts';
import type { WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { PrincipalsProtocol } from '../../../src/protocol/principals.ts';
import type { RelayHolder } from '../../../src/protocol/relay.ts';
import { tetherSettings } from '../../../src/protocol/tethers.ts';
import { RELAY } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest, realTime, world } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { heldConnections, RULE } from './tether_kit.ts';

const TOKEN = 'the-token';
const ignore = (): void => undefined;

/**
 * A relay of workloads that are unknown, and a connection to it. `maxStreams`: of each holder. `isShared`: with a
 * shared database.
 */
async function relay({
  holder = null,
  maxStreams = 0,
  isShared = false,
}: {
  holder?: RelayHolder | null;
  maxStreams?: number;
  isShared?: boolean;
} = {}) {
  const space = world();
  const startCloud = () =>
    space.stand<WorkloadsProtocol>('workloads', {
      tetherTarget: ({ id }) => {
        throw fail('unknown_workload', `there is no workload ${id}`);
      },
    });
  const workloads = await startCloud();
  const peers = await openLoopbackPeers();
  afterThisTest(() => peers.close());
  let port = 0;
  const actor = await space.start('relay', relayActor, {
    ...{ rule: RULE, peers, networkClock: realTime, held: heldConnections(), isShared },
    ...{ address: { bind: '127.0.0.1', port: 0 }, isBehindProxy: false, cloudToken: TOKEN, maxStreams },
    onListening: (result) => {
      if ('port' in result) port = result.port;
    },
  });
  await eventually(() => port > 0);
  const principals = await space.stand<PrincipalsProtocol>('principals', {
    mayTether: () => ({ isAllowed: true }),
  });
  const dialWith = async (ticket: string): Promise<Mux> => {
    const connection = await dialRelay(`ws://127.0.0.1:${port}${RELAY_PATH}`, ticket, realTime, ignore);
    afterThisTest(() => connection.close('the test ends'));
    return connection.mux;
  };
  const ticketOf = (by: RelayHolder | null): string => newTicket(TOKEN, space.clock.now(), by).ticket;
  const dial = (by: RelayHolder | null): Promise<Mux> => dialWith(ticketOf(by));
  return {
    mux: await dial(holder),
    workloads,
    principals,
    dial,
    dialWith,
    ticketOf,
    actor,
    clock: space.clock,
    /** Takes the workloads away, as the end of the cloud thread does. */
    endCloud: () => space.node.end('workloads'),
    startCloud,
  };
}

/** Opens a stream; its end follows. */
function opened(mux: Mux, changes: { workloadId?: string; containerPort?: number; pod?: string }) {
  const found = { end: '' };
  const request = { workloadId: 'W1', containerPort: 80, wake: false, ...tetherSettings({}), ...changes };
  const stream = mux.open(openRequestBody(request));
  stream.listen({
    ...{ onData: ignore, onDrained: ignore, onEnd: ignore, onClosed: ignore },
    onReset: (code, text) => {
      found.end = `${code}: ${text}`;
    },
  });
  return { found, stream };
}

it('a relay connects to a limited number of ports, however many a client names', async () => {
  const { mux } = await relay();
  for (let containerPort = 1; containerPort <= RELAY.maxPorts; containerPort += 1)
    opened(mux, { containerPort }).stream.reset('closed', '');
  const { found } = opened(mux, { containerPort: RELAY.maxPorts + 1 });
  await eventually(() => found.end !== '');
  expect(found.end).toBe(`refused: ${RELAY.maxPorts} ports of workloads are in use, or were a moment ago`);
});

it('a relay leaves ports to others when one user names as many as possible', async () => {
  const { dial } = await relay();
  const muxOf = (subject: string): Promise<Mux> => dial({ subjects: [subject], expiresAt: null });
  const mux = await muxOf('token:greedy');
  for (let containerPort = 1; containerPort <= RELAY.maxOfOne; containerPort += 1)
    opened(mux, { containerPort });
  const { found } = opened(mux, { containerPort: RELAY.maxOfOne + 1 });
  await eventually(() => found.end !== '');
  expect(found.end).toBe(`refused: ${RELAY.maxOfOne} ports of workloads are in use, or were a moment ago`);
  const { found: other } = opened(await muxOf('token:other'), { containerPort: RELAY.maxOfOne + 1 });
  await eventually(() => other.end !== '');
  expect(other.end).toBe('failed: there is no workload W1');
});

it('a relay refuses a name that no pod can have', async () => {
  const { mux } = await relay();
  const { found } = opened(mux, { pod: '../../x' });
  await eventually(() => found.end !== '');
  expect(found.end).toBe('failed: the request names no port of a workload');
});

it('a relay limits the streams of a token over all its connections, and accepts one more when one has ended', async () => {
  const holder = { subjects: ['token:ci', 'group:devs'], expiresAt: null };
  const { mux, dial, workloads } = await relay({ holder, maxStreams: 2 });
  workloads.answer({
    tetherTarget: () => {
      throw fail('daemon_busy', 'connections wait until it is not');
    },
  });
  const [first, second] = [opened(mux, {}), opened(await dial(holder), {})];
  const refused = opened(mux, {});
  await eventually(() => refused.found.end !== '');
  expect(refused.found.end).toContain('refused: you have 2 connections');
  const other = opened(await dial({ subjects: ['user:anna', 'group:devs'], expiresAt: null }), {});
  first.stream.reset('closed', '');
  const third = opened(mux, {});
  const fourth = opened(mux, {});
  await eventually(() => fourth.found.end !== '');
  expect([second, other, third].map(({ found }) => found.end)).toEqual(['', '', '']);
});

it('a relay ends what its owner may not use any more, after a change of labels', async () => {
  const { mux, dial, workloads, principals, actor } = await relay();
  workloads.answer({
    tetherTarget: () => {
      throw fail('daemon_busy', 'connections wait until it is not');
    },
  });
  principals.answer({ mayKeep: ({ owners }) => ({ isAllowed: owners[0] !== 'token:ci' }) });
  const muxOf = (subject: string): Promise<Mux> => dial({ subjects: [subject], expiresAt: null });
  const ci = await muxOf('token:ci');
  const lost = opened(ci, { workloadId: 'W1' }).found;
  const others = [
    opened(ci, { workloadId: 'W2' }).found,
    opened(await muxOf('token:other'), { workloadId: 'W1' }).found,
    opened(mux, { workloadId: 'W1' }).found,
  ];
  await eventually(() => workloads.of('tetherTarget').length === 4);
  await actor.ask('relabelled', { ids: ['W1'] });
  await eventually(() => lost.end !== '');
  expect(others.map(({ end }) => end)).toEqual(['', '', '']);
});

it('a relay refuses a ticket from before the rights of its holder changed', async () => {
  const { actor, clock, dial, dialWith, ticketOf } = await relay();
  const anna = { subjects: ['user:anna', 'group:dev'], expiresAt: null };
  const [ours, others] = [ticketOf(anna), ticketOf({ subjects: ['user:bob'], expiresAt: null })];
  await actor.ask('rightsChanged', { subject: 'group:dev' });
  await expect(dialWith(ours)).rejects.toMatchObject({ message: expect.stringContaining('401') });
  await dialWith(others);
  await clock.advance(1);
  await dial(anna);
});

it('a relay ends what it carries when another Berth gets the clusters, so that no revocation is missed', async () => {
  const holder = { subjects: ['token:ci'], expiresAt: null };
  const { mux, actor, workloads, dial } = await relay({ holder });
  workloads.answer({
    tetherTarget: () => {
      throw fail('daemon_busy', 'connections wait until it is not');
    },
  });
  const { found } = opened(mux, {});
  await actor.ask('passOn', { target: null });
  expect(found.end).toBe('');
  await actor.ask('passOn', { target: { host: '127.0.0.1', port: 1 } });
  await eventually(() => found.end !== '');
  await expect(dial(holder)).rejects.toThrow();
});

it('a relay ends what it passes on to a Berth that no longer has the clusters, and may not answer', async () => {
  const holder = { subjects: ['token:ci'], expiresAt: null };
  const { actor, dial } = await relay({ holder });
  const silent = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: () => RELAY_PROTOCOL });
  afterThisTest(() => silent.close());
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const target = { host: '127.0.0.1', port };
  await actor.ask('passOn', { target });
  const mux = await dial(holder);
  // As at each beat while the other one has them.
  await actor.ask('passOn', { target: { ...target } });
  expect([mux.isOpen, silent.clients.size]).toEqual([true, 1]);
  await actor.ask('passOn', { target: null });
  await eventually(() => !mux.isOpen && silent.clients.size === 0);
});

it('a relay with a shared database ends what it carries with the cloud thread, and takes no more until the next one', async () => {
  const { mux, actor, workloads, dial, endCloud, startCloud } = await relay({ isShared: true });
  workloads.answer({
    tetherTarget: () => {
      throw fail('daemon_busy', 'connections wait until it is not');
    },
  });
  const { found } = opened(mux, {});
  await eventually(() => workloads.of('tetherTarget').length > 0);
  let last = mux;
  for (let life = 0; life < 2; life += 1) {
    await endCloud();
    await eventually(() => found.end !== '' && !last.isOpen);
    await expect(dial(null)).rejects.toMatchObject({ message: expect.stringContaining('503') });
    const later = await startCloud();
    await actor.ask('passOn', { target: null });
    last = await dial(null);
    opened(last, {});
    // It is opened anew: what was known of the pods may no longer be true.
    await eventually(() => later.of('referenceOf').length === 1);
  }
});

it('a relay without a shared database carries its connections on when the cloud thread ends', async () => {
  const { mux, workloads, dial, endCloud } = await relay();
  workloads.answer({
    tetherTarget: () => {
      throw fail('daemon_busy', 'connections wait until it is not');
    },
  });
  const { found } = opened(mux, {});
  await eventually(() => workloads.of('tetherTarget').length > 0);
  await endCloud();
  expect((await dial(null)).isOpen).toBe(true);
  expect([mux.isOpen, found.end]).toEqual([true, '']);
});
