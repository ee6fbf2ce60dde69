import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, expect, it } from 'vitest';
import { SpareConnection } from '../../../src/adapters/portforward/spare_connection.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { eventually } from '../../kit/eventually.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A server that counts who is connected, and a door to it. */
async function field() {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let dials = 0;
  const warm = new SpareConnection(
    {
      host: '',
      prefix: '',
      headers: () => ({}),
      connect: async () => {
        dials += 1;
        const socket = connect(port, '127.0.0.1');
        await once(socket, 'connect');
        return socket as TLSSocket;
      },
    },
    systemClock,
  );
  ends.push(() => {
    warm.close();
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { open, warm, dials: () => dials };
}

const soon = (): AbortSignal => AbortSignal.timeout(10_000);

it('has the next connection made as soon as one is taken', async () => {
  const { dials, open, warm } = await field();
  const first = await warm.connect(soon());
  await eventually(() => open.size === 2);
  const second = await warm.connect(soon());
  expect(second).not.toBe(first);
  await eventually(() => open.size === 3);
  expect(dials()).toBe(3);
});

it('gives nobody a connection that has ended meanwhile', async () => {
  const { dials, open, warm } = await field();
  await warm.connect(soon());
  await eventually(() => open.size === 2);
  for (const socket of open) socket.destroy();
  await eventually(() => open.size === 0);
  expect((await warm.connect(soon())).destroyed).toBe(false);
  expect(dials()).toBeGreaterThanOrEqual(3);
});

it('leaves no connection behind when it is closed, also while one is made', async () => {
  const { open, warm } = await field();
  const taken = warm.connect(soon());
  warm.close();
  (await taken).destroy();
  await eventually(() => open.size === 0);
  const again = await field();
  (await again.warm.connect(soon())).destroy();
  again.warm.close();
  await eventually(() => again.open.size === 0);
});
