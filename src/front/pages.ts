// Static files: the page at `/`, its assets, schemas. They carry no data and need no token.
import { fail } from '../protocol/errors.ts';
import { EMPTY_HEAD, type Reply } from './reply.ts';
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

const ALLOW = ['Allow', 'GET, HEAD, OPTIONS'] as const;
const OPTIONS_HEAD = EMPTY_HEAD.with(...ALLOW);

function showBytes(reply: Reply, { type, etag, bytes, headers = [] }: Page, known: string): void {
  const safe = ['X-Content-Type-Options', 'nosniff', 'Cross-Origin-Resource-Policy', 'same-origin'];
  const head = new Head(['Content-Type', type, 'ETag', etag, ...safe, ...headers]);
  if (known === etag) reply.empty(304, head);
  else reply.bytes(200, head, bytes);
}

/** Answers a request for the page at its path, with any method. Fails not_found where there is none. */
export function showPage(exchange: Exchange, reply: Reply, pageAt: PageAt): void {
  const { method, path } = exchange;
  const known = exchange.header('if-none-match');
  const show = (page: Page | null): void => {
    if (!page) throw fail('not_found', `there is no ${path.slice(0, 200)}`);
    if (method === 'GET' || method === 'HEAD') showBytes(reply, page, known);
    else if (method === 'OPTIONS') reply.empty(204, OPTIONS_HEAD);
    else reply.fail(fail('method_not_allowed', `${path} has no ${method}`), ALLOW);
  };
  const page = pageAt(path);
  if (page instanceof Promise) page.then(show).catch((error: unknown) => reply.fail(error));
  else show(page);
}
