import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, expect, it } from 'vitest';
import { SpareConnection } from '../../../src/adapters/portforward/spare_connection.ts';
import type { Clock } from '../../../src/runtime/actor.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A server that counts its connections, and a spare connection to it. */
async function field(clock: Clock = systemClock) {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let dials = 0;
  const spare = new SpareConnection(
    {
      host: '',
      prefix: '',
      headers: () => ({}),
      redact: (text) => text,
      connect: async () => {
        dials += 1;
        const socket = connect(port, '127.0.0.1');
        await once(socket, 'connect');
        return socket as TLSSocket;
      },
    },
    clock,
  );
  ends.push(() => {
    spare.close();
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { open, spare, dials: () => dials };
}

const soon = (): AbortSignal => AbortSignal.timeout(10_000);

it('the next spare connection is opened as soon as one is taken', async () => {
  const { dials, open, spare } = await field();
  const first = await spare.connect(soon());
  await eventually(() => open.size === 2);
  const second = await spare.connect(soon());
  expect(second).not.toBe(first);
  await eventually(() => open.size === 3);
  expect(dials()).toBe(3);
});

it('a spare connection that has ended is not used', async () => {
  const { dials, open, spare } = await field();
  await spare.connect(soon());
  await eventually(() => open.size === 2);
  for (const socket of open) socket.destroy();
  await eventually(() => open.size === 0);
  expect((await spare.connect(soon())).destroyed).toBe(false);
  expect(dials()).toBeGreaterThanOrEqual(3);
});

it('closing leaves no spare connection open, also while one is being opened', async () => {
  const { open, spare } = await field();
  const taken = spare.connect(soon());
  spare.close();
  (await taken).destroy();
  await eventually(() => open.size === 0);
  const again = await field();
  (await again.spare.connect(soon())).destroy();
  again.spare.close();
  await eventually(() => again.open.size === 0);
});

it('a spare connection that stays unused for long is closed, unlike one that has been taken', async () => {
  const clock = virtualClock();
  const { open, spare } = await field(clock);
  const first = await spare.connect(soon());
  const second = await spare.connect(soon());
  await eventually(() => open.size === 3);
  await clock.advance(TETHER.connectionIdleMs);
  await eventually(() => open.size === 2);
  expect([first.destroyed, second.destroyed]).toEqual([false, false]);
});
