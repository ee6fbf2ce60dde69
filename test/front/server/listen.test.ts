// Which server is used, its addresses, and TLS.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import https from 'node:https';
import { createRequire } from 'node:module';
import net from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { BodyBudget } from '../../../src/front/server/body_budget.ts';
import { chooseServer, listenOnAll } from '../../../src/front/server/listen.ts';
import { isFailure } from '../../../src/runtime/actor.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { send } from '../../kit/http_request.ts';
import { SERVERS } from '../kit.ts';
import { get, later, serve, text, tlsFiles } from './raw_server.ts';

/** sha256 of the reviewed binaries, one per platform and Node major. */
const PINNED: ReadonlyMap<string, string> = new Map([
  ['uws_linux_x64_115.node', 'f4fa5d7b697529b45ac8aa3d57385d9af51bc1d2b26aa9f5b68ca4361542e665'],
  ['uws_linux_x64_127.node', '78e38a9a163b1cf33ce539619e5908111dea95a12e7943d95fbcdd524879caa8'],
  ['uws_linux_x64_137.node', '3b549c14e01d9d1faf234cdf4b6f0fb08158605e3692cd0eb1b905e327bd3449'],
  ['uws_linux_x64_141.node', 'd22bae7642b872152cd0eeb682c6c2ffd186e91af8cf18cdf98be984a6549d49'],
  ['uws_linux_arm64_115.node', '034e0fcccdc08f90df3b130f421516311831b1352fe38eab91abc2984c2fdf3a'],
  ['uws_linux_arm64_127.node', 'a7d9bc3ec166421a49416d5ea4f49118ae68ea1dbf8a765c4f45a79b0b6adb13'],
  ['uws_linux_arm64_137.node', 'b6eb007d627e00bcce03ad38f197124e9027c03f6fe784b37f97b8a6ea709cb4'],
  ['uws_linux_arm64_141.node', '1317f2e69ea1924ee8dd94ed02a3e6beb08e55d8b06f18caeda3d67a02857aee'],
  ['uws_darwin_x64_115.node', '7552dc27e278be4a5f9ca4f571676e9046929ef8753b1bb63b84f78e1a752a11'],
  ['uws_darwin_x64_127.node', '1bcd63a9cd5cda811d899b80f9b1f7c9f29d128feafebe6976069ab1045a0335'],
  ['uws_darwin_x64_137.node', '7df6e0b2be43048200370a64ee91d6563879f5d3b0207f846dc81377ffc4e189'],
  ['uws_darwin_x64_141.node', 'f490b002468feebeeedba127e20594ec75138bb7c17e9f681a652fe5d408db7d'],
  ['uws_darwin_arm64_115.node', 'f6132ac4d0954ce32ed716d5b367270904c5885bc6e01dcc8ae5809a8967d504'],
  ['uws_darwin_arm64_127.node', '84ab0c487fbbb895afbfa24c7ac02db5922b2eb468b3a4663aaca52af29b420c'],
  ['uws_darwin_arm64_137.node', 'dd7623e7e600dcc1384c4a639ac05849f0c27125be8c431b702e0513e86613f0'],
  ['uws_darwin_arm64_141.node', 'a1c354c77958054d144a1cb1ab2b5f445e4c1454c98762eb52eef7a6cd95c0c5'],
]);

