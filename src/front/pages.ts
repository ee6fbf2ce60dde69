// Static files: the page at `/`, its assets, schemas. They carry no data and need no token.
import { fail } from '../protocol/errors.ts';
import type { Reply } from './reply.ts';
import { type Exchange, Head } from './server.ts';

export interface Page {
  /** The Content-Type. */
  type: string;
  bytes: Uint8Array;
  /** With its quotes; a client that has it already gets 304. */
  etag: string;
  /** More headers: name, value, name, value. */
  headers?: readonly string[];
}

export type PageAt = (path: string) => Page | null | Promise<Page | null>;

export function showPage(exchange: Exchange, reply: Reply, pageAt: PageAt): void {
  const { path } = exchange;
  const known = exchange.header('if-none-match');
  const show = (page: Page | null): void => {
    if (!page) throw fail('not_found', `there is no ${path.slice(0, 200)}`);
    const { type, etag, bytes, headers = [] } = page;
    const safe = ['X-Content-Type-Options', 'nosniff', 'Cross-Origin-Resource-Policy', 'same-origin'];
    const head = new Head(['Content-Type', type, 'ETag', etag, ...safe, ...headers]);
    if (known === etag) reply.empty(304, head);
    else reply.bytes(200, head, bytes);
  };
  const page = pageAt(path);
  if (page instanceof Promise) page.then(show).catch((error: unknown) => reply.fail(error));
  else show(page);
}
