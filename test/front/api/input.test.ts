// Bodies and queries through real sockets, on both servers: docs/reference.md "Bodies", "Query values".
import { describe, expect, it } from 'vitest';
import { fail } from '../../../src/protocol/errors.ts';
import type { RegistryProtocol } from '../../../src/protocol/registry.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import {
  expectError,
  type FrontSetup,
  type Running,
  raw,
  SERVERS,
  SMALL,
  specRow,
  startFront,
  startWithServices,
} from '../kit.ts';

describe.each(SERVERS)('%s', (server) => {
  const start = (setup: FrontSetup = {}) => startFront({ server, ...setup });
  const withServices = (setup: FrontSetup = {}) => startWithServices({ server, ...setup });

  describe('bodies', () => {
    const post = (front: Running, body: unknown, headers: Record<string, string> = {}) =>
      front.request('POST', '/v1/services', { body, headers });

    it('that are wrong are refused, and do not reach the registry', async () => {
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
      expect(registry.received).toEqual([]);
    });

    it('that are valid reach the registry with their defaults', async () => {
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

    it('with two framings are refused and the connection closed', async () => {
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
        // What follows may be hidden in the body, so it is not answered.
        const more = await front.raw(
          `POST /v1/services HTTP/1.1\r\n${head}\r\n{}GET /smuggled HTTP/1.1\r\n${host}\r\n`,
        );
        expect(more.closed).toBe(true);
        expect(more.text).toMatch(/^(HTTP\/1\.1 400|$)/);
        expect(more.text).not.toContain('smuggled');
      }
      expect((await front.request('GET', '/livez')).status).toBe(200);
    });
  });

  describe('a head that could be read in two ways', () => {
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const own = (port: number) => `http://localhost:${port}`;

    it.each([
      ['two lengths, 0 first', () => `Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n`],
      ['two lengths, 0 last', () => `Content-Length: ${smuggled.length}\r\nContent-Length: 0\r\n`],
      ['an empty length', () => 'Content-Length:\r\n'],
      ['an empty length and another', () => `Content-Length: \r\nContent-Length: ${smuggled.length}\r\n`],
      ['chunks that are none', () => 'Transfer-Encoding: chunked, identity\r\n'],
      ['two codings', () => 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n'],
      ['an empty coding', () => 'Transfer-Encoding:\r\n'],
      [
        'two Origins, ours first',
        (port: number) => `Origin: ${own(port)}\r\nOrigin: http://evil.example\r\n`,
      ],
      ['two Origins, ours last', (port: number) => `Origin: http://evil.example\r\nOrigin: ${own(port)}\r\n`],
      ['two Origins, none first', () => 'Origin:\r\nOrigin: http://evil.example\r\n'],
      ['two tokens', () => 'Authorization: Bearer a\r\nAuthorization: Bearer b\r\n'],
      ['two types', () => 'Content-Type: application/json\r\nContent-Type: text/plain\r\n'],
      ['two fetch sites', () => 'Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n'],
      ['two lists of protocols', () => 'Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: b\r\n'],
      ['two keys', () => 'Idempotency-Key: a\r\nIdempotency-Key: a\r\n'],
      ['an empty key', () => 'Idempotency-Key: \r\n'],
    ])('(%s) is refused, and its connection closed', async (_what, head) => {
      const front = await withServices();
      const host = `Host: localhost:${front.port}\r\n`;
      for (const method of ['GET', 'POST', 'OPTIONS'])
        for (const one of [host, 'Host: evil.example\r\n']) {
          const request = `${method} /v1/services HTTP/1.1\r\n${one}${head(front.port)}\r\n`;
          const alone = await front.raw(request);
          expect([alone.text.slice(0, 12), alone.closed]).toEqual(['HTTP/1.1 400', true]);
          const more = await front.raw(request + smuggled);
          expect(more.closed).toBe(true);
          expect(more.text).toMatch(/^(HTTP\/1\.1 400|$)/);
          expect(more.text.match(/HTTP\/1\.1/g) ?? []).toHaveLength(more.text === '' ? 0 : 1);
        }
    });

    it.each([
      ['no size for the last chunk', '2\r\n{}\r\n\r\n'],
      ['other bytes after a chunk', '2\r\n{}xx0\r\n\r\n'],
      ['chunks as they should be', '2\r\n{}\r\n0\r\n\r\n'],
    ])('(%s) hides no request behind its chunks', async (_what, chunks) => {
      const front = await withServices();
      const seen: string[] = [];
      await front.stand<ServiceProtocol>('service:web', {
        stop: () => {
          seen.push('stop');
          throw fail('internal', 'not now');
        },
      });
      const host = `Host: localhost:${front.port}\r\n`;
      for (const path of ['/v1/services', '/v1/version', '/nothing']) {
        const stop = `POST /v1/services/web/stop HTTP/1.1\r\n${host}Content-Length: 0\r\n\r\n`;
        const head = `${host}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
        // node:http is strict: what follows whole chunks is a request of its own there.
        const isWhole = server === 'node:http' && chunks.includes('}\r\n0');
        const got = await front.raw(
          `POST ${path} HTTP/1.1\r\n${head}${chunks}${stop}`,
          isWhole ? /not now/ : /never/,
        );
        expect(got.closed).toBe(!isWhole);
        expect(seen.splice(0)).toEqual(isWhole ? ['stop'] : []);
      }
    });

    it('for another Host is refused, and its connection closed', async () => {
      const front = await withServices();
      const { text, closed } = await front.raw('GET /livez HTTP/1.1\r\nHost: evil.example\r\n\r\n');
      expect([text.slice(0, 12), closed]).toEqual(['HTTP/1.1 403', true]);
    });
  });

  describe('queries', () => {
    it('and bodies with unknown fields are refused, and nothing is done', async () => {
      const front = await withServices();
      const service = await front.stand<ServiceProtocol>('service:web');
      for (const [method, path, name] of [
        ['POST', '/v1/services/web/stop?dryRun=All', 'dryRun'],
        ['GET', '/v1/services?group=shop', 'group'],
        ['GET', '/v1/services/web?x=1', 'x'],
        ['GET', '/v1/services/web/logs?since=5m', 'since'],
        ['GET', '/v1/events?name=web', 'name'],
        ['GET', '/livez?x', 'x'],
      ] as const) {
        const answer = await front.request(method, path);
        expectError(answer, 'invalid_spec');
        expect(answer.body.details.map(({ path: one }: { path: string }) => one)).toEqual([name]);
        expect(answer.body.message).toContain(name);
      }
      const dry = await front.request('POST', '/v1/services/web/stop', { body: { dry_run: true } });
      expectError(dry, 'invalid_spec');
      expect(dry.body.message).toBe('dry_run is not a field of this request');
      for (const body of ['[]', '1', '{', 'null'])
        expectError(await front.request('POST', '/v1/services/web/stop', { body }), 'invalid_spec');
      const text = { body: 'dry_run=1', headers: { 'content-type': 'text/plain' } };
      expectError(await front.request('POST', '/v1/services/web/stop', text), 'unsupported_media_type');
      expect(service.received).toEqual([]);
    });

    it('may have a chunked body of no bytes, also without a type', async () => {
      const front = await withServices();
      const service = await front.stand<ServiceProtocol>('service:web', {
        stop: () => {
          throw fail('internal', 'asked');
        },
      });
      const stop = (chunks: string, head = '') => {
        const line = 'POST /v1/services/web/stop HTTP/1.1\r\nTransfer-Encoding: chunked\r\n';
        return raw(
          front.port,
          `${line}Host: localhost:${front.port}\r\n${head}\r\n${chunks}0\r\n\r\n`,
          /\}$/,
        );
      };
      for (const head of [
        '',
        'Content-Type:\r\n',
        'Content-Type: text/plain\r\n',
        'Content-Type: application/json\r\n',
      ])
        expect((await stop('', head)).text, head).toMatch(/^HTTP\/1\.1 500 /);
      expect(service.of('stop')).toHaveLength(4);
      for (const head of ['', 'Content-Type: text/plain\r\n'])
        expect((await stop('2\r\n{}\r\n', head)).text, head).toMatch(/^HTTP\/1\.1 415 /);
      expect(service.of('stop')).toHaveLength(4);
    });

    it('may have an empty body', async () => {
      const front = await withServices();
      const service = await front.stand<ServiceProtocol>('service:web', {
        stop: () => {
          throw fail('internal', 'asked');
        },
      });
      for (const body of ['', '{}', ' {} ']) await front.request('POST', '/v1/services/web/stop', { body });
      expect(service.of('stop')).toHaveLength(3);
    });

    it('that are wrong give 400 and never reach an actor', async () => {
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
      expect(service.received).toEqual([]);
    });
  });
});
