// Which server is used, its addresses, and TLS.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { BodyBudget } from '../../../src/front/server/body_budget.ts';
import type { HttpServer } from '../../../src/front/server/http_server.ts';
import { chooseServer, listenOnAll } from '../../../src/front/server/listen.ts';
import CHECKSUMS from '../../../src/front/server/uws_binaries.json' with { type: 'json' };
import { loadUws } from '../../../src/front/server/uws_binary.ts';
import { isFailure } from '../../../src/runtime/actor.ts';
import { nativeUrl } from '../../../src/settings/build_paths.ts';
import { afterThisTest, tempDir } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { freePort } from '../../kit/free_ports.ts';
import { send } from '../../kit/http_request.ts';
import { SERVERS } from '../kit.ts';
import { get, later, serve, text, tlsFiles } from './raw_server.ts';

describe.each(SERVERS)('%s', (kind) => {
  /** A server that answers `answer` once it listens. */
  const unopened = async (answer: string): Promise<HttpServer> => {
    const create = await chooseServer(() => {}, kind);
    const server = create({
      handle: (x) => text(x, answer),
      webSocketPaths: [],
      maxMessageBytes: 1,
      bodies: new BodyBudget(1),
      onDefect: () => {},
    });
    afterThisTest(() => server.close());
    return server;
  };

  describe('addresses', () => {
    it('are both loopback addresses on one port if the machine has both', async () => {
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

    it.each(['127.0.0.1', '0.0.0.0'])('are all that localhost resolves to with %s', async (bind) => {
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

    it('accept a limited number of connections', async () => {
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

    it('that are in use are refused, naming the holder', async () => {
      const first = await serve(kind, (x) => text(x, 'first'));
      const second = await unopened('second');
      const opening = { bind: '127.0.0.1', port: first.port, describePortHolder: async () => 'pid 7 (node)' };
      const refused = await listenOnAll(second, opening).catch((error: unknown) => error);
      expect(isFailure(refused) && [refused.code, refused.message]).toEqual([
        'port_in_use',
        `port ${first.port} is taken: pid 7 (node) listens on 127.0.0.1:${first.port}`,
      ]);
      expect((await send(first.port, 'GET', '/')).text).toBe('first');
    });

    it('that a predecessor still holds are taken as soon as it has ended', async () => {
      const holder = net.createServer();
      const port = freePort();
      await new Promise<void>((resolve) => holder.listen({ host: '::1', port }, resolve));
      const server = await unopened('successor');
      const refused: string[] = [];
      const { listen } = server;
      server.listen = async (host, wanted) => {
        const result = await listen.call(server, host, wanted);
        if ('refused' in result) refused.push(result.refused);
        if (refused.length === 1) holder.close();
        return result;
      };
      expect(await listenOnAll(server, { bind: '127.0.0.1', port })).toBe(port);
      expect(refused).toContain('EADDRINUSE');
      expect((await send(port, 'GET', '/')).text).toBe('successor');
    });

    it('of 0.0.0.0 include ::1, so that no other program can have localhost there', async () => {
      const [server, second] = [await unopened('here'), await unopened('here')];
      const port = await listenOnAll(server, { bind: '0.0.0.0', port: 0 });
      const listens = (host: string): Promise<string> =>
        new Promise((resolve) => {
          const other = net
            .createServer()
            .once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
          other.listen({ host, port }, () => other.close(() => resolve('free')));
        });
      expect(['EADDRINUSE', 'EADDRNOTAVAIL']).toContain(await listens('::1'));
      expect(await listens('127.0.0.1')).toBe('EADDRINUSE');
      server.close();
      const taken = net.createServer().listen({ host: '::1', port, ipv6Only: true });
      afterThisTest(() => void taken.close());
      const isTaken = await new Promise((resolve) =>
        taken.once('listening', () => resolve(true)).once('error', () => resolve(false)),
      );
      if (isTaken)
        await expect(listenOnAll(second, { bind: '0.0.0.0', port })).rejects.toMatchObject({
          code: 'port_in_use',
        });
    });

    it('are both refused if one is in use', async () => {
      const taken = net.createServer().listen({ host: '::1', port: freePort(), ipv6Only: true });
      afterThisTest(() => void taken.close());
      const port = await new Promise<number>((resolve) => {
        taken.on('listening', () => resolve((taken.address() as net.AddressInfo).port));
        taken.on('error', () => resolve(0));
      });
      if (port === 0) return;
      const server = await unopened('');
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
      const server = await unopened('');
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

it('a server with a certificate uses TLS', async () => {
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

describe('the choice of the server', () => {
  it('is uWebSockets.js if it loads', async () => {
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

  it('is node:http if uWebSockets.js does not load, with the reason in one line', async () => {
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

  it('loads only the reviewed binary', () => {
    const { platform, arch, versions } = process;
    const file = `uws_${platform}_${arch}_${versions.modules}.node`;
    expect(Object.keys(CHECKSUMS)).toContain(file);
    const folder = tempDir();
    writeFileSync(join(folder, file), Buffer.concat([readFileSync(nativeUrl(file)), Buffer.from('x')]));
    const urlOf = (name: string) => pathToFileURL(join(folder, name));
    expect(() => loadUws(urlOf)).toThrow(`${file}: the checksum is wrong`);
    rmSync(join(folder, file));
    expect(() => loadUws(urlOf)).toThrow('ENOENT');
  });
});
