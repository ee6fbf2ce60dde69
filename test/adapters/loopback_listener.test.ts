import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { holdPort } from '../../src/adapters/held_port.ts';
import {
  type LoopbackListener,
  listenOnLoopback,
  listenWithIpv6Loopback,
} from '../../src/adapters/loopback_listener.ts';
import { afterThisTest } from '../kit/actors.ts';
import { freePort } from '../kit/free_ports.ts';

/** A program that listens on one address. */
async function occupy(host: string, port: number): Promise<number> {
  const server = createServer((socket) => socket.destroy());
  server.listen({ host, port, ipv6Only: true });
  await once(server, 'listening');
  afterThisTest(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

async function listening(port: number, onConnection: (socket: Socket) => void): Promise<LoopbackListener> {
  const listener = await listenOnLoopback(port, onConnection);
  if ('refused' in listener) throw new Error(listener.refused);
  return listener;
}

/** Resolves with what the other side says, or with the error of the system. */
const greeting = (port: number, host: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ port, host });
    socket.on('data', (bytes) => {
      resolve(String(bytes));
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket.on('close', () => resolve('closed'));
  });

describe('a port on loopback', () => {
  it('is taken in both families, and is free as soon as it is closed', async () => {
    const port = freePort();
    const first = await listening(port, (socket) => socket.end('first'));
    expect(first.port).toBe(port);
    expect(await greeting(port, '127.0.0.1')).toBe('first');
    expect(await greeting(port, '::1')).toBe('first');
    expect(await listenOnLoopback(port, () => undefined)).toEqual({
      refused: 'EADDRINUSE',
      address: '127.0.0.1',
    });
    await first.close();
    const second = await listening(port, () => undefined);
    await second.close();
  });

  it.each(['127.0.0.1', '::1'])(
    'that another program has on %s only is refused, and the other address is released',
    async (host) => {
      const port = await occupy(host, freePort());
      expect(await listenOnLoopback(port, () => undefined)).toEqual({ refused: 'EADDRINUSE', address: host });
      const other = host === '::1' ? '127.0.0.1' : '::1';
      expect(await greeting(port, other)).toBe('ECONNREFUSED');
    },
  );

  it.each(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])('is 127.0.0.1 only if ::1 is refused with %s', async (code) => {
    const listen = async (host: string) => (host === '::1' ? { refused: code } : { port: 7 });
    const undone: string[] = [];
    expect(await listenWithIpv6Loopback('127.0.0.1', 0, listen, () => undone.push('undone'))).toEqual({
      port: 7,
    });
    expect(undone).toEqual([]);
  });

  it.each([0, 7])('is not 127.0.0.1 only if ::1 is refused for another reason, for port %i', async (port) => {
    const listen = async (host: string) => (host === '::1' ? { refused: 'EACCES' } : { port: 7 });
    const undone: string[] = [];
    const result = await listenWithIpv6Loopback('127.0.0.1', port, listen, () => undone.push('undone'));
    expect(result).toEqual({ refused: 'EACCES', address: '::1' });
    expect(undone).toEqual(['undone']);
  });

  it('0 is replaced by a port that is free in both families', async () => {
    const ports = [5, 6, 7];
    const listen = async (host: string, port: number) =>
      host === '::1' && port !== 7 ? { refused: 'EADDRINUSE' } : { port: port || (ports.shift() ?? 0) };
    expect(await listenWithIpv6Loopback('127.0.0.1', 0, listen, () => undefined)).toEqual({ port: 7 });
  });
});

describe('a held port', () => {
  it('stays in use while its server is replaced, and connections wait for the next server', async () => {
    const held = await holdPort(0, (socket) => socket.end('nobody yet'));
    if ('refused' in held) throw new Error(held.refused);
    const { port } = held;
    afterThisTest(() => held.close());
    expect(await greeting(port, '::1')).toBe('nobody yet');
    for (const name of ['first', 'second']) {
      const servers = (await held.share()).map((fd) =>
        createServer((socket) => socket.end(name)).listen({ fd }),
      );
      await Promise.all(servers.map((server) => once(server, 'listening')));
      expect(await greeting(port, '127.0.0.1')).toBe(name);
      expect(await greeting(port, '::1')).toBe(name);
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
      expect(await listenOnLoopback(port, () => undefined)).toMatchObject({ refused: 'EADDRINUSE' });
    }
    const waiting = greeting(port, '127.0.0.1');
    const [fd, ...rest] = await held.share();
    const last = createServer((socket) => socket.end('last')).listen({ fd });
    afterThisTest(() => void last.close());
    for (const other of rest) {
      const server = createServer().listen({ fd: other });
      afterThisTest(() => void server.close());
    }
    expect(await waiting).toBe('last');
  });

  it('is free once it is closed', async () => {
    const held = await holdPort(0, () => undefined);
    if ('refused' in held) throw new Error(held.refused);
    await held.share().then((descriptors) => descriptors.map((fd) => createServer().listen({ fd }).close()));
    held.close();
    const next = await listening(held.port, () => undefined);
    await next.close();
  });
});
