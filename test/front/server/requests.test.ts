// Requests and responses below the routes, the same on both servers: real sockets, raw bytes.
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import type { HttpExchange } from '../../../src/front/server/http_server.ts';
import { KIB } from '../../../src/settings/limits.ts';
import { afterThisTest, settle } from '../../kit/actors.ts';
import { send } from '../../kit/http_request.ts';
import { raw, SERVERS } from '../kit.ts';
import { FILLER, get, HEAD, later, post, serve, text } from './raw_server.ts';

describe.each(SERVERS)('%s', (kind) => {
  describe('a request', () => {
    it('arrives as it was sent', async () => {
      const { port, server } = await serve(kind, (x) =>
        text(
          x,
          JSON.stringify([x.method, x.path, x.query(), x.header('host'), x.header('x-a'), x.header('no')]),
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
      ]);
    });

    it('names its peer', async () => {
      const { port } = await serve(kind, (x) => text(x, x.peerAddress()));
      expect((await send(port, 'GET', '/')).text).toBe('127.0.0.1');
    });

    it('may be answered later', async () => {
      const { port } = await serve(kind, (x) => later(() => text(x, 'later', 201)));
      const answer = await send(port, 'GET', '/');
      expect([answer.status, answer.text, answer.headers['x-one']]).toEqual([201, 'later', '1']);
    });

    it('is answered only once', async () => {
      const { port } = await serve(kind, (x) => {
        text(x, 'one');
        text(x, 'two');
        later(() => text(x, 'three'));
      });
      expect((await send(port, 'GET', '/')).text).toBe('one');
      expect((await send(port, 'GET', '/')).text).toBe('one');
    });

    it('with HEAD has a length and no body, and the connection stays open', async () => {
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

    it('pipelined on one connection is answered in order', async () => {
      const { port } = await serve(kind, (x) => text(x, `<${x.path}>`));
      const { text: got } = await raw(port, get('/1') + get('/2') + get('/3'), /<\/3>/);
      expect(got.match(/<.*?>/g)).toEqual(['</1>', '</2>', '</3>']);
    });

    it('pipelined is answered completely, however large the response and slow the reader', async () => {
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
    ])('pipelined by a client that reads nothing is answered up to a limit: %s', async (_what, body) => {
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
      // Until the number stays the same while others are answered.
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
      '%s without a body is answered up to a limit for a client that reads nothing',
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
        // uWebSockets.js may close a connection whose requests arrive in pieces: the next ones go when the
        // earlier are answered.
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

    it('without a body is answered completely, also when its connection ends with it', async () => {
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
      // The other server is limited by the machine's own buffers.
      if (kind === 'uWebSockets.js') expect(isClosed).toBeGreaterThan(0);
    });

    it('that asks to close is answered and closed', async () => {
      const { port } = await serve(kind, (x) => x.send(400, HEAD, 'bad', true));
      const { text: got, closed } = await raw(port, get('/'));
      expect([got.includes('\r\n\r\nbad'), /connection: close/i.test(got), closed]).toEqual([
        true,
        true,
        true,
      ]);
    });

    it('whose handler throws gets 500 and is reported as a defect, and the server continues', async () => {
      const { port, defects } = await serve(kind, (x) => {
        if (x.path === '/throw') throw new Error('a defect');
        text(x, 'fine');
      });
      expect((await send(port, 'GET', '/throw')).status).toBe(500);
      expect((await send(port, 'POST', '/throw', { body: { a: 1 } })).status).toBe(500);
      expect(defects).toHaveLength(2);
      expect((await send(port, 'GET', '/')).text).toBe('fine');
    });

    it('without a response does not end the server, nor does a client that disconnects', async () => {
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
      // Its client has left: nothing may happen, not even an error.
      kept?.send(200, HEAD, 'too late');
      expect(kept?.startStream(HEAD, FILLER)).toBe(null);
      expect((await send(port, 'GET', '/')).text).toBe('fine');
    });

    it('is unreadable after its handler has returned if the server reuses its memory', async () => {
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
    ])('that is not HTTP/1.1 (%s) is refused and the connection closed', async (_what, bytes) => {
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
});
