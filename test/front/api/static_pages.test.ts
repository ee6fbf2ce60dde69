// Pages and the API's document through real sockets, on both servers.
import { describe, expect, it } from 'vitest';
import type { Operation } from '../../../src/api/operation.ts';
import { ALL_OPERATIONS } from '../../../src/api/operations.ts';

import { settle } from '../../kit/actors.ts';
import { cloudFront, expectError, type FrontSetup, SERVERS, startFront } from '../kit.ts';

describe.each(SERVERS)('%s', (server) => {
  const start = (setup: FrontSetup = {}) => startFront({ server, ...setup });

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

    it('are served at open paths, with an entity tag', async () => {
      const front = await start({ token: 'secret', pageLookup: async (path) => page(path) });
      const answer = await front.request('GET', '/');
      expect([answer.status, answer.text]).toEqual([200, '<html>']);
      expect(answer.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        etag: '"abc"',
        'x-frame': 'no',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
      });
      const again = await front.request('GET', '/', { headers: { 'if-none-match': '"abc"' } });
      expect([again.status, again.text]).toEqual([304, '']);
      const head = await front.request('HEAD', '/');
      expect([head.status, head.headers['content-length'], head.text]).toEqual([200, '6', '']);
      expectError(await front.request('GET', '/schema/nothing.json'), 'not_found');
      expectError(await front.request('POST', '/', { body: {} }), 'method_not_allowed');
      expectError(await front.request('GET', '/secret.html'), 'unauthorized');
    });

    it('that fail give 500', async () => {
      const front = await start({
        pageLookup: async () => {
          throw new Error('no such disk');
        },
      });
      expectError(await front.request('GET', '/'), 'internal');
      expect(front.defects).toHaveLength(1);
    });

    it('include the document of the API, made from all rows', async () => {
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

    it('include the document of the API, built once, and again only after a failure', async () => {
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
});
