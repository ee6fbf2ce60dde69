// Who waits at a door: real connections, the kernel's own word on their other ends, and virtual time.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { DoorConnections } from '../../../src/actors/doors/door_connections.ts';
import { listenOnLoopback } from '../../../src/adapters/loopback_listener.ts';
import { loadLibc } from '../../../src/adapters/process/libc.ts';
import { openLoopbackPeers } from '../../../src/adapters/process/loopback_peers.ts';
import { ServiceDialer } from '../../../src/adapters/service_dialer.ts';
import { DOOR } from '../../../src/settings/limits.ts';
import { afterThisTest, type TestClock, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';

interface DoorStand {
  clock: TestClock;
  door: DoorConnections;
  /** How often the service was to be woken. */
  knocks: () => number;
  /** Connects a client; resolves when the door has it. */
  client(): Promise<Socket>;
}

/** The connections of a door that has no service yet. */
async function openDoor(): Promise<DoorStand> {
  const clock = virtualClock();
  const peers = await openLoopbackPeers();
  afterThisTest(() => peers.close());
  const dialer = new ServiceDialer();
  afterThisTest(() => dialer.close());
  let knocks = 0;
  let accepted = 0;
  const onKnock = () => {
    knocks += 1;
  };
  const door = new DoorConnections({ clock, dialer, libc: await loadLibc(), peers, onKnock });
  const accept = (socket: Socket) => {
    door.accept(socket);
    accepted += 1;
  };
  const listener = await listenOnLoopback(0, accept, { paused: true });
  if ('refused' in listener) throw new Error(listener.refused);
  afterThisTest(() => listener.close());
  afterThisTest(() => door.close());
  const client = async () => {
    const before = accepted;
    const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    afterThisTest(() => void socket.destroy());
    await eventually(() => accepted > before);
    return socket;
  };
  return { clock, door, knocks: () => knocks, client };
}

/** Ends a client and waits until the system has told the door's side. */
async function leave(socket: Socket, how: 'close' | 'reset'): Promise<void> {
  const closed = once(socket, 'close');
  if (how === 'reset') socket.resetAndDestroy();
  else socket.destroy();
  await closed;
}

describe.skipIf(process.platform !== 'linux')('the door of a sleeping service', () => {
  it.each(['close', 'reset'] as const)('wakes nothing for a port scan that ends by %s', async (how) => {
    const { clock, door, knocks, client } = await openDoor();
    await leave(await client(), how);
    await clock.advance(DOOR.probeDelayMs);
    expect(knocks()).toBe(0);
    expect(door.isAwaited).toBe(false);
  });

  it('wakes it once for all clients that stay, including half-closed ones', async () => {
    const { clock, knocks, client } = await openDoor();
    const [half] = [await client(), await client()];
    half.end('request');
    await once(half, 'finish');
    await clock.advance(DOOR.probeDelayMs);
    expect(knocks()).toBe(1);
  });

  it('disconnects a client that has waited for a minute', async () => {
    const { clock, door, client } = await openDoor();
    const waiting = await client();
    const closed = new Promise((resolve) => waiting.on('close', resolve));
    await clock.advance(DOOR.holdMs - DOOR.checkIntervalMs);
    expect([door.isAwaited, waiting.readyState]).toEqual([true, 'open']);
    await clock.advance(DOOR.checkIntervalMs);
    await closed;
    expect(door.isAwaited).toBe(false);
    expect(DOOR.holdMs).toBe(60_000);
  });

  it('frees the place of each client that disconnects while it waits', async () => {
    const { clock, door, client } = await openDoor();
    const clients = [await client(), await client()];
    await clock.advance(DOOR.checkIntervalMs);
    expect(door.isAwaited).toBe(true);
    for (const one of clients) await leave(one, 'close');
    await clock.advance(DOOR.checkIntervalMs);
    expect(door.isAwaited).toBe(false);
  });
});
