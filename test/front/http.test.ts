// docs/reference.md "HTTP" through real sockets, on both servers, with owners that are stand-ins.
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Operation } from '../../src/api/operation.ts';
import { ALL_OPERATIONS } from '../../src/api/operations.ts';
import { ROUTES } from '../../src/front/api/routes.ts';
import type { AgentsProtocol } from '../../src/protocol/agents.ts';
import type { ClustersProtocol } from '../../src/protocol/cloud.ts';
import { ERRORS, fail } from '../../src/protocol/errors.ts';
import type { GroupsProtocol } from '../../src/protocol/groups.ts';
import type { RegistryProtocol } from '../../src/protocol/registry.ts';
import type { ServiceExplanation, ServiceProtocol, StopResult } from '../../src/protocol/service.ts';
import type { TerminalProtocol, TerminalViewersProtocol } from '../../src/protocol/terminal.ts';
import { Failure } from '../../src/runtime/actor.ts';
import { AGENT, MIB } from '../../src/settings/limits.ts';
import { afterThisTest, settle, virtualClock } from '../kit/actors.ts';
import type { Answer } from '../kit/http_request.ts';
import {
  cloudFront,
  eventRecord,
  type FrontSetup,
  type Running,
  runningState,
  SERVERS,
  specRow,
  startFront,
  stateRow,
} from './kit.ts';

const EXTENSION = 'chrome-extension://abcdefghijklmnop';
const SMALL = { name: 'web', port: 3000, cmd: 'true' };

const SAFE = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};

/** An error as every client may rely on it. */
function expectError(answer: Answer, code: keyof typeof ERRORS): void {
  expect([answer.status, answer.body?.code]).toEqual([ERRORS[code].status, code]);
  expect(answer.headers).toMatchObject(SAFE);
  expect(Object.keys(answer.body).slice(0, 3)).toEqual(['code', 'message', 'hint']);
  expect(answer.body.message).not.toBe('');
  expect(answer.body.hint).not.toBe('');
  if (answer.status === 503) expect(answer.headers['retry-after']).toBe('1');
}

