// The dialer of a cluster over real sockets: the address it dials, and the certificates it accepts.
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { createServer as createTcp } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { createClusterDialer } from '../../src/adapters/cluster_dialer.ts';
import type { ClusterAccess } from '../../src/protocol/clusters.ts';
import { CLOUD } from '../../src/settings/cloud_limits.ts';
import { virtualClock } from '../kit/actors.ts';
import { certificate } from '../kit/certificates.ts';
import { eventually } from '../kit/eventually.ts';

describe('the connector', () => {
  const ca = certificate({ commonName: 'dial ca' });
  const leaf = certificate({
    commonName: 'api',
    issuer: ca,
    names: ['127.0.0.1', 'localhost', 'api.internal'],
  });
  const open: (() => void)[] = [];
  afterEach(() => {
    for (const close of open.splice(0)) close();
  });

  interface Seen {
    servername: string | false;
    reused: boolean;
  }
  async function listen(): Promise<{ port: number; seen: Seen[] }> {
    const seen: Seen[] = [];
    const server = createServer({ cert: leaf.cert, key: leaf.key }, (socket: TLSSocket) => {
      seen.push({
        servername: (socket as TLSSocket & { servername: string | false }).servername,
        reused: socket.isSessionReused(),
      });
      socket.on('error', () => undefined).end('hello');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    open.push(() => server.close());
    return { port: (server.address() as { port: number }).port, seen };
  }
  const access = (server: string, more: Partial<ClusterAccess> = {}): ClusterAccess => ({
    server,
    ca: ca.cert,
    tlsServerName: null,
    credential: { kind: 'token', token: 't' },
    ...more,
  });
  const any = { allow: 'any', apiOnLoopback: true };
  const read = (socket: TLSSocket): Promise<string> =>
    new Promise((resolve, reject) => {
      let text = '';
      socket
        .on('data', (chunk) => (text += chunk))
        .on('end', () => resolve(text))
        .on('error', reject);
    });

  it('dials the address it has checked, with the name for SNI and the certificate', async () => {
    const { port, seen } = await listen();
    const asked: string[] = [];
    const dial = createClusterDialer(access(`https://api.internal:${port}`), any, {
      resolve: async (host) => [asked.push(host) > 0 ? '127.0.0.1' : ''],
    });
    expect(await read(await dial.connect())).toBe('hello');
    expect(await read(await dial.connect())).toBe('hello');
    expect(asked).toEqual(['api.internal', 'api.internal']);
    expect(seen).toEqual([
      { servername: 'api.internal', reused: false },
      { servername: 'api.internal', reused: true },
    ]);
  });

  it('checks the name in tls-server-name instead when there is one', async () => {
    const { port, seen } = await listen();
    const good = createClusterDialer(
      access(`https://127.0.0.1:${port}`, { tlsServerName: 'api.internal' }),
      any,
    );
    expect(await read(await good.connect())).toBe('hello');
    expect(seen[0]?.servername).toBe('api.internal');
    const bad = createClusterDialer(
      access(`https://127.0.0.1:${port}`, { tlsServerName: 'other.internal' }),
      any,
    );
    await expect(bad.connect()).rejects.toMatchObject({
      code: 'cluster_unreachable',
      message: /other\.internal/,
    });
  });

  it('refuses a certificate of another authority', async () => {
    const { port } = await listen();
    const foreign = certificate({ commonName: 'stranger' });
    for (const wrong of [foreign.cert, null]) {
      const dial = createClusterDialer(access(`https://127.0.0.1:${port}`, { ca: wrong }), any);
      await expect(dial.connect()).rejects.toMatchObject({
        code: 'cluster_unreachable',
        message: /certificate/,
      });
    }
  });

  it('refuses a name when one of its addresses is not allowed, and an IP literal as well', async () => {
    const { port, seen } = await listen();
    const mixed = createClusterDialer(access(`https://rebind.test:${port}`), any, {
      resolve: async () => ['127.0.0.1', '::ffff:169.254.169.254'],
    });
    await expect(mixed.connect()).rejects.toMatchObject({
      code: 'cluster_unreachable',
      message: /169\.254\.169\.254/,
    });
    const literal = createClusterDialer(access(`https://0x7f.1:${port}`), {
      allow: 'public',
      apiOnLoopback: true,
    });
    await expect(literal.connect()).rejects.toMatchObject({ message: /loopback/ });
    expect(seen).toEqual([]);
  });

  it('checks at every connection: a name that moves to a forbidden address is then refused', async () => {
    const { port } = await listen();
    let ip = '127.0.0.1';
    const dial = createClusterDialer(access(`https://api.internal:${port}`), any, {
      resolve: async () => [ip],
    });
    expect(await read(await dial.connect())).toBe('hello');
    ip = '169.254.169.254';
    await expect(dial.connect()).rejects.toMatchObject({ message: /never dialled/ });
  });

  it.skipIf(process.platform !== 'linux')('has the kernel probe a quiet connection', async () => {
    const { port } = await listen();
    const socket = await createClusterDialer(access(`https://127.0.0.1:${port}`), any).connect();
    open.push(() => socket.destroy());
    const address = (of = 0): string => `0100007F:${of.toString(16).toUpperCase().padStart(4, '0')}`;
    // Both ends: an earlier connection from the same port to another one can still be listed.
    const ends = `${address(socket.localPort)} ${address(port)}`;
    /** The kind of the timer of the connection (2: keepalive), and hundredths of a second until it goes off. */
    const timer = (): number[] => {
      const rows = readFileSync('/proc/net/tcp', 'latin1').split('\n');
      const row = rows
        .map((line) => line.trim().split(/\s+/))
        .find((columns) => `${columns[1]} ${columns[2]}` === ends);
      return (row?.[5] ?? '').split(':').map((hex) => Number.parseInt(hex, 16));
    };
    await eventually(() => timer()[0] === 2, timer);
    expect(timer()[1]).toBeLessThanOrEqual(CLOUD.keepAliveDelayMs / 10);
  });

  it('tries the next address when one does not answer', async () => {
    const { port } = await listen();
    const dial = createClusterDialer(access(`https://api.internal:${port}`), any, {
      resolve: async () => ['127.0.0.2', '127.0.0.1'],
    });
    expect(await read(await dial.connect())).toBe('hello');
  });

  it('reports why there is no connection', async () => {
    const gone = createTcp();
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const { port } = gone.address() as { port: number };
    await new Promise((resolve) => gone.close(resolve));
    await expect(
      createClusterDialer(access(`https://127.0.0.1:${port}`), any).connect(),
    ).rejects.toMatchObject({
      code: 'cluster_unreachable',
      message: /ECONNREFUSED/,
    });
    const nowhere = createClusterDialer(access('https://api.internal'), any, {
      resolve: (host) => lookup(`${host}.invalid`).then(() => []),
    });
    await expect(nowhere.connect()).rejects.toMatchObject({
      code: 'cluster_unreachable',
      message: /ENOTFOUND|EAI_AGAIN/,
    });
  });

  it.each([
    ['an error of the network', Object.assign(new Error('reset'), { code: 'ECONNRESET' })],
    ['an error of TLS', Object.assign(new Error('bad version'), { code: 'ERR_SSL_WRONG_VERSION_NUMBER' })],
    ['an error of the name service', Object.assign(new Error('no name'), { code: 'ENOTFOUND' })],
    ['a timeout', new DOMException('late', 'TimeoutError')],
  ])('is unreachable after %s', async (_, error) => {
    const dial = createClusterDialer(access('https://api.internal'), any, {
      resolve: () => Promise.reject(error),
    });
    await expect(dial.connect()).rejects.toMatchObject({
      code: 'cluster_unreachable',
      message: expect.stringContaining(error.message),
    });
  });

  it('is unreachable after a name without an address', async () => {
    const dial = createClusterDialer(access('https://api.internal'), any, { resolve: async () => [] });
    await expect(dial.connect()).rejects.toMatchObject({ code: 'cluster_unreachable' });
  });

  it.each([
    ['a TypeError', new TypeError('x is not a function')],
    ['a TypeError of Node', Object.assign(new TypeError('no string'), { code: 'ERR_INVALID_ARG_TYPE' })],
    ['a RangeError', new RangeError('invalid array length')],
    ['an error without a code', new Error('a defect')],
  ])('throws a defect as it is: %s', async (_, error) => {
    const dial = createClusterDialer(access('https://api.internal'), any, {
      resolve: () => Promise.reject(error),
    });
    await expect(dial.connect()).rejects.toBe(error);
  });

  it('waits for a limited time for a name or a handshake, and not for a caller that has cancelled', async () => {
    const silent = createTcp((socket) => open.push(() => socket.destroy()));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    open.push(() => silent.close());
    const { port } = silent.address() as { port: number };
    const clock = virtualClock();
    const mute = createClusterDialer(access(`https://127.0.0.1:${port}`), any, { timeoutMs: 50, clock });
    const unanswered = mute.connect();
    void clock.advance(50);
    await expect(unanswered).rejects.toMatchObject({ message: /no answer in 50 ms/ });
    const lost = createClusterDialer(access('https://api.internal'), any, {
      timeoutMs: 50,
      clock,
      resolve: () => new Promise(() => undefined),
    });
    const unresolved = lost.connect();
    void clock.advance(50);
    await expect(unresolved).rejects.toMatchObject({ message: /no answer in 50 ms/ });
    const left = new AbortController();
    const dialling = createClusterDialer(access(`https://127.0.0.1:${port}`), any).connect(left.signal);
    left.abort();
    await expect(dialling).rejects.toMatchObject({ code: 'cluster_unreachable' });
  });
});
