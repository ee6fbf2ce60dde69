// Access over real sockets: the guard, extensions, and the tokens of daemon and cloud.
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { CloudOperationsProtocol } from '../../../src/protocol/cloud_operations.ts';
import type { ClustersProtocol } from '../../../src/protocol/clusters.ts';
import {
  cloudFront,
  EXTENSION,
  expectError,
  type FrontSetup,
  type Running,
  SERVERS,
  SMALL,
  startFront,
  startWithServices,
} from '../kit.ts';

describe.each(SERVERS)('%s', (server) => {
  const start = (setup: FrontSetup = {}) => startFront({ server, ...setup });
  const withServices = (setup: FrontSetup = {}) => startWithServices({ server, ...setup });

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
      expectError(await front.request('GET', '/v1/services', { headers: site }), 'forbidden_origin');
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

    it('checks the token before it looks at the path', async () => {
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

    it('takes a new token and a new list of extensions at run time', async () => {
      const front = await withServices({ token: 'old' });
      const get = (token: string, origin?: string) =>
        front.request('GET', '/v1/services', {
          headers: { authorization: `Bearer ${token}`, ...(origin ? { origin } : {}) },
        });
      expect((await get('old', EXTENSION)).status).toBe(200);
      front.front.reload({ token: 'new', allowedExtensions: ['other'], allowedOrigins: [] });
      expect([
        (await get('old')).status,
        (await get('new')).status,
        (await get('new', EXTENSION)).status,
      ]).toEqual([401, 200, 403]);
    });

    it('serves only loopback peers, whatever the address', async () => {
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
    it('may send a preflight', async () => {
      const front = await start({ token: 'secret' });
      for (const path of ['/v1/services', '/v1/services/web/start', '/k8s/clusters', '/nothing']) {
        const answer = await front.request('OPTIONS', path, {
          headers: { origin: EXTENSION, 'access-control-request-method': 'POST' },
        });
        expect([answer.status, answer.text]).toEqual([204, '']);
        expect(answer.headers).toMatchObject({
          'access-control-allow-origin': EXTENSION,
          'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
          'access-control-allow-headers': 'Authorization, Content-Type, Last-Event-ID, Idempotency-Key',
          vary: 'Origin',
        });
      }
    });

    it('can read every response, errors included', async () => {
      const front = await withServices({ token: 'secret' });
      const authorization = 'Bearer secret';
      const cors = {
        'access-control-allow-origin': EXTENSION,
        'access-control-expose-headers': 'Retry-After, Allow, Link, Berth-Operation, Idempotent-Replayed',
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

    it('is the only origin that is ever returned', async () => {
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

  describe('an allowed page', () => {
    const page = 'http://localhost:5173';

    it('may send a preflight and read every response, with the token only in the header', async () => {
      const front = await withServices({ token: 'secret', allowedOrigins: [page] });
      const preflight = await front.request('OPTIONS', '/v1/services', {
        headers: { origin: page, 'access-control-request-method': 'POST' },
      });
      expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([204, page]);
      for (const [authorization, status] of [
        ['Bearer secret', 200],
        ['bearer\t secret', 200],
        ['', 401],
      ] as const) {
        const headers = { origin: page, 'sec-fetch-site': 'same-site', authorization };
        const answer = await front.request('GET', '/v1/services', { headers });
        expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([status, page]);
        expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
      }
      const other = { origin: 'http://localhost:5174', authorization: 'Bearer secret' };
      expectError(await front.request('GET', '/v1/services', { headers: other }), 'forbidden_origin');
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
      const begun = { id: '01KAS00000000000000000000A', run: true, result: null };
      await front.stand<CloudOperationsProtocol>('operations', { begin: () => begun });
      expect((await clusters(front, 'cloud')).body).toEqual([]);
      expectError(await clusters(front, 'daemon'), 'unauthorized');
      const made = await front.request('POST', '/k8s/clusters/7/sync', {
        headers: { authorization: 'Bearer cloud' },
      });
      expect([made.status, made.body]).toEqual([200, { synced: 3 }]);
      expect(owner.received).toMatchObject([{ kind: 'sync', message: { id: '7' } }]);
      const daemon = await front.request('GET', '/v1/services', {
        headers: { authorization: 'Bearer cloud' },
      });
      expectError(daemon, 'unauthorized');
    });

    it('on an address of its own is served only there', async () => {
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
});
