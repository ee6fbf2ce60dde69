// The tokens of an OpenID Connect issuer: docs/reference.md "OpenID Connect". The only file that
// imports jose.
import {
  createRemoteJWKSet,
  customFetch,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import { isBerthAddress } from '../settings/config.ts';
import { boundedBody } from './bounded_body.ts';

export interface OidcSettings {
  /** Its URL, without a trailing slash. */
  issuer: string;
  /** The required audience of tokens. */
  audience: string;
  /** The claim that names a person. */
  subjectClaim: string;
  /** The claim that lists groups. */
  groupsClaim: string;
}

/** The user a token belongs to. */
export interface OidcUser {
  subject: string;
  groups: readonly string[];
  /** Epoch milliseconds. */
  expiresAt: number;
}

/** The issuer did not answer, or answered wrongly. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError';
}

/**
 * Only public-key algorithms: with HS256 anyone could sign with the public key, and `none` needs no
 * signature.
 */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA'],
];
const TIMEOUT_MS = 5_000;
const KEYS_COOLDOWN_MS = 10_000;
const KEYS_MAX_AGE_MS = 600_000;
const MAX_DOCUMENT_BYTES = 1_048_576;
const MAX_SUBJECT_LENGTH = 200;
const MAX_GROUPS = 500;
const CLOCK_TOLERANCE_S = 5;

/** The codes for errors of the issuer rather than a token. */
const OF_ISSUER: ReadonlySet<string> = new Set(['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID']);

/** As `fetch`: jose bounds the time of an answer alone. */
async function boundedFetch(url: string, options: RequestInit): Promise<Response> {
  const answer = await fetch(url, options);
  const { status } = answer;
  const bytes = await boundedBody(answer, MAX_DOCUMENT_BYTES);
  return new Response(status === 200 ? bytes : null, { status });
}

type Keys = ReturnType<typeof createRemoteJWKSet>;

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_SUBJECT_LENGTH && /^[\x21-\x7e]+$/.test(value);

/** Some issuers send the claim as text, and some not at all. */
const isConfirmed = (claim: unknown): boolean => claim === undefined || claim === true || claim === 'true';

/** The user named in verified claims; null: they name none. */
function userOf(claims: JWTPayload, { subjectClaim, groupsClaim }: OidcSettings): OidcUser | null {
  const subject = claims[subjectClaim];
  const groups = claims[groupsClaim];
  if (!isName(subject) || claims.exp === undefined) return null;
  // An unverified address may be anyone's.
  if (subjectClaim === 'email' && !isConfirmed(claims['email_verified'])) return null;
  const known = Array.isArray(groups) ? groups.filter(isName).slice(0, MAX_GROUPS) : [];
  return { subject, groups: known, expiresAt: claims.exp * 1_000 };
}

/** Whether its header names one of the issuer's keys. Without a key id, any of them would do. */
function isProper(token: string): boolean {
  try {
    const { kid, alg } = decodeProtectedHeader(token);
    return typeof kid === 'string' && alg !== undefined && ALGORITHMS.includes(alg);
  } catch {
    return false;
  }
}

export class OidcIssuer {
  private readonly settings: OidcSettings;
  private readonly keysCooldownMs: number;
  private keys: Promise<Keys> | null = null;

  /** Keys are fetched again when a token names an unknown one, at most every `keysCooldownMs`. */
  constructor(settings: OidcSettings, keysCooldownMs = KEYS_COOLDOWN_MS) {
    this.settings = settings;
    this.keysCooldownMs = keysCooldownMs;
  }

  /** Resolves with the user of `token`; null: the token is invalid. Rejects with an IssuerError. */
  async verify(token: string): Promise<OidcUser | null> {
    const { issuer, audience } = this.settings;
    if (!isProper(token)) return null;
    const keys = await this.readKeys();
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        requiredClaims: ['exp', 'iat'],
      });
      return userOf(payload, this.settings);
    } catch (error) {
      if (error instanceof errors.JOSEError && !OF_ISSUER.has(error.code)) return null;
      throw new IssuerError(`the keys of ${issuer} cannot be read: ${(error as Error).message}`);
    }
  }

  private readKeys(): Promise<Keys> {
    this.keys ??= this.discover().catch((error: unknown) => {
      this.keys = null;
      throw error;
    });
    return this.keys;
  }

  private async discover(): Promise<Keys> {
    const { issuer } = this.settings;
    const document = await this.fetchDocument(`${issuer}/.well-known/openid-configuration`);
    const { issuer: named, jwks_uri: keysUrl } = document;
    if (named !== issuer && named !== `${issuer}/`)
      throw new IssuerError(`${issuer} says that it is another issuer`);
    const isUrl = typeof keysUrl === 'string' && URL.canParse(keysUrl);
    if (!isUrl || !isBerthAddress(new URL(keysUrl).origin))
      throw new IssuerError(`${issuer} names no address of its keys`);
    return createRemoteJWKSet(new URL(keysUrl), {
      timeoutDuration: TIMEOUT_MS,
      cooldownDuration: this.keysCooldownMs,
      cacheMaxAge: KEYS_MAX_AGE_MS,
      [customFetch]: boundedFetch,
    });
  }

  private async fetchDocument(url: string): Promise<Record<string, unknown>> {
    try {
      const answer = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
      const bytes = await boundedBody(answer, MAX_DOCUMENT_BYTES);
      if (answer.status !== 200) throw new Error(`${answer.status}`);
      return Object(JSON.parse(Buffer.from(bytes).toString()));
    } catch (error) {
      throw new IssuerError(`${url} cannot be read: ${(error as Error).message}`);
    }
  }
}
