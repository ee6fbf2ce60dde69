// Before a client reveals anything, the server proves that it knows the key. The client then sends a bearer
// instead of the key's secret: docs/reference.md "Server authentication".
import type { ServerProof } from '../api/access_shapes.ts';
import { type AccessKey, bearerText, formatBearer, proofText, TOKEN_KEY_ID } from '../protocol/access_key.ts';
import { apiTokenOfKey } from '../protocol/api_token.ts';
import { BerthError, errorFromAnswer } from './errors.ts';

/** The credentials of a request. */
export interface Access {
  key: AccessKey;
  /** The path of the proof. */
  proofPath: string;
  /** Whether a server that says it has no token is called without one. Any stranger could say so. */
  asksTokenless: boolean;
}

/** The cryptography of a platform. */
export interface ProofCrypto {
  /** Random characters of base64url, at least 22. */
  nonce(): string;
  /** HMAC-SHA256 in base64url. */
  hmac(secret: string, text: string): string | Promise<string>;
  /** SHA-256 in base64url. */
  sha256(text: string): string | Promise<string>;
}

/** The part of an answer that a proof needs. */
interface ProofAnswer {
  status: number;
  body: string;
}

const HINT =
  'Either its token is not the one that was given here, or another program has taken the port of your daemon.';

const unproven = (host: string, what: string, hint = HINT): BerthError =>
  new BerthError('unproven', `the server at ${host} ${what}: the token was not sent`, { hint });

function parseProof({ status, body }: ProofAnswer, { key }: Access, host: string): ServerProof {
  if (status === 404 || (status === 401 && key.id === TOKEN_KEY_ID)) {
    const hint = 'If it is your daemon, it is of an earlier version: stop it, and start it again.';
    throw unproven(host, 'cannot prove that it is your daemon', hint);
  }
  if (status !== 200) throw errorFromAnswer(status, null, body);
  try {
    const { proof, life }: ServerProof = JSON.parse(body);
    if (typeof life === 'string' && (proof === null || typeof proof === 'string')) return { proof, life };
  } catch {
    // Treated like any other answer that is not a proof.
  }
  throw unproven(host, 'gives no proof that it is your daemon');
}

/**
 * Makes the server at `url` prove itself; `ask` sends it a GET for a path. Resolves with the bearer for its
 * requests; null: it has no token, and may be called without one. Rejects with `unproven`, and as `ask` does.
 */
export async function proveServer(
  url: string,
  access: Access,
  crypto: ProofCrypto,
  ask: (path: string) => Promise<ProofAnswer>,
): Promise<string | null> {
  const { host } = new URL(url);
  const { key, proofPath, asksTokenless } = access;
  const nonce = crypto.nonce();
  // The server knows only the hash of an API token. It proves that, and is then sent the token.
  const apiToken = apiTokenOfKey(key.id) === null ? null : key.secret;
  const secret = apiToken === null ? key.secret : await crypto.sha256(apiToken);
  const named = key.id === TOKEN_KEY_ID ? '' : `&key=${key.id}`;
  const { proof, life } = parseProof(await ask(`${proofPath}?nonce=${nonce}${named}`), access, host);
  if (proof === null) {
    if (asksTokenless) return null;
    throw unproven(host, 'says that it has no token, and so cannot prove that it is your daemon');
  }
  if (proof !== (await crypto.hmac(secret, proofText(nonce, host, life))))
    throw unproven(host, 'does not know the token');
  return apiToken ?? formatBearer(key.id, await crypto.hmac(secret, bearerText(life)));
}

/** The header of a request with `bearer`. */
export const authorization = (bearer: string | null): [name: string, value: string][] =>
  bearer === null ? [] : [['Authorization', `Bearer ${bearer}`]];
