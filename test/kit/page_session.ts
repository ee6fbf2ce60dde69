// The page's side of a session, as the page itself does it: docs/reference.md "Dashboard sessions".
import {
  type AccessKey,
  bearerText,
  formatBearer,
  parseKey,
  proofText,
} from '../../src/protocol/access_key.ts';
import type { Daemon } from './daemon.ts';
import type { Answer } from './http_request.ts';
import { must } from './must.ts';
import { hmac } from './server_proof.ts';

/** What of a daemon or a front the exchange needs. */
export interface PageServer {
  port: number;
  get(path: string): Promise<Answer>;
  post(path: string, headers: Record<string, string>): Promise<Answer>;
}

export const pageServer = ({ port, request }: Pick<Daemon, 'port' | 'request'>): PageServer => ({
  port,
  get: (path) => request('GET', path),
  post: (path, headers) => request('POST', path, undefined, headers),
});

const NONCE = 'a-nonce-of-enough-length';

/** The bearer of `key`, after the server has proven that it knows it; null: it does not know it. */
export async function proveKey(server: PageServer, { id, secret }: AccessKey): Promise<string | null> {
  const { status, body } = await server.get(`/v1/proof?nonce=${NONCE}&key=${id}`);
  if (status !== 200) return null;
  const expected = hmac(secret, proofText(NONCE, `127.0.0.1:${server.port}`, body.life));
  return body.proof === expected ? formatBearer(id, hmac(secret, bearerText(body.life))) : null;
}

/** Exchanges the key in `text`; the answer of the server to its bearer, or to none. */
export async function exchangeKey(server: PageServer, text: string): Promise<Answer> {
  const bearer = await proveKey(server, must(parseKey(text) ?? undefined));
  return server.post('/v1/page-sessions', bearer === null ? {} : { authorization: `Bearer ${bearer}` });
}
