// The page at `/` and its assets, as the build made them.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { PageLookup, StaticPage } from './static_pages.ts';

/** Nothing but what this daemon serves, in no frame, and no form that leads anywhere. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const HEADERS = [
  ...['Cache-Control', 'no-cache'],
  ...['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ...['Referrer-Policy', 'no-referrer'],
];

/** Every path there is, with the file it shows: no path is ever made from what was asked. */
export const DASHBOARD_FILES: ReadonlyMap<string, { file: string; type: string }> = new Map([
  ['/', { file: 'index.html', type: 'text/html; charset=utf-8' }],
  ['/dashboard/page.js', { file: 'page.js', type: 'text/javascript; charset=utf-8' }],
  ['/dashboard/style.css', { file: 'style.css', type: 'text/css; charset=utf-8' }],
]);

async function readPage(url: URL, type: string): Promise<StaticPage> {
  const bytes = await readFile(url);
  const hash = createHash('sha256').update(bytes).digest('base64url');
  return { type, bytes, etag: `"${hash}"`, headers: HEADERS };
}

/**
 * The pages in `folder`, whose address ends with a slash; a file is read when it is asked for, which is rare.
 */
export const dashboardPages =
  (folder: URL): PageLookup =>
  (path) => {
    const found = DASHBOARD_FILES.get(path);
    return found ? readPage(new URL(found.file, folder), found.type) : null;
  };
