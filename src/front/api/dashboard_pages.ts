// The page at `/` and its assets, from the build.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { loadPart } from '../../settings/load_part.ts';
import type { PageLookup, StaticPage } from './static_pages.ts';

/** Allows only what this daemon serves, and neither frames nor forms. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  // No text can become markup, even through a defect of the page.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = [
  ...['Cache-Control', 'no-cache'],
  ...['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ...['Referrer-Policy', 'no-referrer'],
];

/** Every path with its file: no file name is ever derived from a request. */
export const DASHBOARD_FILES: ReadonlyMap<string, { file: string; type: string }> = new Map([
  ['/', { file: 'index.html', type: 'text/html; charset=utf-8' }],
  ['/dashboard/page.js', { file: 'page.js', type: 'text/javascript; charset=utf-8' }],
  ['/dashboard/terminal.js', { file: 'terminal.js', type: 'text/javascript; charset=utf-8' }],
  ['/dashboard/chart.js', { file: 'chart.js', type: 'text/javascript; charset=utf-8' }],
  ['/dashboard/style.css', { file: 'style.css', type: 'text/css; charset=utf-8' }],
]);

async function readPage(url: URL, type: string): Promise<StaticPage> {
  const bytes = await loadPart(() => readFile(url));
  const hash = createHash('sha256').update(bytes).digest('base64url');
  return { type, bytes, etag: `"${hash}"`, headers: HEADERS };
}

/**
 * The pages in `folder`, a URL that ends with a slash. Files are read at each request, because requests are
 * rare.
 */
export const dashboardPages =
  (folder: URL): PageLookup =>
  (path) => {
    const found = DASHBOARD_FILES.get(path);
    return found ? readPage(new URL(found.file, folder), found.type) : null;
  };
