// The other side of the proof of the server, for servers of the tests: docs/reference.md "Server authentication".
import { createHmac } from 'node:crypto';
import { bearerText, formatBearer, proofText, TOKEN_KEY_ID } from '../../src/protocol/access_key.ts';

/** The tokens that a server of a test knows. */
export interface KnownTokens {
  daemon?: string;
  cloud?: string;
}

const LIFE = 'life-of-a-server-of-a-test';

export const hmac = (secret: string, text: string): string =>
  createHmac('sha256', secret).update(text).digest('base64url');

/** What a client with `token` sends to a server of a test that has proven itself. */
export const bearerOf = (token: string): string => formatBearer(TOKEN_KEY_ID, hmac(token, bearerText(LIFE)));

/** The body of the answer to a request for a proof; undefined for every other request. */
export function proofFor(path: string, host: string, { daemon, cloud }: KnownTokens): object | undefined {
  const [, api, nonce = ''] = /^\/(v1|k8s)\/proof\?nonce=([\w-]+)$/.exec(path) ?? [];
  const token = { v1: daemon, k8s: cloud }[api ?? ''];
  return token === undefined ? undefined : { proof: hmac(token, proofText(nonce, host, LIFE)), life: LIFE };
}
