// The page at `/` and its assets, as built, through the front.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { dashboardPages } from '../../../src/front/api/dashboard_pages.ts';
import { schemaPage } from '../../../src/front/api/schema_page.ts';
import { dashboardUrl } from '../../../src/settings/build_paths.ts';
import { cloudFront, SERVERS, startFront } from '../kit.ts';

const PAGES = [
  ['/', 'index.html', 'text/html; charset=utf-8'],
  ['/dashboard/page.js', 'page.js', 'text/javascript; charset=utf-8'],
  ['/dashboard/terminal.js', 'terminal.js', 'text/javascript; charset=utf-8'],
  ['/dashboard/chart.js', 'chart.js', 'text/javascript; charset=utf-8'],
  ['/dashboard/style.css', 'style.css', 'text/css; charset=utf-8'],
] as const;

describe.each(SERVERS)('the page, from %s', (server) => {
  const start = () => startFront({ server, token: 'secret', pageLookup: dashboardPages(dashboardUrl()) });

  it.each(PAGES)('is served without a token: %s', async (path, file, type) => {
    const front = await start();
    const answer = await front.request('GET', path);
    expect(answer.status).toBe(200);
    expect(answer.text).toBe(readFileSync(new URL(file, dashboardUrl()), 'utf8'));
    expect(answer.headers).toMatchObject({
      'content-type': type,
      'cache-control': 'no-cache',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; " +
        "require-trusted-types-for 'script'; trusted-types 'none'",
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    const { etag = '' } = answer.headers;
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    const again = await front.request('GET', path, { headers: { 'if-none-match': etag } });
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', etag]);
    expect(await front.request('GET', path, { headers: { 'if-none-match': '"older"' } })).toMatchObject({
      status: 200,
    });
  });

  it.each(PAGES)('has a content security policy that permits only what it needs: %s', async (path) => {
    const front = await start();
    const options = await front.request('OPTIONS', path);
    expect([options.status, options.text, options.headers.allow]).toEqual([204, '', 'GET, HEAD, OPTIONS']);
    const changed = await front.request('POST', path, { body: { text: 'x'.repeat(100_000) } });
    expect([changed.status, changed.body.code, changed.headers.allow]).toEqual([
      405,
      'method_not_allowed',
      'GET, HEAD, OPTIONS',
    ]);
  });

  it('is the only kind of response with its own policy, besides schemas and documents', async () => {
    const front = await startFront({ server, pageLookup: schemaPage });
    for (const path of ['/schema/berth.json', '/openapi.json', '/livez']) {
      const { status, headers } = await front.request('OPTIONS', path);
      expect([path, status, headers.allow]).toEqual([path, 204, 'GET, HEAD, OPTIONS']);
    }
    for (const path of ['/schema/no.json', '/', '/dashboard/'])
      expect((await front.request('OPTIONS', path)).body.code).toBe('not_found');
  });

  it('gives access to nothing else without a token', async () => {
    const front = await start();
    for (const path of ['/dashboard/', '/dashboard/page.ts', '/dashboard/..%2fbin.js', '/index.html'])
      expect((await front.request('GET', path)).status).toBe(401);
    const headers = { authorization: 'Bearer secret' };
    for (const path of ['/dashboard/', '/dashboard/no.js', '/dashboard/..%2fbin.js', '/index.html'])
      expect((await front.request('GET', path, { headers })).body.code).toBe('not_found');
  });

  it("is not served by the cloud's own listener", async () => {
    const front = await startFront({
      server,
      pageLookup: dashboardPages(dashboardUrl()),
      cloud: cloudFront({ ownListener: { bind: '127.0.0.1', port: 0 } }),
    });
    const port = front.cloudPort ?? 0;
    expect(port).not.toBe(0);
    expect((await front.request('GET', '/', { port })).status).toBe(404);
    expect((await front.request('GET', '/')).status).toBe(200);
  });
});

it('the page loads nothing from elsewhere and contains no inline script or style', () => {
  const html = readFileSync(new URL('index.html', dashboardUrl()), 'utf8');
  const addresses = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, address]) => address);
  expect(addresses.sort()).toEqual(['/dashboard/page.js', '/dashboard/style.css', 'data:,']);
  expect(html).not.toMatch(/<style|style=|\son\w+=|<script(?![^>]*\ssrc=)/);
});

it('the page never turns text into markup or script', () => {
  const folder = new URL('../../../src/dashboard/', import.meta.url);
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (/\.tsx?$/.test(name))
      expect(readFileSync(new URL(name, folder), 'utf8')).not.toMatch(/innerHTML|outerHTML|\beval\(|srcdoc/i);
});
