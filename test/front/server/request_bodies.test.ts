// Request bodies below the routes, the same on both servers.
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import type { HttpExchange } from '../../../src/front/server/http_server.ts';
import { isFailure } from '../../../src/runtime/actor.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { send } from '../../kit/http_request.ts';
import { raw, SERVERS } from '../kit.ts';
import { get, HEAD, post, serve, text } from './raw_server.ts';

describe.each(SERVERS)('%s', (kind) => {
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

    it('that arrives in pieces is joined, and the data after it is the next request', async () => {
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

    it('is requested when the client waits for 100-continue', async () => {
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

    it('without an end is aborted', async () => {
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

    it('that does not arrive in time is dropped', async () => {
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

    it('that no handler reads is skipped', async () => {
      const { port } = await serve(kind, (x) => text(x, `<${x.path}>`));
      const { text: got } = await raw(
        port,
        post('/1', 'Content-Length: 5\r\n', 'hello') + get('/2'),
        /<\/2>/,
      );
      expect(got.match(/<.*?>/g)).toEqual(['</1>', '</2>']);
    });

    it('of a client that disconnects halfway is dropped', async () => {
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
});
