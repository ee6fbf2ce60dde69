// Streaming responses, the same on both servers.
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import type { ResponseStream } from '../../../src/front/server/http_server.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { send } from '../../kit/http_request.ts';
import { must } from '../../kit/must.ts';
import { raw, SERVERS } from '../kit.ts';
import { dechunk, FILLER, get, HEAD, later, type Served, serve, text } from './raw_server.ts';

describe.each(SERVERS)('%s', (kind) => {
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

    it.each(['/now', '/later'])('begun %s sends its head at once', async (path) => {
      const { port } = await serve(kind, (x) => {
        const begin = () => x.startStream(HEAD, FILLER)?.write(Buffer.from('first\n'));
        if (path === '/now') begin();
        else later(begin);
      });
      const { text: got } = await raw(port, get(path), /first\n/);
      expect(got).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Type: text\/plain\r\nX-One: 1\r\n/);
      expect(got).not.toMatch(/content-length/i);
    });

    it('ends in order after everything written', async () => {
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

    it('reports when its reader has disconnected', async () => {
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

    it('can be aborted', async () => {
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

    it('sends the keep-alive filler', async () => {
      const { stream, got } = await streaming();
      stream.keepAlive();
      await eventually(() => got().includes(':\n\n'));
    });

    it('buffers what a reader does not read, and delivers all of it in order later', async () => {
      const { stream, socket, got } = await streaming();
      await eventually(() => got().includes('first'));
      socket.pause();
      let drains = 0;
      stream.onDrain = () => {
        drains += 1;
      };
      // Small and large writes, until the kernel's buffers are full.
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

    it('aborted with a full buffer releases it', async () => {
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
});
