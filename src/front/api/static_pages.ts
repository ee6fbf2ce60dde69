// Static files: the page at `/`, its assets, schemas. They carry no data and need no token.
import { fail } from '../../protocol/errors.ts';
import { type HttpExchange, ResponseHeaders } from '../server/http_server.ts';
import { EMPTY_HEADERS, type HttpReply, ISOLATION_HEADERS } from './reply.ts';

export interface StaticPage {
  /** The Content-Type. */
  type: string;
  bytes: Uint8Array;
  /** Includes the quotes. A client that has this version gets 304. */
  etag: string;
  /** More headers: name, value, name, value. */
  headers?: readonly string[];
}

export type PageLookup = (path: string) => StaticPage | null | Promise<StaticPage | null>;

const ALLOW = ['Allow', 'GET, HEAD, OPTIONS'] as const;
const OPTIONS_HEAD = EMPTY_HEADERS.with(...ALLOW);

function sendBytes(
  reply: HttpReply,
  { type, etag, bytes, headers = [] }: StaticPage,
  knownEtag: string,
): void {
  const head = new ResponseHeaders(['Content-Type', type, 'ETag', etag, ...ISOLATION_HEADERS, ...headers]);
  if (knownEtag === etag) reply.empty(304, head);
  else reply.bytes(200, head, bytes);
}

/** Answers a request of any method for the page at its path. Fails not_found for an unknown path. */
export function sendStaticPage(exchange: HttpExchange, reply: HttpReply, lookup: PageLookup): void {
  const { method, path } = exchange;
  const known = exchange.header('if-none-match');
  const show = (page: StaticPage | null): void => {
    if (!page) throw fail('not_found', `there is no ${path.slice(0, 200)}`);
    if (method === 'GET' || method === 'HEAD') sendBytes(reply, page, known);
    else if (method === 'OPTIONS') reply.empty(204, OPTIONS_HEAD);
    else reply.fail(fail('method_not_allowed', `${path} has no ${method}`), ALLOW);
  };
  const page = lookup(path);
  if (page instanceof Promise) page.then(show).catch((error: unknown) => reply.fail(error));
  else show(page);
}