describe.each(SERVERS)('%s', (server) => {
  const start = (setup: FrontSetup = {}) => startFront({ server, ...setup });
  async function withServices(setup: FrontSetup = {}): Promise<Running> {
    const front = await start(setup);
    front.views.tell('specs', { rows: [specRow('db'), specRow('web', { group: 'site' })] });
    front.views.tell('states', { rows: [runningState('web', 77)] });
    await settle();
    return front;
  }

  describe('reads', () => {
    it('are answered from the views', async () => {
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
      expect(front.events.letters.map(({ kind }) => kind)).toEqual(['subscribe']);
    });

    it('see what a change has told before it was answered', async () => {
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
          `{"name":"${name}","port":${4000 + index},"group":null,"status":"stopped","url":"http://localhost:${4000 + index}","restarts":0}`,
        ]);
        expect((await front.request('GET', `/v1/services/${name}`)).status).toBe(200);
      }
    });

    it('of what is unknown are 404 with its own code', async () => {
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

    it('know a name that is percent-encoded', async () => {
      const front = await withServices();
      expect((await front.request('GET', '/v1/services/%77e%62')).body.name).toBe('web');
      expect((await front.request('GET', '/v1/resolve/w%65b?x=%zz')).body.name).toBe('web');
    });

    it('with HEAD are the same without the body', async () => {
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
    it('that do not exist are 404 and 405', async () => {
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
        ['GET', '/v1/agents/spinup', 'DELETE, OPTIONS, POST'],
      ]) {
        const answer = await front.request(method ?? '', path ?? '');
        expect([answer.status, answer.headers['allow']]).toEqual([405, allow]);
        if (method !== 'HEAD') expectError(answer, 'method_not_allowed');
      }
    });

    it('with OPTIONS and no Origin say what is allowed', async () => {
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

    it('with broken percent-encoding are 400', async () => {
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

    it('that change something under a name that cannot be are 400', async () => {
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

  describe('the guard', () => {
    it('refuses foreign Hosts, Origins and sites everywhere, streams and sockets too', async () => {
      const front = await withServices({
        pageLookup: () => ({ type: 'text/html', bytes: Buffer.from('x'), etag: '"1"' }),
      });
      for (const path of ['/v1/services', '/v1/events', '/', '/livez', '/nothing', '/v1/agents/web/attach']) {
        expectError(
          await front.request('GET', path, { headers: { host: `evil.example:${front.port}` } }),
          'forbidden_host',
        );
        expectError(
          await front.request('GET', path, { headers: { origin: 'http://evil.example' } }),
          'forbidden_origin',
        );
        expectError(await front.request('GET', path, { headers: { origin: 'null' } }), 'forbidden_origin');
      }
      const site = { 'sec-fetch-site': 'cross-site' };
      expectError(
        await front.request('POST', '/v1/services', { headers: site, body: SMALL }),
        'forbidden_origin',
      );
      expectError(await front.request('DELETE', '/v1/services/web', { headers: site }), 'forbidden_origin');
      const socket = new WebSocket(`ws://127.0.0.1:${front.port}/v1/agents/web/attach`, ['berth.v1'], {
        origin: 'http://localhost:3000',
      });
      const status = await new Promise((resolve) => {
        socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
        socket.on('error', () => {});
      });
      expect(status).toBe(403);
      socket.terminate();
    });

    it('asks for the token before it looks at the path', async () => {
      const front = await withServices({ token: 'secret' });
      for (const [method, path] of [
        ['GET', '/v1/services'],
        ['GET', '/v1/services/web'],
        ['GET', '/v1/events'],
        ['GET', '/v1/version'],
        ['GET', '/nothing'],
        ['POST', '/v1/services'],
        ['PUT', '/v1/services'],
        ['OPTIONS', '/v1/services'],
      ]) {
        for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: 'secret' }]) {
          const answer = await front.request(method ?? '', path ?? '', { headers });
          expectError(answer, 'unauthorized');
          expect(answer.headers['www-authenticate']).toBe('Bearer');
        }
      }
      const authorization = 'Bearer secret';
      expect((await front.request('GET', '/v1/services', { headers: { authorization } })).status).toBe(200);
      expect((await front.request('GET', '/nothing', { headers: { authorization } })).status).toBe(404);
      for (const path of ['/livez', '/readyz', '/openapi.json'])
        expect((await front.request('GET', path)).status).toBe(200);
    });

    it('takes a new token and list of extensions while it runs', async () => {
      const front = await withServices({ token: 'old' });
      const get = (token: string, origin?: string) =>
        front.request('GET', '/v1/services', {
          headers: { authorization: `Bearer ${token}`, ...(origin ? { origin } : {}) },
        });
      expect((await get('old', EXTENSION)).status).toBe(200);
      front.front.reload({ token: 'new', allowedExtensions: ['other'] });
      expect([
        (await get('old')).status,
        (await get('new')).status,
        (await get('new', EXTENSION)).status,
      ]).toEqual([401, 200, 403]);
    });

    it('serves loopback peers only, whatever the address', async () => {
      const outside = Object.values(networkInterfaces())
        .flat()
        .find((address) => address && !address.internal && address.family === 'IPv4')?.address;
      const front = await withServices({ bind: '0.0.0.0' });
      expect((await front.request('GET', '/v1/services')).status).toBe(200);
      if (!outside) return;
      const got = await new Promise<string>((resolve) => {
        const socket = net.connect(front.port, outside, () =>
          socket.write(
            `GET /v1/services HTTP/1.1\r\nHost: localhost:${front.port}\r\nConnection: close\r\n\r\n`,
          ),
        );
        let all = '';
        socket.on('data', (part) => {
          all += part;
        });
        socket.on('close', () => resolve(all));
      });
      expect(got).toMatch(/^HTTP\/1\.1 403 /);
      expect(got).toContain('forbidden_origin');
    });
  });

  describe('an allowed extension', () => {
    it('may ask beforehand', async () => {
      const front = await start({ token: 'secret' });
      for (const path of ['/v1/services', '/v1/services/web/start', '/k8s/clusters', '/nothing']) {
        const answer = await front.request('OPTIONS', path, {
          headers: { origin: EXTENSION, 'access-control-request-method': 'POST' },
        });
        expect([answer.status, answer.text]).toEqual([204, '']);
        expect(answer.headers).toMatchObject({
          'access-control-allow-origin': EXTENSION,
          'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE, OPTIONS',
          'access-control-allow-headers': 'Authorization, Content-Type, Last-Event-ID',
          vary: 'Origin',
        });
      }
    });

    it('can read every answer, errors too', async () => {
      const front = await withServices({ token: 'secret' });
      const authorization = 'Bearer secret';
      const cors = {
        'access-control-allow-origin': EXTENSION,
        'access-control-expose-headers': 'Retry-After, Allow',
        vary: 'Origin',
      };
      for (const [method, path, headers, status] of [
        ['GET', '/v1/services', { authorization }, 200],
        ['GET', '/v1/version', { authorization }, 200],
        ['GET', '/v1/services/nothing', { authorization }, 404],
        ['GET', '/nothing', { authorization }, 404],
        ['PUT', '/v1/services', { authorization }, 405],
        ['OPTIONS', '/v1/services', { authorization }, 204],
        ['POST', '/v1/services', { authorization }, 400],
        ['GET', '/v1/services', {}, 401],
        ['HEAD', '/v1/events', { authorization }, 200],
      ] as const) {
        const answer = await front.request(method, path, { headers: { ...headers, origin: EXTENSION } });
        expect([path, answer.status]).toEqual([path, status]);
        expect(answer.headers).toMatchObject(cors);
      }
    });

    it('is the only one whose origin is ever echoed', async () => {
      const front = await withServices();
      for (const headers of [
        {},
        { origin: `http://localhost:${front.port}` },
        { origin: 'http://evil.example' },
      ]) {
        const answer = await front.request('GET', '/v1/services', { headers });
        expect(answer.headers['access-control-allow-origin']).toBeUndefined();
        expect(JSON.stringify(answer.headers)).not.toContain('*');
      }
    });
  });

  describe('bodies', () => {
    const post = (front: Running, body: unknown, headers: Record<string, string> = {}) =>
      front.request('POST', '/v1/services', { body, headers });

    it('that are wrong are refused, and the registry hears of none', async () => {
      const front = await start();
      const registry = await front.stand<RegistryProtocol>('registry');
      for (const body of ['', '{', '[]', 'null', '"x"', '{"name":"web"', '\ufeff{}', '['.repeat(100_000)])
        expectError(await post(front, body), 'invalid_spec');
      expectError(await post(front, Buffer.from([0x7b, 0xff, 0x7d])), 'invalid_spec');
      expectError(await front.request('POST', '/v1/services'), 'invalid_spec');
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', ''])
        expectError(await post(front, SMALL, { 'content-type': type }), 'unsupported_media_type');
      expectError(await post(front, { ...SMALL, cmd: 'x'.repeat(1024 * 1024) }), 'payload_too_large');
      const wrong = await post(front, { name: 'No', port: 'x', extra: 1 });
      expectError(wrong, 'invalid_spec');
      expect(wrong.body.details.map(({ path }: { path: string }) => path).sort()).toEqual([
        'cmd',
        'extra',
        'name',
        'port',
      ]);
      for (const { message } of wrong.body.details) expect(wrong.body.message).toContain(message);
      expectError(await post(front, { ...SMALL, group: 'Agents' }), 'invalid_spec');
      expect(registry.letters).toEqual([]);
    });

    it('that are right reach the registry with their defaults', async () => {
      const front = await start();
      const registry = await front.stand<RegistryProtocol>('registry', {
        register: ({ input }) => {
          front.views.tell('specs', { rows: [specRow(input.name)] });
          return { stored: { spec: { ...input, env: [] }, revision: 1 }, created: true };
        },
      });
      expect((await post(front, SMALL, { 'content-type': 'application/json; charset=utf-8' })).status).toBe(
        201,
      );
      expect(registry.of('register')[0]?.input).toMatchObject({
        ...SMALL,
        restart: 'no',
        stopSignal: 'SIGTERM',
        env: null,
      });
    });

    it('that are framed twice are refused and the connection closed', async () => {
      const front = await start();
      const host = `Host: localhost:${front.port}\r\n`;
      const json = 'Content-Type: application/json\r\n';
      for (const head of [
        `${host}${json}Content-Length: 2\r\nContent-Length: 30\r\n`,
        `${host}${json}Content-Length: 2\r\nContent-Length: 2\r\n`,
        `${host}${host}${json}Content-Length: 2\r\n`,
        `${host}Host: evil.example\r\n${json}Content-Length: 2\r\n`,
        `${host}${json}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n`,
        `${host}${json}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n`,
        `${host}${json}Transfer-Encoding: gzip, chunked\r\n`,
        `${host}${json}Transfer-Encoding: xchunked\r\n`,
        `${host}${json}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n`,
      ]) {
        const read = await front.raw(`GET /v1/services HTTP/1.1\r\n${head}\r\n{}`);
        expect([read.text.slice(0, 12), read.closed]).toEqual(['HTTP/1.1 400', true]);
        const alone = await front.raw(`POST /v1/services HTTP/1.1\r\n${head}\r\n{}`);
        expect([alone.text.slice(0, 12), alone.closed]).toEqual(['HTTP/1.1 400', true]);
        // What follows at once may be hidden in it: it is not answered.
        const more = await front.raw(
          `POST /v1/services HTTP/1.1\r\n${head}\r\n{}GET /smuggled HTTP/1.1\r\n${host}\r\n`,
        );
        expect(more.closed).toBe(true);
        expect(more.text).toMatch(/^(HTTP\/1\.1 400|$)/);
        expect(more.text).not.toContain('smuggled');
      }
      expect((await front.request('GET', '/livez')).status).toBe(200);
    });

    it('that never come are given up after 8 seconds, slow heads after 10, and others are served meanwhile', async () => {
      const front = await start();
      const head = `POST /v1/services HTTP/1.1\r\nHost: localhost:${front.port}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n`;
      const bodies = Promise.all([front.raw(head), front.raw(`${head}{"name":`)]);
      const slow = front.raw('GET /v1/services HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
      expect((await front.request('GET', '/livez')).status).toBe(200);
      for (const { text, closed } of await bodies) {
        expect([text.slice(0, 12), closed]).toEqual(['HTTP/1.1 408', true]);
        expect(text).toContain('request_timeout');
      }
      const { text, closed } = await slow;
      expect(closed).toBe(true);
      expect(text).toMatch(/^(HTTP\/1\.1 408 |$)/);
      expect((await front.request('GET', '/livez')).status).toBe(200);
    });
  });

  describe('queries', () => {
    it('that are wrong are 400 and reach nobody', async () => {
      const front = await withServices();
      const service = await front.stand<ServiceProtocol>('service:web');
      for (const [method, path] of [
        ['POST', '/v1/services/web/start?timeout=-1'],
        ['POST', '/v1/services/web/start?timeout=3600001'],
        ['POST', '/v1/services/web/start?timeout=1.5'],
        ['POST', '/v1/services/web/start?timeout=1&timeout=1'],
        ['POST', '/v1/services/web/start?wait=no'],
        ['POST', '/v1/services/web/stop?grace='],
        ['POST', '/v1/services/web/restart?grace=abc'],
        ['POST', '/v1/groups/site/start?timeout=x'],
        ['POST', '/v1/groups/site/stop?grace=%31%'],
        ['GET', '/v1/services/web/logs?lines=0'],
        ['GET', '/v1/services/web/logs?lines=ten'],
        ['GET', '/v1/services/web/logs?stream=both'],
        ['GET', '/v1/services/web/logs?raw=1'],
        ['GET', '/v1/events?types=service.unknown'],
        ['GET', '/v1/events?detail=yes'],
        ['GET', '/v1/events/history?limit=0'],
        ['GET', '/v1/events/history?since=-1'],
      ])
        expectError(await front.request(method ?? '', path ?? ''), 'invalid_spec');
      expect(service.letters).toEqual([]);
    });
  });

  describe('changes', () => {
    const stopAnswer: StopResult = {
      name: 'web',
      status: 'stopped',
      exitCode: null,
      signal: 'SIGTERM',
      escalated: false,
      reaped: 2,
      left: [],
      portFree: true,
      ms: 12,
    };

    it('of services are asked of their actors', async () => {
      const front = await withServices();
      const service = await front.stand<ServiceProtocol>('service:web', {
        start: ({ wait }) => ({ name: 'web', status: wait ? 'running' : 'starting', pid: 5 }),
        restart: () => ({ name: 'web', status: 'running', pid: 6 }),
        stop: () => stopAnswer,
      });
      const registry = await front.stand<RegistryProtocol>('registry', { remove: () => ({ port: 3000 }) });
      const answers = [
        await front.request('POST', '/v1/services/web/start'),
        await front.request('POST', '/v1/services/web/start?timeout=7&wait=true'),
        await front.request('POST', '/v1/services/web/start?wait=false'),
        await front.request('POST', '/v1/services/web/restart?timeout=0&grace=3'),
        await front.request('POST', '/v1/services/web/stop'),
        await front.request('POST', '/v1/services/web/stop?grace=0'),
        await front.request('DELETE', '/v1/services/web'),
      ];
      expect(answers.map(({ status, text }) => [status, text])).toEqual([
        [200, '{"name":"web","status":"running","pid":5}'],
        [200, '{"name":"web","status":"running","pid":5}'],
        [202, '{"name":"web","status":"starting","pid":5}'],
        [200, '{"name":"web","status":"running","pid":6}'],
        [200, JSON.stringify(stopAnswer)],
        [200, JSON.stringify(stopAnswer)],
        [200, '{"removed":true,"name":"web"}'],
      ]);
      expect(service.letters).toEqual([
        { kind: 'start', message: { timeoutMs: null, wait: true } },
        { kind: 'start', message: { timeoutMs: 7, wait: true } },
        { kind: 'start', message: { timeoutMs: null, wait: false } },
        { kind: 'restart', message: { timeoutMs: 0, graceMs: 3 } },
        { kind: 'stop', message: { graceMs: null } },
        { kind: 'stop', message: { graceMs: 0 } },
      ]);
      expect(registry.of('remove')).toEqual([{ name: 'web', agent: false, graceMs: null }]);
    });

    it('of what is unknown wake no actor', async () => {
      const front = await withServices();
      for (const path of ['start', 'stop', 'restart'])
        expectError(await front.request('POST', `/v1/services/nothing/${path}`), 'unknown_service');
      expectError(await front.request('DELETE', '/v1/services/nothing'), 'unknown_service');
      expectError(await front.request('DELETE', '/v1/agents/web'), 'unknown_agent');
      expectError(await front.request('POST', '/v1/groups/nothing/start'), 'unknown_group');
      expectError(await front.request('POST', '/v1/groups/nothing/stop'), 'unknown_group');
    });

    it('of groups are asked of groups', async () => {
      const front = await withServices();
      const groups = await front.stand<GroupsProtocol>('groups', {
        start: () => ({ services: [{ name: 'web', status: 'running', pid: 5 }] }),
        stop: () => ({ services: [{ name: 'web', status: 'stopped', exitCode: 0 }] }),
      });
      expect((await front.request('POST', '/v1/groups/site/start?timeout=5')).text).toBe(
        '{"name":"site","services":[{"name":"web","status":"running","pid":5}]}',
      );
      expect((await front.request('POST', '/v1/groups/site/stop')).text).toBe(
        '{"name":"site","services":[{"name":"web","status":"stopped","exitCode":0}]}',
      );
      expect(groups.letters.map(({ message }) => message)).toEqual([
        { name: 'site', timeoutMs: 5 },
        { name: 'site', graceMs: null },
      ]);
    });

    it('of agents are asked of agents', async () => {
      const front = await start();
      const agents = await front.stand<AgentsProtocol>('agents', {
        spinup: ({ input }) => ({ name: input.name, port: 8100, pid: 9 }),
        remove: ({ name }) => ({ name, port: 8100 }),
      });
      const spun = await front.request('POST', '/v1/agents/spinup', {
        body: { name: 'my_bot', agent_type: 'ollama' },
      });
      expect([spun.status, spun.text]).toEqual([
        201,
        '{"port":8100,"name":"my_bot","active":true,"hostname":"my-bot.agents.localhost","pid":9,"url":"http://localhost:8100","gatewayUrl":"http://my-bot.agents.localhost:11612/","agent_type":"ollama"}',
      ]);
      expect(agents.of('spinup')[0]?.input).toMatchObject({ name: 'my_bot', agentType: 'ollama', cols: 120 });
      front.gatewayPort = null;
      const other = await front.request('POST', '/v1/agents/spinup', { body: { name: 'b', cmd: 'x' } });
      expect(other.body).toMatchObject({ gatewayUrl: null, agent_type: null });
      const agent = { agentType: null, hostname: 'spinup.agents.localhost', cols: 1, rows: 1 };
      front.views.tell('specs', { rows: [specRow('spinup', { agent, group: 'Agents' })] });
      const removed = await front.request('DELETE', '/v1/agents/spinup');
      expect([removed.status, removed.text]).toEqual([200, '{"removed":true,"name":"spinup","port":8100}']);
    });

    it('that fail answer with the code, hint and details of the failure', async () => {
      const front = await withServices();
      const service = await front.stand<ServiceProtocol>('service:web');
      for (const code of Object.keys(ERRORS) as (keyof typeof ERRORS)[]) {
        service.answer({
          start: () => {
            throw fail(code, `it is ${code}`, code === 'ready_timeout' ? { hint: 'last lines' } : {});
          },
        });
        const answer = await front.request('POST', '/v1/services/web/start');
        expectError(answer, code);
        expect(answer.body.message).toBe(`it is ${code}`);
        expect(answer.body.hint).toBe(code === 'ready_timeout' ? 'last lines' : ERRORS[code].hint);
      }
      expect(front.defects).toEqual([]);
    });

    it('that meet a part which is busy, gone or broken say so', async () => {
      const front = await withServices();
      expectError(await front.request('POST', '/v1/services/web/start'), 'daemon_busy');
      const service = await front.stand<ServiceProtocol>('service:web');
      for (const [code, seen] of [
        ['overloaded', 'daemon_busy'],
        ['deadline', 'daemon_busy'],
        ['gone', 'daemon_busy'],
        ['crashed', 'internal'],
      ] as const) {
        service.answer({
          start: () => {
            throw new Failure(code, 'x');
          },
        });
        expectError(await front.request('POST', '/v1/services/web/start'), seen);
      }
      service.answer({
        start: () => {
          throw new Failure('no_code_of_ours', 'x');
        },
      });
      expectError(await front.request('POST', '/v1/services/web/start'), 'internal');
      expect(front.defects).toHaveLength(1);
      service.answer({
        start: () => {
          throw new Error('a defect');
        },
      });
      expectError(await front.request('POST', '/v1/services/web/start'), 'internal');
      expect(front.crashes.splice(0)).toHaveLength(1);
    });

    it('go on when the client hangs up', async () => {
      const front = await withServices();
      let finish = (): void => {};
      const service = await front.stand<ServiceProtocol>('service:web', {
        start: () =>
          new Promise((resolve) => {
            finish = () => resolve({ name: 'web', status: 'running', pid: 5 });
          }),
      });
      const socket = net.connect(front.port, '127.0.0.1', () =>
        socket.write(
          `POST /v1/services/web/start HTTP/1.1\r\nHost: localhost:${front.port}\r\nContent-Length: 0\r\n\r\n`,
        ),
      );
      await service.next('start');
      socket.destroy();
      expect((await front.request('GET', '/livez')).status).toBe(200);
      finish();
      service.answer({ start: () => ({ name: 'web', status: 'running', pid: 6 }) });
      expect((await front.request('POST', '/v1/services/web/start')).body.pid).toBe(6);
    });
  });

  describe('explanations, logs and history', () => {
    it('show times as clients read them', async () => {
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

    it('give past events with when and in which run', async () => {
      const front = await start();
      front.events.answer({ history: () => ({ events: [eventRecord(3)] }) });
      const { body } = await front.request(
        'GET',
        '/v1/events/history?types=service.started&names=web&since=2&limit=5000',
      );
      expect(front.events.of('history')).toEqual([
        { types: ['service.started'], names: ['web'], since: 2, limit: 1024 },
      ]);
      expect(body.events).toEqual([
        {
          id: 3,
          type: 'service.started',
          data: { name: 'web', pid: 3, url: 'http://localhost:3000', at: expect.any(String), run: 'r1' },
        },
      ]);
    });
  });

  describe('the daemon itself', () => {
    it('says who it is', async () => {
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

    it('shows nothing before it is ready, and only that it lives', async () => {
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

    it('refuses changes while it shuts down, and is still read', async () => {
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

    it('answers what it was asked before it closes', async () => {
      const front = await withServices();
      let finish = (): void => {};
      const service = await front.stand<ServiceProtocol>('service:web', {
        stop: () =>
          new Promise((resolve) => {
            finish = () => resolve(stopped);
          }),
      });
      const stopped: StopResult = {
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

    it('answers what it cannot wait for', async () => {
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

    it('does not wait for bodies whose senders have gone', async () => {
      // In this clock the time that a close waits at most never comes.
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

    it('tells the gateway which agents there are, when that changes', async () => {
      const front = await start();
      const agent = { agentType: 'ollama' as const, hostname: 'bot.agents.localhost', cols: 1, rows: 1 };
      front.views.tell('specs', { rows: [specRow('web')] });
      await settle();
      front.views.tell('specs', { rows: [specRow('bot', { agent, port: 8100 })] });
      await settle();
      await settle();
      front.views.tell('states', { rows: [stateRow('web')] });
      await settle();
      await settle();
      front.views.tell('removed', { name: 'bot' });
      await settle();
      await settle();
      expect(front.gateway).toEqual([
        [
          {
            hostname: 'bot.agents.localhost',
            name: 'bot',
            port: 8100,
            isRunning: false,
            hostHeader: '127.0.0.1:8100',
          },
        ],
        [],
      ]);
    });
  });

  describe('pages', () => {
    const page = (path: string) =>
      path === '/'
        ? {
            type: 'text/html; charset=utf-8',
            bytes: Buffer.from('<html>'),
            etag: '"abc"',
            headers: ['X-Frame', 'no'],
          }
        : null;

    it('are shown at open paths, with a tag', async () => {
      const front = await start({ token: 'secret', pageLookup: async (path) => page(path) });
      const answer = await front.request('GET', '/');
      expect([answer.status, answer.text]).toEqual([200, '<html>']);
      expect(answer.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        etag: '"abc"',
        'x-frame': 'no',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
      });
      const again = await front.request('GET', '/', { headers: { 'if-none-match': '"abc"' } });
      expect([again.status, again.text]).toEqual([304, '']);
      const head = await front.request('HEAD', '/');
      expect([head.status, head.headers['content-length'], head.text]).toEqual([200, '6', '']);
      expectError(await front.request('GET', '/schema/nothing.json'), 'not_found');
      expectError(await front.request('POST', '/', { body: {} }), 'method_not_allowed');
      expectError(await front.request('GET', '/secret.html'), 'unauthorized');
    });

    it('that fail are 500', async () => {
      const front = await start({
        pageLookup: async () => {
          throw new Error('no such disk');
        },
      });
      expectError(await front.request('GET', '/'), 'internal');
      expect(front.defects).toHaveLength(1);
    });

    it('may be the document of the API, made from all rows', async () => {
      const seen: string[] = [];
      const front = await start({
        openapi: async (rows: readonly Operation[]) => {
          seen.push(...rows.map(({ path }) => path));
          return Buffer.from('{"openapi":"3.1.0"}');
        },
        cloud: cloudFront(),
      });
      expect((await front.request('GET', '/openapi.json')).body).toEqual({ openapi: '3.1.0' });
      expect(seen).toEqual(ALL_OPERATIONS.map(({ path }) => path));
    });

    it('may be the document of the API, which is made once, and anew only when that failed', async () => {
      let made = 0;
      const front = await start({
        openapi: async () => {
          made += 1;
          await settle();
          if (made === 1) throw new Error('a defect');
          return Buffer.from(`{"openapi":"3.1.0","made":${made}}`);
        },
      });
      const document = () => front.request('GET', '/openapi.json');
      expect((await document()).status).toBe(500);
      const answers = [...(await Promise.all([document(), document()])), await document()];
      expect(answers.map(({ text }) => text)).toEqual(Array(3).fill('{"openapi":"3.1.0","made":2}'));
      expect(made).toBe(2);
    });
  });

  describe('the cloud', () => {
    const clusters = (front: Running, token: string, port = front.port) =>
      front.request('GET', '/k8s/clusters', {
        port,
        headers: {
          authorization: `Bearer ${token}`,
          ...(port === front.port ? {} : { host: 'cloud.example' }),
        },
      });

    it('on the daemon’s own address has its own token', async () => {
      const front = await start({ token: 'daemon', cloud: cloudFront() });
      const owner = await front.stand<ClustersProtocol>('clusters', { sync: () => ({ synced: 3 }) });
      expect((await clusters(front, 'cloud')).body).toEqual([]);
      expectError(await clusters(front, 'daemon'), 'unauthorized');
      const made = await front.request('POST', '/k8s/clusters/7/sync', {
        headers: { authorization: 'Bearer cloud' },
      });
      expect([made.status, made.body]).toEqual([200, { synced: 3 }]);
      expect(owner.letters).toMatchObject([{ kind: 'sync', message: { id: '7' } }]);
      const daemon = await front.request('GET', '/v1/services', {
        headers: { authorization: 'Bearer cloud' },
      });
      expectError(daemon, 'unauthorized');
    });

    it('on an address of its own is served there alone', async () => {
      const own = { bind: '127.0.0.1', port: 0 };
      const front = await start({ cloud: cloudFront({ ownListener: own }) });
      const port = front.cloudPort ?? 0;
      expect((await clusters(front, 'cloud', port)).body).toEqual([]);
      expectError(await clusters(front, 'wrong', port), 'unauthorized');
      expectError(await clusters(front, 'cloud'), 'not_found');
      const authorization = 'Bearer cloud';
      const services = await front.request('GET', '/v1/services', { port, headers: { authorization } });
      expectError(services, 'not_found');
      expect((await front.request('GET', '/livez', { port })).status).toBe(200);
    });
  });

  describe('a terminal', () => {
    const agent = { agentType: null, hostname: 'bot.agents.localhost', cols: 80, rows: 24 };
    const attach = (front: Running, protocols: string[], name = 'bot') => {
      const socket = new WebSocket(`ws://127.0.0.1:${front.port}/v1/agents/${name}/attach`, protocols);
      afterThisTest(() => socket.terminate());
      return socket;
    };
    const refused = (socket: WebSocket) =>
      new Promise<{ status: number; code: string }>((resolve) => {
        socket.on('error', () => {});
        socket.on('unexpected-response', (_request, response) => {
          let text = '';
          response.on('data', (part) => {
            text += part;
          });
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, code: JSON.parse(text).code }),
          );
        });
      });

    it('is opened with the token as a subprotocol, and shows what its service says', async () => {
      const front = await start({ token: 'secret' });
      front.views.tell('specs', { rows: [specRow('bot', { agent, group: 'Agents' })] });
      front.views.tell('states', { rows: [runningState('bot', 5)] });
      const service = await front.stand<TerminalProtocol>('service:bot');
      await settle();
      const token = `base64url.bearer.authorization.berth.${Buffer.from('secret').toString('base64url')}`;
      const socket = attach(front, ['berth.v1', token]);
      const got: unknown[] = [];
      socket.on('message', (data: Buffer, binary) => got.push(binary ? data : JSON.parse(data.toString())));
      const closed = new Promise<number>((resolve) => socket.on('close', resolve));
      await new Promise((resolve) => socket.on('open', resolve));
      const { viewer } = await service.next('attach');
      expect(socket.protocol).toBe('berth.v1');
      const viewers = front.node.ref<TerminalViewersProtocol>('viewers');
      viewers.tell('size', { viewer, cols: 80, rows: 24 });
      viewers.tell('output', { viewer, bytes: Buffer.from('$ ') });
      socket.send(Buffer.from('ls\n'));
      socket.send('{"resize":[100,40]}');
      expect(Buffer.from((await service.next('input')).data).toString()).toBe('ls\n');
      expect(await service.next('resize')).toEqual({ cols: 100, rows: 40 });
      viewers.tell('exit', { viewer, exitCode: 0, signal: null });
      expect(await closed).toBe(1000);
      expect(got).toEqual([{ size: [80, 24] }, Buffer.from('$ '), { exit: { exitCode: 0, signal: null } }]);
      await service.next('detach');
    });

    const viewed = async (more: FrontSetup = {}) => {
      const front = await start(more);
      front.views.tell('specs', { rows: [specRow('bot', { agent, group: 'Agents' })] });
      front.views.tell('states', { rows: [runningState('bot', 5)] });
      const service = await front.stand<TerminalProtocol>('service:bot');
      await settle();
      const viewer = async () => {
        const socket = attach(front, ['berth.v1']);
        await new Promise((resolve) => socket.on('open', resolve));
        return { socket, ...(await service.next('attach')) };
      };
      return { front, service, viewer };
    };

    it('is told the first size at once, and then the last one of many, whoever asks', async () => {
      const clock = virtualClock();
      const { service, viewer } = await viewed({ clock });
      const [one, other] = [await viewer(), await viewer()];
      const ask = async (socket: WebSocket, columns: readonly number[]) => {
        for (const cols of columns) socket.send(JSON.stringify({ resize: [cols, 24] }));
        socket.send(Buffer.from('x'));
        await service.next('input');
      };
      const told = () => service.of('resize').map(({ cols }) => cols);
      await ask(one.socket, [100, 101, 102]);
      await ask(other.socket, [110, 111]);
      expect(told()).toEqual([100]);
      await clock.advance(AGENT.resizeIntervalMs);
      expect(told()).toEqual([100, 111]);
      await ask(one.socket, [120, 121]);
      expect(told()).toEqual([100, 111]);
      await clock.advance(AGENT.resizeIntervalMs);
      expect(told()).toEqual([100, 111, 121]);
      await clock.advance(AGENT.resizeIntervalMs);
      await ask(one.socket, [130]);
      expect(told()).toEqual([100, 111, 121, 130]);
    });

    it('disconnects a viewer that acknowledges and does not read, and no other', async () => {
      const { front, viewer } = await viewed();
      const [deaf, other] = [await viewer(), await viewer()];
      const got = new Map<WebSocket, number>();
      const codes: number[] = [];
      for (const { socket } of [deaf, other])
        socket.on('message', (data: Buffer) => got.set(socket, (got.get(socket) ?? 0) + data.length));
      const closed = new Promise<void>((resolve) =>
        deaf.socket.on('close', (code) => {
          codes.push(code);
          resolve();
        }),
      );
      deaf.socket.pause();
      const viewers = front.node.ref<TerminalViewersProtocol>('viewers');
      const bytes = Buffer.alloc(MIB);
      const pieces = 40;
      for (let count = 1; count <= pieces; count += 1) {
        for (const one of [deaf, other]) viewers.tell('output', { viewer: one.viewer, bytes });
        while (got.get(other.socket) !== count * MIB) await settle();
      }
      deaf.socket.resume();
      await closed;
      expect(codes).toEqual([1011]);
      expect(got.get(deaf.socket)).toBeLessThan(pieces * MIB);
      expect(other.socket.readyState).toBe(WebSocket.OPEN);
    });

    it('is refused before it is opened', async () => {
      const front = await start();
      front.views.tell('specs', { rows: [specRow('web'), specRow('bot', { agent })] });
      await settle();
      expect(await refused(attach(front, ['berth.v1']))).toEqual({ status: 409, code: 'not_running' });
      expect(await refused(attach(front, ['berth.v1'], 'web'))).toEqual({
        status: 404,
        code: 'unknown_agent',
      });
      front.views.tell('states', { rows: [runningState('bot', 5)] });
      await settle();
      expect(await refused(attach(front, ['other']))).toEqual({ status: 400, code: 'invalid_spec' });
      expectError(await front.request('GET', '/v1/agents/bot/attach'), 'invalid_spec');
    });
  });

  it('a thousand bad requests leave it serving, and change nothing', async () => {
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
    expect([registry.letters, front.defects]).toEqual([[], []]);
  });
});

it('opens nothing twice: every row has a path and method of its own', () => {
  const keys = ROUTES.map(({ method, path }) => `${method} ${path}`);
  expect(new Set(keys).size).toBe(keys.length);
});
