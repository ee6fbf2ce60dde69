// WebSockets below the routes, the same on both servers.

import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { ServerWebSocket, WebSocketHandlers } from '../../../src/front/server/http_server.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { raw, SERVERS } from '../kit.ts';
import { get, HEAD, type Served, serve, text } from './raw_server.ts';

const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n';

describe.each(SERVERS)('%s', (kind) => {
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

    it('carries text and binary messages, with the chosen protocol', async () => {
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

    it('reports what its reader does not read, and drains', async () => {
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

    it('that receives too large a message is closed', async () => {
      const { port, sockets } = await accepting();
      const client = connect(port, '/ws/now/attach');
      await opened(client);
      const done = closed(client);
      client.on('error', () => {});
      client.send(Buffer.alloc(65 * 1024));
      await done;
      expect(sockets[0]?.events.filter(([what]) => what === 'binary')).toEqual([]);
    });

    it('whose handler throws is closed and reported as a defect', async () => {
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
      ['with another Upgrade and a key', '/ws/now/attach', `Upgrade: h2c\r\n${KEY}`],
      ['without a key', '/ws/now/attach', 'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'],
    ])('%s is an ordinary request', async (_what, path, head) => {
      const { port } = await accepting();
      const { text: got } = await raw(port, get(path, `Connection: Upgrade\r\n${head}`), /no handshake$/);
      expect(got).toMatch(/^HTTP\/1\.1 200 OK/);
    });

    it.each([
      ['without an Upgrade', KEY],
      [
        'that does not name the Upgrade in Connection',
        `Connection: keep-alive\r\nUpgrade: websocket\r\n${KEY}`,
      ],
    ])('%s is an ordinary request', async (_what, head) => {
      const { port } = await accepting();
      const { text: got } = await raw(port, get('/ws/now/attach', head), /no handshake$/);
      expect(got).toMatch(/^HTTP\/1\.1 200 OK/);
    });
  });
});
