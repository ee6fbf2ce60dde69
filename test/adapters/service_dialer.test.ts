// docs/reference.md "Ports and conflicts": the listener of a service may change while Berth connects to it. The
// test says who listens; the sockets are real.
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { expect, it, vi } from 'vitest';
import { ServiceDialer } from '../../src/adapters/service_dialer.ts';
import { afterThisTest } from '../kit/actors.ts';
import { eventually } from '../kit/eventually.ts';
import { must } from '../kit/must.ts';

/** The inodes of the sockets that listen on 127.0.0.1, look by look; the last one stays. */
let inodes: number[] = [];
vi.mock('../../src/adapters/process/listener_lookup.ts', async (original) => ({
  ...(await original<object>()),
  openListenerLookup: async () => ({
    find: (address: string) =>
      address === '127.0.0.1'
        ? { uid: process.getuid?.(), inode: inodes.length > 1 ? inodes.shift() : inodes[0] }
        : undefined,
    close: () => undefined,
  }),
}));

/** A program on 127.0.0.1, and the connections that it has accepted. */
async function program() {
  const accepted: net.Socket[] = [];
  const server = net.createServer((socket) => void accepted.push(socket.resume().on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dialer = new ServiceDialer();
  afterThisTest(() => {
    dialer.close();
    for (const socket of accepted) socket.destroy();
    server.close();
  });
  return { accepted, dialer, target: { port: (server.address() as AddressInfo).port, pid: process.pid } };
}

it('a connection is made again when the listener has changed meanwhile', async () => {
  const { accepted, dialer, target } = await program();
  inodes = [1, 2, 3];
  const socket = await dialer.dial(target);
  afterThisTest(() => void socket.destroy());
  await eventually(() => accepted.length === 2);
  await eventually(() => must(accepted[0]).destroyed);
  expect(socket.destroyed).toBe(false);
});

it('no connection is made while the listener changes all the time', async () => {
  const { accepted, dialer, target } = await program();
  inodes = Array.from({ length: 20 }, (_, look) => look);
  await expect(dialer.dial(target)).rejects.toThrow('what listens there, on 127.0.0.1, changes all the time');
  await eventually(() => accepted.length > 0 && accepted.every(({ destroyed }) => destroyed));
});
