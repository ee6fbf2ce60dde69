// Reads, paths and methods through real sockets, on both servers: docs/reference.md "HTTP".
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { ROUTES } from '../../../src/front/api/routes.ts';
import type { RegistryProtocol } from '../../../src/protocol/registry.ts';
import type { ServiceExplanation, ServiceProtocol } from '../../../src/protocol/service.ts';
import {
  eventRecord,
  expectError,
  type FrontSetup,
  SAFE,
  SERVERS,
  SMALL,
  specRow,
  startFront,
  startWithServices,
} from '../kit.ts';

describe.each(SERVERS)('%s', (server) => {
  const start = (setup: FrontSetup = {}) => startFront({ server, ...setup });
  const withServices = (setup: FrontSetup = {}) => startWithServices({ server, ...setup });

  describe('reads', () => {
    it('come from the views', async () => {
      const front = await withServices();
      const list = await front.request('GET', '/v1/services');
      expect(list.status).toBe(200);
      expect(list.headers).toMatchObject(SAFE);
      expect(list.body.services.map(({ name }: { name: string }) => name)).toEqual(['db', 'web']);
      expect((await front.request('GET', '/v1/services/web')).body).toMatchObject({ pid: 77, cmd: 'true' });
      expect((await front.request('GET', '/v1/resolve/db')).text).toBe(
        '{"name":"db","url":"http://localhost:3000","port":3000,"status":"stopped"}',
      );
      expect((await front.request('GET', '/v1/groups')).body).toEqual({
        groups: [{ name: 'site', services: 1, running: 1 }],
      });
      expect((await front.request('GET', '/v1/agents')).body).toEqual({ agents: [] });
      expect(front.events.received.map(({ kind }) => kind)).toEqual(['subscribe']);
    });

    it('show the effects of a change as soon as it is answered', async () => {
      const front = await start();
      await front.stand<RegistryProtocol>('registry', {
        register: ({ input }) => {
          front.views.tell('specs', { rows: [specRow(input.name, { port: input.port })] });
          return { stored: { spec: { ...input, env: [] }, revision: 1 }, created: true };
        },
      });
      for (let index = 0; index < 50; index += 1) {
        const name = `s${index}`;
        const made = await front.request('POST', '/v1/services', {
          body: { ...SMALL, name, port: 4000 + index },
        });
        expect([made.status, made.text]).toEqual([
          201,
          `{"name":"${name}","port":${4000 + index},"group":null,"status":"stopped","url":"http://localhost:${4000 + index}","restarts":0,"protocol":"http","gatewayUrl":"http://${name}.localhost:11612/","project":null,"stack":null,"service":null}`,
        ]);
        expect((await front.request('GET', `/v1/services/${name}`)).status).toBe(200);
      }
    });

    it('of unknown names give 404 with their own code', async () => {
      const front = await withServices();
      for (const [path, code] of [
        ['/v1/services/nothing', 'unknown_service'],
        ['/v1/services/No%20Name', 'unknown_service'],
        ['/v1/services/%2e%2e', 'unknown_service'],
        ['/v1/services/__proto__', 'unknown_service'],
        ['/v1/services/a%00b', 'unknown_service'],
        ['/v1/resolve/nothing', 'unknown_service'],
        ['/v1/services/nothing/explain', 'unknown_service'],
        ['/v1/services/nothing/logs', 'unknown_service'],
        ['/v1/services/nothing/logs/stream', 'unknown_service'],
        ['/v1/agents/web/logs', 'unknown_agent'],
        ['/v1/agents/nothing/logs', 'unknown_agent'],
        ['/v1/agents/web/logs/stream', 'unknown_agent'],
      ] as const)
        expectError(await front.request('GET', path), code);
    });

    it('accept percent-encoded names', async () => {
      const front = await withServices();
      expect((await front.request('GET', '/v1/services/%77e%62')).body.name).toBe('web');
      expect((await front.request('GET', '/v1/resolve/w%65b')).body.name).toBe('web');
    });

    it('with HEAD give the same without the body', async () => {
      const front = await withServices();
      for (const path of [
        '/v1/services',
        '/v1/services/web',
        '/v1/version',
        '/v1/services/nothing',
        '/no',
        '/livez',
      ]) {
        const got = await front.request('GET', path);
        const head = await front.request('HEAD', path);
        expect([head.status, head.text]).toEqual([got.status, '']);
        expect(head.headers['content-length']).toBe(got.headers['content-length']);
        expect(head.headers['content-type']).toBe(got.headers['content-type']);
      }
      const stream = await front.request('HEAD', '/v1/events');
      expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream']);
    });
  });

  describe('paths and methods', () => {
    it('that do not exist give 404 and 405', async () => {
      const front = await withServices();
      for (const path of [
        '/',
        '/v1',
        '/v1/',
        '/v1/nothing',
        '/v1/services/',
        '/V1/services',
        '/v1/services/web/',
        '/favicon.ico',
      ])
        expectError(await front.request('GET', path), 'not_found');
      expectError(await front.request('POST', '/v1/nothing', { body: {} }), 'not_found');
      for (const [method, path, allow] of [
        ['DELETE', '/v1/services', 'GET, HEAD, OPTIONS, POST'],
        ['PUT', '/v1/services/web', 'DELETE, GET, HEAD, OPTIONS'],
        ['GET', '/v1/services/web/start', 'OPTIONS, POST'],
        ['HEAD', '/v1/services/web/start', 'OPTIONS, POST'],
        ['PATCH', '/v1/events', 'GET, HEAD, OPTIONS'],
        ['POST', '/livez', 'GET, HEAD, OPTIONS'],
        // An agent may have that name.
        ['PUT', '/v1/agents/spinup', 'DELETE, GET, HEAD, OPTIONS, POST'],
      ]) {
        const answer = await front.request(method ?? '', path ?? '');
        expect([answer.status, answer.headers['allow']]).toEqual([405, allow]);
        if (method !== 'HEAD') expectError(answer, 'method_not_allowed');
      }
    });

    it('with OPTIONS and no Origin list the allowed methods', async () => {
      const front = await start();
      const answer = await front.request('OPTIONS', '/v1/services/web');
      expect([answer.status, answer.headers['allow'], answer.text]).toEqual([
        204,
        'DELETE, GET, HEAD, OPTIONS',
        '',
      ]);
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
      expectError(await front.request('OPTIONS', '/v1/nothing'), 'not_found');
    });

    it('with broken percent-encoding give 400', async () => {
      const front = await withServices();
      for (const path of [
        '/v1/services/%',
        '/v1/services/%zz',
        '/v1/services/%ff',
        '/v1/resolve/a%2',
        '/v1/services/%c3%28/logs',
      ])
        expectError(await front.request('GET', path), 'invalid_spec');
      expectError(await front.request('POST', '/v1/services/%e0%a4/start'), 'invalid_spec');
    });

    it('that change something under an invalid name give 400', async () => {
      const front = await start();
      for (const [method, path] of [
        ['POST', '/v1/services/No/start'],
        ['POST', '/v1/services/a%20b/stop'],
        ['POST', '/v1/services/-a/restart'],
        ['DELETE', `/v1/services/${'a'.repeat(64)}`],
        ['DELETE', '/v1/agents/A'],
        ['POST', '/v1/groups/_x/start'],
        ['POST', '/v1/groups/a%2Fb/stop'],
      ])
        expectError(await front.request(method ?? '', path ?? ''), 'invalid_spec');
    });
  });

  describe('explanations, logs and history', () => {
    it('show times in the form for clients', async () => {
      const front = await withServices();
      const at = Date.UTC(2030, 0, 1);
      const explanation: ServiceExplanation = {
        status: 'crashed',
        reason: 'it ended',
        waitingFor: null,
        lastCheck: { url: 'http://x/', at, status: null, error: 'refused' },
        portHolder: null,
        backoff: { attempt: 2, delayMs: 200, nextAt: at },
        exit: { exitCode: 3, signal: null, at },
        watching: null,
        lastLines: ['a'],
        next: 'restart',
      };
      await front.stand<ServiceProtocol>('service:web', { explain: () => explanation });
      const { body } = await front.request('GET', '/v1/services/web/explain');
      expect(Object.keys(body)).toEqual([
        ...[
          'status',
          'reason',
          'waitingFor',
          'lastCheck',
          'portHolder',
          'backoff',
          'exit',
          'watching',
          'lastLines',
          'next',
        ],
      ]);
      const rfc = /^2030-01-01T|^2029-12-31T/;
      expect(
        [body.lastCheck.at, body.backoff.nextAt, body.exit.at].every((time: string) => rfc.test(time)),
      ).toBe(true);
      expect(Object.keys(body.lastCheck)).toEqual(['url', 'at', 'status', 'error']);
    });

    it('give the last lines of services and agents', async () => {
      const front = await withServices();
      const agent = { agentType: null, hostname: 'bot.agents.localhost', cols: 1, rows: 1 };
      front.views.tell('specs', {
        rows: [specRow('bot', { agent, port: 8100, group: 'Agents' })],
      });
      const answer = (...lines: string[]) => ({
        logs: () => Buffer.from(JSON.stringify(lines)),
      });
      const web = await front.stand<ServiceProtocol>('service:web', answer('one', '', '"zwei" ü'));
      const bot = await front.stand<ServiceProtocol>('service:bot', answer());
      const logs = await front.request(
        'GET',
        '/v1/services/web/logs?lines=5000&timestamps=true&stream=stderr&raw=true',
      );
      expect(logs.text).toBe('{"name":"web","port":3000,"lines":["one","","\\"zwei\\" ü"]}');
      expect(web.of('logs')).toEqual([{ lines: 1000, stream: 'stderr', timestamps: true, raw: true }]);
      expect((await front.request('GET', '/v1/agents/bot/logs')).text).toBe(
        '{"name":"bot","port":8100,"lines":[]}',
      );
      expect(bot.of('logs')).toEqual([{ lines: 50, stream: null, timestamps: false, raw: false }]);
    });

    it('give past events with time and run', async () => {
      const front = await start();
      front.events.answer({ history: () => ({ events: [eventRecord(3)] }) });
      const { body } = await front.request(
        'GET',
        '/v1/events/history?types=service.started&names=web&since=2&limit=5000',
      );
      expect(front.events.of('history')).toEqual([
        { types: ['service.started'], names: ['web'], since: 2, limit: 1024 },
      ]);
      await front.request('GET', '/v1/events/history?limit=1');
      const asked = front.events.of('history')[1]?.types;
      expect(asked).toContain('service.crashed');
      expect(asked).not.toContain('service.stats');
      expect(body.events).toEqual([
        {
          id: 3,
          type: 'service.started',
          data: { name: 'web', pid: 3, url: 'http://localhost:3000', at: expect.any(String), run: 'r1' },
        },
      ]);
    });
  });

  it('survives a thousand bad requests, which change nothing', async () => {
    const front = await withServices();
    const registry = await front.stand<RegistryProtocol>('registry');
    const before = (await front.request('GET', '/v1/services')).text;
    const bytes = [
      'GET',
      ' ',
      '/v1/services',
      '\r\n',
      'Host: ',
      'localhost',
      '\0',
      '%',
      '{',
      'HTTP/1.1',
      '\xff',
      ':',
      'a',
    ];
    let seed = 7;
    const random = (below: number) => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return (seed >>> 8) % below;
    };
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(
        Array.from({ length: 50 }, () => {
          const rubbish = Array.from({ length: random(40) }, () => bytes[random(bytes.length)]).join('');
          const socket = net.connect(front.port, '127.0.0.1');
          socket.on('error', () => {});
          return new Promise<void>((resolve) => {
            socket.on('close', () => resolve());
            socket.on('connect', () => socket.end(Buffer.from(rubbish, 'latin1')));
            socket.resume();
          });
        }),
      );
    }
    expect((await front.request('GET', '/v1/services')).text).toBe(before);
    expect([registry.received, front.defects]).toEqual([[], []]);
  });
});

it('the route table has no two rows with the same path and method', () => {
  const keys = ROUTES.map(({ method, path }) => `${method} ${path}`);
  expect(new Set(keys).size).toBe(keys.length);
});
