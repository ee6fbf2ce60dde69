// The daemon's own state through every phase: docs/reference.md "System endpoints".
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { fail } from '../../../src/protocol/errors.ts';
import type { ServiceProtocol, StopReply } from '../../../src/protocol/service.ts';
import { settle, virtualClock } from '../../kit/actors.ts';
import {
  expectError,
  type FrontSetup,
  SERVERS,
  SMALL,
  specRow,
  startFront,
  startWithServices,
} from '../kit.ts';

describe.each(SERVERS)('%s', (server) => {
  const start = (setup: FrontSetup = {}) => startFront({ server, ...setup });
  const withServices = (setup: FrontSetup = {}) => startWithServices({ server, ...setup });

  describe('the daemon itself', () => {
    it('identifies itself', async () => {
      const front = await start();
      expect((await front.request('GET', '/v1/version')).body).toEqual({
        name: 'berth',
        version: '1.2.3',
        pid: 42,
        startedAt: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d$/),
        front: server,
        stateDir: '/state',
        gatewayPort: 11612,
        apiLevel: 1,
      });
    });

    it('responds only to liveness checks before it is ready', async () => {
      const front = await start({ ready: false });
      expect((await front.request('GET', '/livez')).status).toBe(200);
      expect((await front.request('GET', '/v1/version')).status).toBe(200);
      for (const path of ['/readyz', '/v1/services', '/v1/services/web', '/v1/events', '/v1/groups'])
        expectError(await front.request('GET', path), 'daemon_busy');
      expectError(await front.request('POST', '/v1/services', { body: SMALL }), 'daemon_busy');
      front.front.setReady(true);
      for (const path of ['/readyz', '/v1/services'])
        expect((await front.request('GET', path)).status).toBe(200);
    });

    it('refuses changes while it shuts down, and still serves reads', async () => {
      const front = await withServices();
      front.front.shutdown();
      expectError(await front.request('GET', '/readyz'), 'daemon_busy');
      for (const [method, path] of [
        ['POST', '/v1/services'],
        ['DELETE', '/v1/services/web'],
        ['POST', '/v1/services/web/start'],
        ['POST', '/v1/services/web/stop'],
        ['POST', '/v1/groups/site/stop'],
        ['POST', '/v1/agents/spinup'],
      ])
        expectError(await front.request(method ?? '', path ?? '', { body: {} }), 'daemon_busy');
      expect((await front.request('GET', '/v1/services')).body.services).toHaveLength(2);
      expect((await front.request('GET', '/livez')).status).toBe(200);
      front.front.setReady(true);
      expectError(await front.request('GET', '/readyz'), 'daemon_busy');
    });

    it('answers open requests before it shuts down', async () => {
      const front = await withServices();
      let finish = (): void => {};
      const service = await front.stand<ServiceProtocol>('service:web', {
        stop: () =>
          new Promise((resolve) => {
            finish = () => resolve(stopped);
          }),
      });
      const stopped: StopReply = {
        name: 'web',
        status: 'stopped',
        exitCode: 0,
        signal: null,
        escalated: false,
        reaped: 1,
        left: [],
        portFree: true,
        ms: 1,
      };
      const asked = front.request('POST', '/v1/services/web/stop');
      await service.next('stop');
      const closed = front.front.close();
      await expect(front.request('GET', '/livez')).rejects.toThrow('ECONNREFUSED');
      finish();
      expect((await asked).body).toEqual(stopped);
      await closed;
    });

    it('answers requests at its shutdown that take too long', async () => {
      const clock = virtualClock();
      const front = await start({ clock });
      front.views.tell('specs', { rows: [specRow('web')] });
      let end = (): void => {};
      const service = await front.stand<ServiceProtocol>('service:web', {
        stop: () =>
          new Promise((_, reject) => {
            end = () => reject(fail('start_failed', 'at last'));
          }),
      });
      await settle();
      const asked = front.request('POST', '/v1/services/web/stop');
      await service.next('stop');
      const closed = front.front.close();
      await clock.advance(5_000);
      const { status, body } = await asked;
      expect([status, body.code]).toEqual([503, 'daemon_busy']);
      await closed;
      end();
    });

    it('does not wait for bodies whose senders have disconnected', async () => {
      // On this clock the longest wait of a close never ends.
      const clock = virtualClock();
      const front = await start({ clock });
      const head = `POST /v1/services HTTP/1.1\r\nHost: localhost:${front.port}\r\nContent-Type: application/json\r\n`;
      const sockets = Array.from({ length: 5 }, () => {
        const socket = net.connect(front.port, '127.0.0.1');
        socket.write(`${head}Content-Length: 100\r\n\r\n{"name":`);
        return socket;
      });
      await front.request('GET', '/livez');
      for (const socket of sockets) socket.destroy();
      await front.request('GET', '/livez');
      await front.front.close();
    });

    it('has a host name for the gateway for each service that can have one', async () => {
      let changes = 0;
      const front = await start({ onRoutesChanged: () => (changes += 1) });
      const agent = { agentType: 'ollama' as const, hostname: 'bot.agents.localhost', cols: 1, rows: 1 };
      front.views.tell('specs', { rows: [specRow('_web'), specRow('a_b')] });
      front.views.tell('specs', { rows: [specRow('bot', { agent, port: 8100 })] });
      await settle();
      expect(changes).toBe(2);
      const service = {
        isAgent: false,
        pid: null,
        isDoorOpen: false,
        isAsleep: false,
        isStarting: false,
        hostHeader: null,
      };
      expect(front.front.gatewayRoutes()).toEqual([
        { ...service, hostname: 'a-b.localhost', name: 'a_b', port: 3000 },
        {
          hostname: 'bot.agents.localhost',
          name: 'bot',
          isAgent: true,
          port: 8100,
          pid: null,
          isDoorOpen: false,
          isAsleep: false,
          isStarting: false,
          hostHeader: '127.0.0.1:8100',
        },
      ]);
      const { body } = await front.request('GET', '/v1/services');
      expect(body.services.map(({ gatewayUrl }: { gatewayUrl: string | null }) => gatewayUrl)).toEqual([
        null,
        'http://a-b.localhost:11612/',
        'http://bot.agents.localhost:11612/',
      ]);
    });
  });
});
