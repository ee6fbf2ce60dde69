// What both servers must do alike, below the routes: real sockets, raw bytes.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import net from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import {
  type HttpExchange,
  type HttpServer,
  ResponseHeaders,
  type ResponseStream,
  type ServerOptions,
  type ServerWebSocket,
  type WebSocketHandlers,
} from '../../../src/front/server/http_server.ts';
import { chooseServer, listenOnAll, type ServerKind } from '../../../src/front/server/listen.ts';
import { isFailure } from '../../../src/runtime/actor.ts';
import { KIB, MIB } from '../../../src/settings/limits.ts';
import { afterThisTest, settle, tempDir } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { send } from '../../kit/http_request.ts';
import { must } from '../../kit/must.ts';
import { raw, SERVERS } from '../kit.ts';

/** sha256 of the binaries that were looked at, one per platform and Node major. */
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

const HEAD = new ResponseHeaders(['Content-Type', 'text/plain', 'X-One', '1']);
const FILLER = Buffer.from(':\n\n');

interface Served {
  server: HttpServer;
  port: number;
  defects: unknown[];
}

async function serve(
  kind: ServerKind,
  handle: (exchange: HttpExchange) => void,
  more: Partial<ServerOptions> = {},
): Promise<Served> {
  const defects: unknown[] = [];
  const create = await chooseServer(() => {}, kind);
  const server = create({
    handle,
    webSocketPaths: ['/ws/:name/attach'],
    maxMessageBytes: 64 * 1024,
    onDefect: (error) => defects.push(error),
    ...more,
  });
  afterThisTest(() => server.close());
  const port = await listenOnAll(server, { bind: '127.0.0.1', port: 0 });
  return { server, port, defects };
}

