// The header Link of a list in pages: docs/reference.md "Lists of workloads".
import type { ResponseHeaders } from '../server/http_server.ts';

/** `headers` with a Link to the page of `path` that begins at the token `next`. */
export function withNextPage(
  headers: ResponseHeaders,
  path: string,
  query: Readonly<Record<string, unknown>>,
  next: string,
): ResponseHeaders {
  const given = Object.entries({ ...query, continue: next }).filter(([, value]) => value !== null);
  const link = new URLSearchParams(given.map(([key, value]) => [key, String(value)]));
  return headers.with('Link', `<${path}?${link}>; rel="next"`);
}