describe.each(SERVERS)('%s', (kind) => {
  describe('addresses', () => {
    it('are both loopbacks on one port where the machine has both', async () => {
      const { port } = await serve(kind, (x) => text(x, x.peerAddress()));
      const peers = await Promise.all(
        ['127.0.0.1', '::1'].map(
          (host) =>
            new Promise<string>((resolve) => {
              const socket = net.connect(port, host, () => socket.write(get('/', 'Connection: close\r\n')));
              let got = '';
              socket.on('data', (part) => {
                got += part;
              });
              socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
              socket.on('close', () => resolve(got.split('\r\n\r\n')[1] ?? ''));
            }),
        ),
      );
      expect(peers[0]).toBe('127.0.0.1');
      expect(['::1', '0000:0000:0000:0000:0000:0000:0000:0001', 'EADDRNOTAVAIL', 'ENETUNREACH']).toContain(
        peers[1],
      );
    });

    it.each(['127.0.0.1', '0.0.0.0'])('are all that localhost means with %s', async (bind) => {
      const { port } = await serve(kind, (x) => text(x, 'ours'), {}, bind);
      // Else another user could listen there, and get what is sent to localhost.
      const other = net.createServer();
      afterThisTest(() => void other.close());
      const refused = await new Promise((resolve) => {
        other.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
        other.listen({ host: '::1', port }, () => resolve('taken'));
      });
      expect(['EADDRINUSE', 'EADDRNOTAVAIL', 'EAFNOSUPPORT']).toContain(refused);
      expect((await send(port, 'GET', '/')).text).toBe('ours');
    });

    it('take no more connections than they may', async () => {
      const { port } = await serve(kind, (x) => text(x, 'fine'), { maxConnections: 3 });
      const connect = async () => {
        const socket = net.connect(port, '127.0.0.1');
        afterThisTest(() => void socket.destroy());
        socket.on('error', () => {});
        const closed = new Promise<'closed'>((resolve) => socket.on('close', () => resolve('closed')));
        const answered = new Promise<'answered'>((resolve) => socket.on('data', () => resolve('answered')));
        await new Promise((resolve) => socket.on('connect', resolve));
        socket.write(get('/'));
        return { socket, closed, end: await Promise.race([closed, answered]) };
      };
      const first = await connect();
      expect([first.end, (await connect()).end, (await connect()).end]).toEqual(Array(3).fill('answered'));
      expect([(await connect()).end, (await connect()).end]).toEqual(['closed', 'closed']);
      first.socket.destroy();
      await first.closed;
      await eventually(async () => (await connect()).end === 'answered');
    });

    it('in use are refused, naming the holder', async () => {
      const first = await serve(kind, (x) => text(x, 'first'));
      const create = await chooseServer(() => {}, kind);
      const second = create({
        handle: (x) => text(x, 'second'),
        webSocketPaths: [],
        maxMessageBytes: 1,
        bodies: new BodyBudget(1),
        onDefect: () => {},
      });
      afterThisTest(() => second.close());
      const opening = { bind: '127.0.0.1', port: first.port, describePortHolder: async () => 'pid 7 (node)' };
      const refused = await listenOnAll(second, opening).catch((error: unknown) => error);
      expect(isFailure(refused) && [refused.code, refused.message]).toEqual([
        'port_in_use',
        `port ${first.port} is taken: pid 7 (node) listens on 127.0.0.1:${first.port}`,
      ]);
      expect((await send(first.port, 'GET', '/')).text).toBe('first');
    });

    it('of which one is in use are both refused', async () => {
      const taken = net.createServer().listen({ host: '::1', port: 0, ipv6Only: true });
      afterThisTest(() => void taken.close());
      const port = await new Promise<number>((resolve) => {
        taken.on('listening', () => resolve((taken.address() as net.AddressInfo).port));
        taken.on('error', () => resolve(0));
      });
      if (port === 0) return;
      const create = await chooseServer(() => {}, kind);
      const server = create({
        handle: (x) => text(x, ''),
        webSocketPaths: [],
        maxMessageBytes: 1,
        bodies: new BodyBudget(1),
        onDefect: () => {},
      });
      afterThisTest(() => server.close());
      await expect(listenOnAll(server, { bind: '127.0.0.1', port })).rejects.toMatchObject({
        code: 'port_in_use',
      });
      const left = await new Promise((resolve) => {
        const socket = net.connect(port, '127.0.0.1', () => resolve('open'));
        socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      });
      expect(left).toBe('ECONNREFUSED');
    });

    it('that the machine does not have are reported', async () => {
      const create = await chooseServer(() => {}, kind);
      const server = create({
        handle: (x) => text(x, ''),
        webSocketPaths: [],
        maxMessageBytes: 1,
        bodies: new BodyBudget(1),
        onDefect: () => {},
      });
      afterThisTest(() => server.close());
      await expect(listenOnAll(server, { bind: '192.0.2.1', port: 0 })).rejects.toThrow('EADDRNOTAVAIL');
    });

    it('are released', async () => {
      const { server, port } = await serve(kind, (x) => text(x, 'fine'));
      const kept = net.connect(port, '127.0.0.1');
      await new Promise((resolve) => kept.on('connect', resolve));
      server.stopListening();
      await expect(send(port, 'GET', '/')).rejects.toThrow('ECONNREFUSED');
      const closed = new Promise((resolve) => kept.on('close', resolve));
      kept.on('error', () => {});
      server.close();
      await closed;
    });
  });
});

it('speaks TLS when it has a certificate', async () => {
  const files = tlsFiles();
  const { port } = await serve('node:http', (x) => later(() => text(x, 'secret')), { tls: files });
  const got = await new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      ca: readFileSync(files.cert),
      servername: 'localhost',
      agent: false,
    };
    https
      .get(options, (response) => response.on('data', (part) => resolve(String(part))))
      .on('error', reject);
  });
  expect(got).toBe('secret');
});

describe('the choice', () => {
  it('is uWebSockets.js where it loads', async () => {
    const lines: string[] = [];
    const create = await chooseServer((line) => lines.push(line));
    const server = create({
      handle: () => {},
      webSocketPaths: [],
      maxMessageBytes: 1,
      bodies: new BodyBudget(1),
      onDefect: () => {},
    });
    afterThisTest(() => server.close());
    if (server.name === 'uWebSockets.js') expect(lines).toEqual([]);
    else expect(lines).toEqual([expect.stringContaining('node:http serves')]);
  });

  it('is node:http where uWebSockets.js does not load, with the reason in one line', async () => {
    vi.doMock('../../../src/front/server/uws_server.ts', () => {
      throw new Error('This supports only some versions of Node.\n\nError: GLIBC_2.38 not found');
    });
    afterThisTest(() => {
      vi.doUnmock('../../../src/front/server/uws_server.ts');
    });
    const lines: string[] = [];
    const create = await chooseServer((line) => lines.push(line));
    const server = create({
      handle: () => {},
      webSocketPaths: [],
      maxMessageBytes: 1,
      bodies: new BodyBudget(1),
      onDefect: () => {},
    });
    afterThisTest(() => server.close());
    expect(server.name).toBe('node:http');
    expect(lines).toEqual([
      expect.stringMatching(/^uWebSockets\.js does not load here, so node:http serves: .+$/),
    ]);
    await expect(chooseServer(() => {}, 'uWebSockets.js')).rejects.toThrow();
  });

  it('loads the reviewed binary', () => {
    const { platform, arch, versions } = process;
    const file = `uws_${platform}_${arch}_${versions.modules}.node`;
    const require = createRequire(import.meta.url);
    const path = join(require.resolve('uWebSockets.js'), '..', file);
    const found = existsSync(path)
      ? createHash('sha256').update(readFileSync(path)).digest('hex')
      : undefined;
    expect(found).toBe(PINNED.get(file));
  });
});