const later = (work: () => void): void => {
  setImmediate(work);
};
const text = (exchange: HttpExchange, body: string, status = 200) => exchange.send(status, HEAD, body);
const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const post = (path: string, head: string, body = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${head}\r\n${body}`;

describe.each(SERVERS)('%s', (kind) => {
  describe('a request', () => {
    it('is seen as it was sent', async () => {
      const { port, server } = await serve(kind, (x) =>
        text(
          x,
          JSON.stringify([
            x.method,
            x.path,
            x.query(),
            x.header('host'),
            x.header('x-a'),
            x.header('no'),
            x.countHeader('x-a'),
          ]),
        ),
      );
      expect(server.name).toBe(kind);
      const { text: got } = await raw(
        port,
        get('/a%20b/c?x=1&y=%202', 'X-A: 1\r\nx-a: 2\r\nConnection: close\r\n'),
      );
      expect(got).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Type: text\/plain\r\nX-One: 1\r\n/);
      expect(JSON.parse(got.split('\r\n\r\n')[1] ?? '')).toEqual([
        'GET',
        '/a%20b/c',
        'x=1&y=%202',
        'x',
        '1',
        '',
        2,
      ]);
    });

    it('says who sent it', async () => {
      const { port } = await serve(kind, (x) => text(x, x.peerAddress()));
      expect((await send(port, 'GET', '/')).text).toBe('127.0.0.1');
    });

    it('may be answered later', async () => {
      const { port } = await serve(kind, (x) => later(() => text(x, 'later', 201)));
      const answer = await send(port, 'GET', '/');
      expect([answer.status, answer.text, answer.headers['x-one']]).toEqual([201, 'later', '1']);
    });

    it('is answered once', async () => {
      const { port } = await serve(kind, (x) => {
        text(x, 'one');
        text(x, 'two');
        later(() => text(x, 'three'));
      });
      expect((await send(port, 'GET', '/')).text).toBe('one');
      expect((await send(port, 'GET', '/')).text).toBe('one');
    });

    it('with HEAD has a length and no body, and the connection goes on', async () => {
      const { port } = await serve(kind, (x) => {
        if (x.method === 'HEAD') x.send(200, HEAD, { length: 5 });
        else text(x, 'after');
      });
      const { text: got } = await raw(port, `HEAD / HTTP/1.1\r\nHost: x\r\n\r\n${get('/')}`, /after$/);
      const [head = '', rest = ''] = got.split('\r\n\r\n');
      expect(head).toMatch(/content-length: 5/i);
      expect(rest).toMatch(/^HTTP\/1\.1 200 OK/);
    });

    it('with HEAD may have no length, and 204 and 304 have none', async () => {
      const { port } = await serve(kind, (x) => {
        if (x.path === '/none') x.send(200, HEAD, { length: null });
        else x.send(Number(x.path.slice(1)), HEAD, '');
      });
      for (const [method, path] of [
        ['HEAD', '/none'],
        ['GET', '/204'],
        ['GET', '/304'],
      ]) {
        const { text: got } = await raw(port, `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, /\r\n\r\n/);
        expect(got).not.toMatch(/content-length/i);
      }
    });

    it('one after the other on one connection, sent at once, are answered in order', async () => {
      const { port } = await serve(kind, (x) => text(x, `<${x.path}>`));
      const { text: got } = await raw(port, get('/1') + get('/2') + get('/3'), /<\/3>/);
      expect(got.match(/<.*?>/g)).toEqual(['</1>', '</2>', '</3>']);
    });

    it('one after the other on one connection have whole answers, however large and slowly read', async () => {
      const body = Buffer.alloc(300_000, 'b');
      const large = 'ü'.repeat(4_000_000);
      const { port } = await serve(kind, (x) => {
        if (x.path === '/large') later(() => text(x, large));
        else x.send(200, HEAD, body);
      });
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      afterThisTest(() => agent.destroy());
      const sockets = new Set<unknown>();
      const ask = (path: string): Promise<Buffer> =>
        new Promise((resolve, reject) => {
          const sent = http.get({ host: '127.0.0.1', port, path, agent }, async (response) => {
            sockets.add(response.socket);
            const parts: Buffer[] = [];
            for await (const part of response) {
              parts.push(part);
              await settle();
            }
            resolve(Buffer.concat(parts));
          });
          sent.on('error', reject);
        });
      for (const path of ['/', '/', '/large', '/', '/large', '/'])
        expect((await ask(path)).equals(path === '/' ? body : Buffer.from(large))).toBe(true);
      expect(sockets.size).toBe(1);
    });

    it.each([
      ['large', 'x'.repeat(64 * KIB)],
      ['small', 'x'.repeat(900)],
    ])('sent at once by a client that reads nothing is not answered without end: %s', async (_what, body) => {
      const total = 60_000;
      let answers = 0;
      const { port } = await serve(kind, (x) => {
        if (x.path === '/other') return text(x, 'fine');
        answers += 1;
        text(x, body);
      });
      const deaf = net.connect(port, '127.0.0.1').pause();
      afterThisTest(() => void deaf.destroy());
      deaf.on('error', () => {});
      deaf.write(get('/').repeat(total));
      // Until none is added while others are answered.
      for (let before = 0, turn = 0; turn < 20; turn += 1) {
        if (answers === 0 || before < answers) turn = 0;
        before = answers;
        expect((await send(port, 'GET', '/other')).text).toBe('fine');
      }
      expect(answers).toBeLessThan(total / 2);
    });

    it.each([
      ['HEAD', (x: HttpExchange) => x.send(200, HEAD, { length: 1234 })],
      ['OPTIONS', (x: HttpExchange) => x.send(204, HEAD, '')],
      ['GET', (x: HttpExchange) => x.send(304, HEAD, '')],
    ])(
      '%s without a body is not answered without end to a client that reads nothing',
      async (method, answer) => {
        const total = 60_000;
        let answers = 0;
        const { port } = await serve(kind, (x) => {
          if (x.path === '/other') return text(x, 'fine');
          answers += 1;
          answer(x);
        });
        const deaf = net.connect(port, '127.0.0.1').pause().setNoDelay();
        afterThisTest(() => void deaf.destroy());
        deaf.on('error', () => {});
        // Requests that come cut into pieces may have uWebSockets.js hang up: the next ones go when those before are answered.
        for (let sent = 0, turn = 0; sent < total && turn < 20; ) {
          if (answers === sent) {
            deaf.write(`${method} / HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(200));
            sent += 200;
            turn = 0;
          } else turn += 1;
          expect((await send(port, 'GET', '/other')).text).toBe('fine');
        }
        expect(answers).toBeGreaterThan(0);
        expect(answers).toBeLessThan(total);
      },
    );

    it('without a body is answered whole, also when its connection ends with it', async () => {
      const { port } = await serve(kind, (x) => {
        const answer = (): void => x.send(200, HEAD, { length: 1234 });
        if (x.path === '/later') later(answer);
        else answer();
      });
      let isClosed = 0;
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      afterThisTest(() => agent.destroy());
      const ask = (path: string): Promise<IncomingMessage> =>
        new Promise((resolve, reject) =>
          http.request({ port, agent, path, method: 'HEAD' }, resolve).on('error', reject).end(),
        );
      for (let turn = 0; turn < 5_000; turn += 1) {
        const answer = await ask(turn % 2 === 0 ? '/' : '/later');
        const { date, connection, 'content-length': length, 'x-one': one } = answer.headers;
        expect([answer.statusCode, length, one, Number.isNaN(Date.parse(date ?? ''))]).toEqual([
          200,
          '1234',
          '1',
          false,
        ]);
        if (connection === 'close') isClosed += 1;
        await once(answer.resume(), 'end');
      }
      // Of the other server the machine's own buffers are the bound.
      if (kind === 'uWebSockets.js') expect(isClosed).toBeGreaterThan(0);
    });

    it('that closes is answered and closed', async () => {
      const { port } = await serve(kind, (x) => x.send(400, HEAD, 'bad', true));
      const { text: got, closed } = await raw(port, get('/'));
      expect([got.includes('\r\n\r\nbad'), /connection: close/i.test(got), closed]).toEqual([
        true,
        true,
        true,
      ]);
    });

    it('whose handler throws is answered 500, told as a defect, and the server goes on', async () => {
      const { port, defects } = await serve(kind, (x) => {
        if (x.path === '/throw') throw new Error('a defect');
        text(x, 'fine');
      });
      expect((await send(port, 'GET', '/throw')).status).toBe(500);
      expect((await send(port, 'POST', '/throw', { body: { a: 1 } })).status).toBe(500);
      expect(defects).toHaveLength(2);
      expect((await send(port, 'GET', '/')).text).toBe('fine');
    });

    it('that nobody answers does not end the server, nor does a client that gives up', async () => {
      let asked = (): void => {};
      const arrived = new Promise<void>((resolve) => {
        asked = resolve;
      });
      let kept: HttpExchange | undefined;
      const { port } = await serve(kind, (x) => {
        if (x.path !== '/never') return text(x, 'fine');
        kept = x;
        asked();
      });
      const socket = net.connect(port, '127.0.0.1', () => socket.write(get('/never')));
      await arrived;
      socket.destroy();
      expect((await send(port, 'GET', '/')).text).toBe('fine');
      // Its client has gone: nothing may happen, not even an error.
      kept?.send(200, HEAD, 'too late');
      expect(kept?.startStream(HEAD, FILLER)).toBe(null);
      expect((await send(port, 'GET', '/')).text).toBe('fine');
    });

    it('cannot be read after its handler has returned, where the server takes it away', async () => {
      let kept: HttpExchange | undefined;
      const { port } = await serve(kind, (x) => {
        kept = x;
        text(x, '');
      });
      await send(port, 'GET', '/');
      if (kind === 'uWebSockets.js') expect(() => kept?.header('host')).toThrow('before its handler returns');
    });

    it.each([
      ['HTTP/1.0', 'GET / HTTP/1.0\r\nHost: x\r\n\r\n'],
      ['no version', 'GET /\r\nHost: x\r\n\r\n'],
      ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
      ['a full URL', 'GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n'],
      ['a star', 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n'],
      ['rubbish', 'hello\r\n\r\n'],
      ['a length that is no number', post('/', 'Content-Length: abc\r\n')],
      ['a negative length', post('/', 'Content-Length: -1\r\n')],
      ['a length and chunks', post('/', 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n')],
      ['no Host', 'GET / HTTP/1.1\r\nA: b\r\n\r\n'],
      ['bare newlines', 'GET / HTTP/1.1\nHost: x\n\n'],
    ])('that is no HTTP/1.1 (%s) is refused and the connection closed', async (_what, bytes) => {
      const seen: string[] = [];
      const { port } = await serve(kind, (x) => {
        seen.push(x.path);
        x.readBody({ bytes: 10, ms: 1000 }).then(
          () => text(x, 'taken'),
          () => text(x, 'refused'),
        );
      });
      const { text: got, closed } = await raw(port, bytes);
      expect(closed).toBe(true);
      expect(got).toMatch(/^(HTTP\/1\.1 (400|431|505) |$)/);
      expect(got).not.toContain('taken');
      expect((await send(port, 'POST', '/', { body: 1 })).text).toBe('taken');
    });
  });

  describe('a body', () => {
    const limits = { bytes: 1000, ms: 5000 };
    const echo = (x: HttpExchange) =>
      void x.readBody(limits).then(
        (bytes) => text(x, `${bytes.length}:${Buffer.from(bytes).toString('latin1')}`),
        (error) =>
          x.send(
            isFailure(error) && error.code === 'payload_too_large' ? 413 : 408,
            HEAD,
            error.message,
            true,
          ),
      );

    it.each([
      ['whole', post('/', 'Content-Length: 3\r\n', 'abc'), '3:abc'],
      ['empty', post('/', 'Content-Length: 0\r\n'), '0:'],
      ['absent', post('/', ''), '0:'],
      [
        'in chunks',
        post('/', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'),
        '5:abcde',
      ],
      [
        'as large as it may be',
        post('/', 'Content-Length: 1000\r\n', 'x'.repeat(1000)),
        `1000:${'x'.repeat(1000)}`,
      ],
    ])('%s', async (_what, bytes, expected) => {
      const { port } = await serve(kind, echo);
      const { text: got } = await raw(port, bytes, new RegExp(`${expected}$`));
      expect(got.endsWith(expected)).toBe(true);
    });

    it('in pieces is put together, and what follows is the next request', async () => {
      const { port } = await serve(kind, echo);
      const socket = net.connect(port, '127.0.0.1');
      afterThisTest(() => void socket.destroy());
      let got = '';
      socket.on('data', (part) => {
        got += part;
      });
      for (const piece of [
        'POST / HTTP/1.1\r\n',
        'Ho',
        'st: x\r\nContent-Le',
        'ngth: 6\r\n\r\nab',
        'c',
        'def',
      ]) {
        socket.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await eventually(() => got.includes('6:abcdef'));
      socket.write(post('/', 'Content-Length: 1\r\n', 'z'));
      await eventually(() => got.includes('1:z'));
    });

    it('is asked for when the client waits to be asked', async () => {
      const { port } = await serve(kind, echo);
      const socket = net.connect(port, '127.0.0.1');
      afterThisTest(() => void socket.destroy());
      const got = await new Promise<string>((resolve) => {
        let all = '';
        socket.on('data', (part) => {
          all += part;
          if (/^HTTP\/1\.1 100 Continue\r\n\r\n$/.test(all)) socket.write('abc');
          if (all.endsWith('3:abc')) resolve(all);
        });
        socket.write(post('/', 'Content-Length: 3\r\nExpect: 100-continue\r\n'));
      });
      expect(got).toContain('200 OK');
    });

    it.each([
      ['a little', 1001],
      ['much', 3 * MIB],
    ])('too large by %s is read to its end, so that its sender sees the 413', async (_how, size) => {
      const { port } = await serve(kind, echo);
      expect((await send(port, 'POST', '/', { body: 'x'.repeat(size) })).status).toBe(413);
      const chunked = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n0\r\n\r\n`;
      const { text: got, closed } = await raw(port, post('/', 'Transfer-Encoding: chunked\r\n', chunked));
      expect([got.slice(0, 12), closed]).toEqual(['HTTP/1.1 413', true]);
    });

    it('without an end is cut off', async () => {
      const { port } = await serve(kind, echo);
      const socket = net.connect(port, '127.0.0.1');
      const part = Buffer.alloc(256 * 1024, 'x');
      let sent = 0;
      await new Promise<void>((resolve) => {
        socket.on('error', () => resolve());
        socket.on('close', () => resolve());
        socket.resume();
        socket.write(post('/', `Content-Length: ${200 * MIB}\r\n`));
        const more = () => {
          while (!socket.destroyed && sent < 100 * MIB) {
            sent += part.length;
            if (!socket.write(part)) {
              socket.once('drain', more);
              return;
            }
          }
        };
        more();
      });
      expect(sent).toBeLessThan(60 * MIB);
      expect((await send(port, 'POST', '/', { body: '1' })).status).toBe(200);
    });

    it('that does not come in time is given up', async () => {
      const { port } = await serve(
        kind,
        (x) =>
          void x.readBody({ bytes: 10, ms: 50 }).then(
            () => text(x, 'whole'),
            (error) =>
              x.send(isFailure(error) && error.code === 'request_timeout' ? 408 : 500, HEAD, 'late', true),
          ),
      );
      for (const sent of ['', 'a']) {
        const { text: got, closed } = await raw(port, post('/', 'Content-Length: 3\r\n', sent));
        expect([got.slice(0, 12), closed]).toEqual(['HTTP/1.1 408', true]);
      }
      expect((await send(port, 'POST', '/', { body: 'abc' })).text).toBe('whole');
    });

    it('that nobody wants is passed over', async () => {
      const { port } = await serve(kind, (x) => text(x, `<${x.path}>`));
      const { text: got } = await raw(
        port,
        post('/1', 'Content-Length: 5\r\n', 'hello') + get('/2'),
        /<\/2>/,
      );
      expect(got.match(/<.*?>/g)).toEqual(['</1>', '</2>']);
    });

    it('half sent by a client that goes is forgotten', async () => {
      const { port } = await serve(kind, echo);
      await new Promise<void>((resolve) => {
        const socket = net.connect(port, '127.0.0.1', () => {
          socket.write(post('/', 'Content-Length: 500\r\n', 'half'), () => {
            socket.destroy();
            resolve();
          });
        });
      });
      expect((await send(port, 'POST', '/', { body: 'ok' })).text).toBe('2:ok');
    });
  });

  describe('a stream', () => {
    const read = (socket: net.Socket): { text: () => string } => {
      let got = '';
      socket.on('data', (part) => {
        got += part.toString('latin1');
      });
      return { text: () => got };
    };
    async function streaming(): Promise<
      { stream: ResponseStream; socket: net.Socket; got: () => string } & Served
    > {
      let opened: (stream: ResponseStream) => void = () => {};
      const opening = new Promise<ResponseStream>((resolve) => {
        opened = resolve;
      });
      const served = await serve(kind, (x) => {
        if (x.path === '/') return text(x, 'fine');
        const open = () => {
          const stream = must(x.startStream(HEAD, FILLER));
          stream.write(Buffer.from('first\n'));
          opened(stream);
        };
        if (x.path === '/now') open();
        else later(open);
      });
      const socket = net.connect(served.port, '127.0.0.1');
      afterThisTest(() => void socket.destroy());
      socket.on('error', () => {});
      const { text: got } = read(socket);
      socket.write(get('/later'));
      return { stream: await opening, socket, got, ...served };
    }

    it.each(['/now', '/later'])('begun %s has its head at once', async (path) => {
      const { port } = await serve(kind, (x) => {
        const begin = () => x.startStream(HEAD, FILLER)?.write(Buffer.from('first\n'));
        if (path === '/now') begin();
        else later(begin);
      });
      const { text: got } = await raw(port, get(path), /first\n/);
      expect(got).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Type: text\/plain\r\nX-One: 1\r\n/);
      expect(got).not.toMatch(/content-length/i);
    });

    it('ends in order after all that was written', async () => {
      const { stream, socket, got } = await streaming();
      let closes = 0;
      stream.onClose = () => {
        closes += 1;
      };
      stream.write(Buffer.from('second\n'));
      stream.end();
      stream.end();
      stream.write(Buffer.from('third\n'));
      await eventually(() => got().endsWith('0\r\n\r\n'));
      expect(got()).toContain('second\n');
      expect(got()).not.toContain('third');
      socket.destroy();
      expect(closes).toBe(1);
    });

    it('tells when its reader has gone', async () => {
      const { stream, socket } = await streaming();
      const gone = new Promise<void>((resolve) => {
        stream.onClose = resolve;
      });
      socket.destroy();
      await gone;
      stream.write(Buffer.from('x'));
      stream.keepAlive();
      stream.end();
      stream.destroy();
      expect(stream.bufferedBytes).toBe(0);
    });

    it('can be cut', async () => {
      const { stream, socket } = await streaming();
      const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
      let closes = 0;
      stream.onClose = () => {
        closes += 1;
      };
      stream.destroy();
      await closed;
      expect([closes, stream.bufferedBytes]).toEqual([1, 0]);
    });

    it('says the filler when it is touched', async () => {
      const { stream, got } = await streaming();
      stream.keepAlive();
      await eventually(() => got().includes(':\n\n'));
    });

    it('holds what a reader does not take, and gives all of it in order when it does', async () => {
      const { stream, socket, got } = await streaming();
      await eventually(() => got().includes('first'));
      socket.pause();
      let drains = 0;
      stream.onDrain = () => {
        drains += 1;
      };
      // Small and large ones, until the kernel has taken all it takes.
      let lines = 0;
      const write = (count: number): void => {
        const numbers = Array.from({ length: count }, (_, index) =>
          String(lines + index + 1).padStart(9, '0'),
        );
        lines += count;
        stream.write(Buffer.from(`${numbers.join('\n')}\n`));
      };
      while (stream.bufferedBytes < 512 * 1024) {
        write(500);
        write(1);
        if (lines % 5010 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      expect(stream.bufferedBytes).toBeLessThan(MIB);
      drains = 0;
      stream.keepAlive();
      socket.resume();
      await eventually(() => drains > 0);
      expect(stream.bufferedBytes).toBe(0);
      stream.write(Buffer.from('last\n'));
      stream.end();
      await eventually(() => got().endsWith('0\r\n\r\n'));
      const body = got().slice(got().indexOf('\r\n\r\n') + 4);
      const numbers = dechunk(body)
        .split('\n')
        .filter((line) => /^\d{9}$/.test(line))
        .map(Number);
      expect(numbers).toEqual(Array.from({ length: lines }, (_, index) => index + 1));
      expect(dechunk(body)).toContain('last\n');
    });

    it('cut while it holds much lets go of it', async () => {
      const { stream, socket, port } = await streaming();
      socket.pause();
      while (stream.bufferedBytes < 512 * 1024) {
        stream.write(Buffer.alloc(32 * 1024, 'x'));
        await new Promise((resolve) => setImmediate(resolve));
      }
      stream.destroy();
      expect(stream.bufferedBytes).toBe(0);
      expect((await send(port, 'GET', '/')).text).toBe('fine');
    });
  });

  describe('a WebSocket', () => {
    interface Server {
      socket: ServerWebSocket;
      events: [what: string, value: unknown][];
    }
    async function accepting(
      open?: (socket: ServerWebSocket) => WebSocketHandlers,
    ): Promise<Served & { sockets: Server[] }> {
      const sockets: Server[] = [];
      const served = await serve(kind, (x) => {
        if (!x.isHandshake) return text(x, 'no handshake');
        if (x.path === '/ws/no/attach') return x.send(409, HEAD, 'no');
        x.acceptWebSocket('berth.v1', (socket) => {
          const server: Server = { socket, events: [] };
          sockets.push(server);
          return (
            open?.(socket) ?? {
              message: (data, binary) => {
                server.events.push([binary ? 'binary' : 'text', Buffer.from(data).toString()]);
                socket.send(binary ? data : Buffer.from(data).toString());
              },
              drain: () => server.events.push(['drain', socket.bufferedBytes]),
              close: (code) => server.events.push(['close', code]),
            }
          );
        });
      });
      return { ...served, sockets };
    }
    const connect = (port: number, path: string, protocols = ['berth.v1', 'other']) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, { perMessageDeflate: false });
      afterThisTest(() => socket.terminate());
      return socket;
    };
    const opened = (socket: WebSocket) =>
      new Promise<void>((resolve, reject) => {
        socket.on('open', resolve);
        socket.on('error', reject);
      });
    const next = (socket: WebSocket) =>
      new Promise<[string, boolean]>((resolve) =>
        socket.once('message', (data, binary) => resolve([data.toString(), binary])),
      );
    const closed = (socket: WebSocket) =>
      new Promise<[number, string]>((resolve) =>
        socket.on('close', (code, reason) => resolve([code, reason.toString()])),
      );

    it('carries text and bytes, and has the chosen protocol', async () => {
      const { port, sockets } = await accepting();
      const client = connect(port, '/ws/now/attach');
      await opened(client);
      expect(client.protocol).toBe('berth.v1');
      client.send('hällo');
      expect(await next(client)).toEqual(['hällo', false]);
      client.send(Buffer.from([0, 1, 2]));
      expect(await next(client)).toEqual(['\0\x01\x02', true]);
      expect(sockets[0]?.events).toEqual([
        ['text', 'hällo'],
        ['binary', '\0\x01\x02'],
      ]);
    });

    it('is closed by either side with its code', async () => {
      const { port, sockets } = await accepting();
      const one = connect(port, '/ws/now/attach');
      await opened(one);
      const done = closed(one);
      sockets[0]?.socket.close(1007, 'why');
      expect(await done).toEqual([1007, 'why']);
      const two = connect(port, '/ws/now/attach');
      await opened(two);
      two.close(1000);
      await closed(two);
      await eventually(() => sockets[1]?.events.length !== 0);
      expect(sockets[1]?.events).toEqual([['close', 1000]]);
      // Too late, and harmless.
      sockets[1]?.socket.send('x');
      sockets[1]?.socket.close(1000);
      expect(sockets[1]?.socket.bufferedBytes).toBe(0);
    });

    it('may be refused before it is opened', async () => {
      const { port } = await accepting();
      const client = connect(port, '/ws/no/attach');
      const status = await new Promise((resolve) => {
        client.on('unexpected-response', (_request, response) => {
          resolve(response.statusCode);
          response.resume();
        });
        client.on('error', () => {});
      });
      expect(status).toBe(409);
    });

    it('shows what its reader does not take, and drains', async () => {
      const { port, sockets } = await accepting();
      const client = connect(port, '/ws/now/attach');
      await opened(client);
      const server = sockets[0];
      if (!server) throw new Error('not open');
      client.pause();
      let sent = 0;
      while (server.socket.bufferedBytes < MIB) {
        server.socket.send(Buffer.alloc(64 * 1024, 1));
        sent += 64 * 1024;
        await new Promise((resolve) => setImmediate(resolve));
      }
      let got = 0;
      client.on('message', (data: Buffer) => {
        got += data.length;
      });
      client.resume();
      await eventually(() => got === sent);
      expect(server.socket.bufferedBytes).toBe(0);
      expect(server.events.some(([what]) => what === 'drain')).toBe(true);
    });

    it('that sends too large a message is cut off', async () => {
      const { port, sockets } = await accepting();
      const client = connect(port, '/ws/now/attach');
      await opened(client);
      const done = closed(client);
      client.on('error', () => {});
      client.send(Buffer.alloc(65 * 1024));
      await done;
      expect(sockets[0]?.events.filter(([what]) => what === 'binary')).toEqual([]);
    });

    it('whose handler throws is closed, and told as a defect', async () => {
      const { port, defects } = await accepting(() => ({
        message: () => {
          throw new Error('a defect');
        },
        drain: () => {},
        close: () => {},
      }));
      const client = connect(port, '/ws/now/attach');
      await opened(client);
      const done = closed(client);
      client.send('x');
      expect((await done)[0]).toBe(1011);
      expect(defects).toHaveLength(1);
    });

    it.each([
      ['on a path without one', '/other', 'Upgrade: websocket\r\n'],
      ['with another Upgrade', '/ws/now/attach', 'Upgrade: h2c\r\n'],
      ['without a key', '/ws/now/attach', 'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'],
    ])('%s is an ordinary request', async (_what, path, head) => {
      const { port } = await accepting();
      const { text: got } = await raw(port, get(path, `Connection: Upgrade\r\n${head}`), /no handshake$/);
      expect(got).toMatch(/^HTTP\/1\.1 200 OK/);
    });
  });

  describe('addresses', () => {
    it('are both loopbacks with one port where the machine has both', async () => {
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

    it('that are taken are refused, naming the holder', async () => {
      const first = await serve(kind, (x) => text(x, 'first'));
      const create = await chooseServer(() => {}, kind);
      const second = create({
        handle: (x) => text(x, 'second'),
        webSocketPaths: [],
        maxMessageBytes: 1,
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

    it('of which one is taken are both refused', async () => {
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

    it('that the machine does not have are said', async () => {
      const create = await chooseServer(() => {}, kind);
      const server = create({
        handle: (x) => text(x, ''),
        webSocketPaths: [],
        maxMessageBytes: 1,
        onDefect: () => {},
      });
      afterThisTest(() => server.close());
      await expect(listenOnAll(server, { bind: '192.0.2.1', port: 0 })).rejects.toThrow('EADDRNOTAVAIL');
    });

    it('are let go of', async () => {
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

  it('speaks TLS when it is given a certificate', async () => {
    const folder = tempDir();
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    execFileSync(
      'openssl',
      [
        ...[
          'req',
          '-x509',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:prime256v1',
          '-nodes',
          '-days',
          '2',
        ],
        ...['-subj', '/CN=localhost', '-keyout', key, '-out', cert],
      ],
      { stdio: 'ignore' },
    );
    const { port } = await serve(kind, (x) => later(() => text(x, 'secret')), { tls: { key, cert } });
    const got = await new Promise((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port,
        ca: readFileSync(cert),
        servername: 'localhost',
        agent: false,
      };
      https
        .get(options, (response) => response.on('data', (part) => resolve(String(part))))
        .on('error', reject);
    });
    expect(got).toBe('secret');
  });
});

/** The data of chunks. */
function dechunk(body: string): string {
  let data = '';
  for (let at = 0; ; ) {
    const end = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.slice(at, end), 16);
    if (!size) return data;
    data += body.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}

describe('the choice', () => {
  it('is uWebSockets.js where it loads', async () => {
    const lines: string[] = [];
    const create = await chooseServer((line) => lines.push(line));
    const server = create({ handle: () => {}, webSocketPaths: [], maxMessageBytes: 1, onDefect: () => {} });
    afterThisTest(() => server.close());
    if (server.name === 'uWebSockets.js') expect(lines).toEqual([]);
    else expect(lines).toEqual([expect.stringContaining('node:http serves')]);
  });

  it('is node:http where it does not, and says why in one line', async () => {
    vi.doMock('../../../src/front/server/uws_server.ts', () => {
      throw new Error('This supports only some versions of Node.\n\nError: GLIBC_2.38 not found');
    });
    afterThisTest(() => {
      vi.doUnmock('../../../src/front/server/uws_server.ts');
    });
    const lines: string[] = [];
    const create = await chooseServer((line) => lines.push(line));
    const server = create({ handle: () => {}, webSocketPaths: [], maxMessageBytes: 1, onDefect: () => {} });
    afterThisTest(() => server.close());
    expect(server.name).toBe('node:http');
    expect(lines).toEqual([
      expect.stringMatching(/^uWebSockets\.js does not load here, so node:http serves: .+$/),
    ]);
    await expect(chooseServer(() => {}, 'uWebSockets.js')).rejects.toThrow();
  });

  it('loads the binary that was looked at', () => {
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
