// An issuer on loopback with the device flow (RFC 8628), refresh tokens that change at each use, and their
// revocation (RFC 7009).
import { randomBytes } from 'node:crypto';
import { type Issuer, type IssuerAnswer, jwt, newKey, type SigningKey, startIssuer } from './oidc_issuer.ts';

/** The id of the program that asks for tokens, which is what they are for. */
const CLIENT_ID = 'berth';

export interface LoginIssuer extends Issuer {
  /** What the token endpoint answers to polls, one after the other, before the user has confirmed. */
  polls: string[];
  /** Whether the user has confirmed. */
  isConfirmed: boolean;
  /** Who that is. */
  subject: string;
  /** Of a token. */
  lifetimeS: number;
  /** Seconds between polls, as it asks for. */
  interval: number;
  /** Refresh tokens that it takes. */
  live: Set<string>;
  /** Refresh tokens that it was shown at its token endpoint. */
  shown: string[];
  /** What a refresh waits for. */
  held: Promise<void>;
}

const refusal = (error: string): IssuerAnswer => ({ status: 400, body: { error } });

const secret = (): string => randomBytes(24).toString('base64url');

function tokens(issuer: LoginIssuer, key: SigningKey): IssuerAnswer {
  const now = Math.floor(Date.now() / 1_000);
  const { lifetimeS, subject, url, live } = issuer;
  const claims = { iss: url, aud: CLIENT_ID, sub: subject, iat: now, exp: now + lifetimeS, jti: secret() };
  const refresh = secret();
  live.add(refresh);
  return {
    status: 200,
    body: {
      ...{ access_token: secret(), token_type: 'Bearer', expires_in: lifetimeS },
      ...{ id_token: jwt(key, claims), refresh_token: refresh },
    },
  };
}

async function exchange(issuer: LoginIssuer, key: SigningKey, form: URLSearchParams): Promise<IssuerAnswer> {
  if (form.get('client_id') !== CLIENT_ID) return { status: 401, body: { error: 'invalid_client' } };
  if (form.get('grant_type') === 'refresh_token') {
    const shown = form.get('refresh_token') ?? '';
    issuer.shown.push(shown);
    await issuer.held;
    return issuer.live.delete(shown) ? tokens(issuer, key) : refusal('invalid_grant');
  }
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:device_code')
    return refusal('unsupported_grant_type');
  if (form.get('device_code') !== 'the-device') return refusal('invalid_grant');
  const next = issuer.polls.shift();
  if (next !== undefined) return refusal(next);
  return issuer.isConfirmed ? tokens(issuer, key) : refusal('authorization_pending');
}

/** Starts one that signs with a key of its own, and whose user has confirmed. */
export async function startLoginIssuer(): Promise<LoginIssuer> {
  const key = newKey('login');
  const issuer: LoginIssuer = Object.assign(await startIssuer(key), {
    polls: [],
    isConfirmed: true,
    subject: 'anna',
    lifetimeS: 600,
    interval: 1,
    live: new Set<string>(),
    shown: [],
    held: Promise.resolve(),
  });
  const { url } = issuer;
  issuer.document = {
    device_authorization_endpoint: `${url}/device`,
    token_endpoint: `${url}/token`,
    revocation_endpoint: `${url}/revoke`,
    id_token_signing_alg_values_supported: [key.alg],
  };
  issuer.routes.set('/device', (form) => {
    if (form.get('client_id') !== CLIENT_ID) return { status: 401, body: { error: 'invalid_client' } };
    const page = `${url}/activate`;
    return {
      status: 200,
      body: {
        ...{ device_code: 'the-device', user_code: 'WDJB-MJHT', expires_in: 600 },
        ...{ verification_uri: page, verification_uri_complete: `${page}?user_code=WDJB-MJHT` },
        interval: issuer.interval,
      },
    };
  });
  issuer.routes.set('/token', (form) => exchange(issuer, key, form));
  issuer.routes.set('/revoke', (form) => {
    issuer.live.delete(form.get('token') ?? '');
    return { status: 200, body: '' };
  });
  return issuer;
}
