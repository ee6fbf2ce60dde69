// Requests at the page's own paths that mean harm: none is answered with the page, a file, or a failure of ours.
import { describe, expect, it } from 'vitest';
import { dashboardPages } from '../../../src/front/api/dashboard_pages.ts';
import { dashboardUrl } from '../../../src/settings/build_paths.ts';
import { SERVERS, startFront } from '../kit.ts';

const PATHS = [
  '/dashboard/../bin.cjs',
  '/dashboard/./page.js/..',
  '/dashboard/%2e%2e/bin.cjs',
  '/dashboard/..%2f..%2fetc%2fpasswd',
  '/dashboard/..%5c..%5cbin.cjs',
  '/dashboard/..\\bin.cjs',
  '/dashboard/%252e%252e/bin.cjs',
  '/dashboard//page.js',
  '//dashboard/page.js',
  '/dashboard/page.js/',
  '/dashboard/page.js%00',
  '/dashboard/page.js%00.css',
  '/dashboard/PAGE.JS',
  '/dashboard/page.js.map',
  '/dashboard/page%2ejs',
  '/dashboard/%70age.js',
  '/dashboard/page.js;x=1',
  '/dashboard/%c0%ae%c0%ae/bin.cjs',
  '/dashboard/%ff%fe',
  '/dashboard/%',
  '/dashboard/%zz',
  '/dashboard/__proto__',
  '/dashboard/constructor',
  '/dashboard/toString',
  '/__proto__',
  '/index.html',
  '/.%2e/',
  '/..;/',
  `/dashboard/${'a/'.repeat(1_000)}`,
  `/dashboard/${'%2e%2e%2f'.repeat(500)}etc/passwd`,
] as const;

const METHODS = ['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'CONNECT', 'PROPFIND', 'get', '<b>'];

/** Heads of requests for what does exist. */
const HEADS = [
  'Host: evil.example',
  'Host: 127.0.0.1.evil.example',
  'Host: [::1',
  'Host: 127.0.0.1\r\nHost: evil.example',
  'Host: 127.0.0.1\r\nOrigin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors',
  'Host: 127.0.0.1\r\nContent-Length: -1',
  'Host: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked',
  'Host: 127.0.0.1\r\nTransfer-Encoding: chunked, chunked',
];

/** Of the page's session, with codes and keys that nobody has made. */
const SESSIONS = [
  '',
  'Bearer ',
  'Bearer secre',
  'Bearer page.x.y',
  'Basic c2VjcmV0',
  `Bearer ${'x'.repeat(5_000)}`,
];

describe.each(SERVERS)('hostile requests for the page, to %s', (server) => {
  it('get neither page nor file, and do no harm', async () => {
    const front = await startFront({ server, token: 'secret', pageLookup: dashboardPages(dashboardUrl()) });
    const host = `Host: 127.0.0.1:${front.port}`;
    const requests = [
      ...PATHS.map((path) => `GET ${path} HTTP/1.1\r\n${host}\r\nConnection: close`),
      ...METHODS.map((method) => `${method} / HTTP/1.1\r\n${host}\r\nConnection: close`),
      ...HEADS.map(
        (head) => `GET / HTTP/1.1\r\n${head.replaceAll('127.0.0.1\r', `127.0.0.1:${front.port}\r`)}`,
      ),
      ...SESSIONS.flatMap((bearer) =>
        ['page-codes', 'page-sessions'].map(
          (path) =>
            `POST /v1/${path} HTTP/1.1\r\n${host}\r\nAuthorization: ${bearer}\r\nContent-Length: 0\r\nConnection: close`,
        ),
      ),
    ];
    const harmed: string[][] = [];
    for (const request of requests) {
      const { text } = await front.raw(`${request}\r\n\r\n`, /\r\n\r\n/);
      if (/^HTTP\/1\.1 [235]\d\d |<!doctype|"use strict"|secret/i.test(text))
        harmed.push([request.slice(0, 200), text.slice(0, 60)]);
    }
    expect(harmed).toEqual([]);
    expect((await front.request('GET', '/')).status).toBe(200);
  });
});
