import { lookup } from 'node:dns/promises';
import { createServer as createTcp } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { addressCheck } from '../../src/adapters/address_rule.ts';
import { createClusterDialer } from '../../src/adapters/cluster_dialer.ts';
import type { ClusterAccess } from '../../src/protocol/cloud.ts';
import { virtualClock } from '../kit/actors.ts';
import { certificate } from '../kit/certificates.ts';

const check = (allow: string | string[], apiOnLoopback = true) => addressCheck({ allow, apiOnLoopback });

/** The host of a URL as it stands after the WHATWG parser. */
const hostOf = (text: string): string => new URL(`https://${text}`).hostname.replace(/^\[|\]$/g, '');

const NEVER = [
  '0.0.0.0',
  '0.1.2.3',
  '169.254.169.254',
  '169.254.0.1',
  '100.100.100.200',
  '224.0.0.1',
  '239.255.255.255',
  '255.255.255.255',
  '::',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'fd00:ec2::254',
  'ff02::1',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::ffff:0:169.254.169.254',
  '64:ff9b::169.254.169.254',
  '64:ff9b:1::a9fe:a9fe',
  '2002:a9fe:a9fe::1',
  '::169.254.169.254',
  '64:ff9b::100.100.100.200',
];
const LOOPBACK = [
  '127.0.0.1',
  '127.8.9.10',
  '::1',
  '::ffff:127.0.0.1',
  '64:ff9b::127.0.0.1',
  '2002:7f00:1::',
];
const PRIVATE = [
  '10.1.2.3',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  'fc00::1',
  'fdab::1',
  '::ffff:10.0.0.1',
  '240.0.0.1',
  '2002:c0a8:101::',
];
const PUBLIC = [
  '8.8.8.8',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
  '2002:808:808::',
  '169.253.255.255',
];

describe('the address policy', () => {
  it.each(NEVER)('never allows %s, whatever the setting', (ip) => {
    for (const rule of ['any', 'auto', 'public', ['0.0.0.0/0', '::/0']])
      expect(check(rule)(ip)).toBe('is an address that is never dialled');
  });

  it('"any" allows everything else', () => {
    for (const ip of [...LOOPBACK, ...PRIVATE, ...PUBLIC]) expect(check('any')(ip)).toBeNull();
  });

  it('"auto" allows loopback only while the API itself is there, and private ones always', () => {
    for (const ip of [...LOOPBACK, ...PRIVATE, ...PUBLIC]) expect(check('auto', true)(ip)).toBeNull();
    for (const ip of LOOPBACK) expect(check('auto', false)(ip)).toContain('loopback');
    for (const ip of [...PRIVATE, ...PUBLIC]) expect(check('auto', false)(ip)).toBeNull();
  });

  it('"public" allows neither loopback nor private ones', () => {
    for (const ip of LOOPBACK) expect(check('public')(ip)).toContain('loopback');
    for (const ip of PRIVATE) expect(check('public')(ip)).toContain('private');
    for (const ip of PUBLIC) expect(check('public')(ip)).toBeNull();
  });

  it('a list allows what is in it, by the address inside', () => {
    const allowed = check(['10.0.0.0/8', '192.168.7.128/25', 'fdab:cd00::/24']);
    for (const ip of ['10.9.9.9', '192.168.7.200', 'fdab:cdff::1', '::ffff:10.0.0.1', '2002:a00:1::'])
      expect(allowed(ip)).toBeNull();
    for (const ip of ['11.0.0.1', '192.168.7.127', 'fdab:ce00::1', '127.0.0.1', '8.8.8.8'])
      expect(allowed(ip)).toContain('not in the list');
  });

  it('sees through every spelling a URL may have', () => {
    for (const spelling of [
      '0xa9fea9fe',
      '2852039166',
      '0251.0376.0251.0376',
      '169.254.43518',
      '0xA9.254.0xA9FE',
      '[::ffff:169.254.169.254]',
      '[0:0:0:0:0:ffff:a9fe:a9fe]',
      '１６９.254.169.254',
      '169。254。169。254',
    ])
      expect(check('any')(hostOf(spelling))).toBe('is an address that is never dialled');
    for (const spelling of ['0x7f.1', '2130706433', '127.1', '017700000001', '[::1]', '[0:0::0:1]'])
      expect(check('public')(hostOf(spelling))).toContain('loopback');
  });

  it('judges an IPv4 address the same in every IPv6 form that carries it', () => {
    const forms = (ip: string): string[] => {
      const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number);
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
      return [`::ffff:${ip}`, `::ffff:${hex}`, `64:ff9b::${hex}`, `2002:${hex}::`, `2002:${hex}:1::5`];
    };
    fc.assert(
      fc.property(fc.ipV4(), (ip) => {
        for (const rule of ['any', 'public', 'auto'])
          for (const form of forms(ip)) expect(check(rule, false)(form)).toBe(check(rule, false)(ip));
      }),
    );
  });
});

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

  it('checks the name of tls-server-name instead where there is one', async () => {
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
    const stranger = certificate({ commonName: 'stranger' });
    for (const wrong of [stranger.cert, null]) {
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

  it('checks at every dial: a name that moves to a forbidden address is refused then', async () => {
    const { port } = await listen();
    let ip = '127.0.0.1';
    const dial = createClusterDialer(access(`https://api.internal:${port}`), any, {
      resolve: async () => [ip],
    });
    expect(await read(await dial.connect())).toBe('hello');
    ip = '169.254.169.254';
    await expect(dial.connect()).rejects.toMatchObject({ message: /never dialled/ });
  });

  it('goes on to the next address when one does not answer', async () => {
    const { port } = await listen();
    const dial = createClusterDialer(access(`https://api.internal:${port}`), any, {
      resolve: async () => ['127.0.0.2', '127.0.0.1'],
    });
    expect(await read(await dial.connect())).toBe('hello');
  });

  it('says why there is no connection', async () => {
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

  it('waits no longer than it may, for a name, a handshake or a caller who has left', async () => {
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
