// The requests of a user's program to an OpenID Connect issuer: the device flow (RFC 8628), new tokens for a
// refresh token, and its revocation (RFC 7009). The only file that imports oauth4webapi.
// docs/reference.md "Login".
import * as oauth from 'oauth4webapi';
import { claimsOf, type JwtClaims } from '../protocol/jwt_claims.ts';
import { isBerthAddress } from '../settings/config.ts';
import { boundedBody } from './bounded_body.ts';

/** The issuer, and the client that requests tokens. */
export interface IssuerClient {
  /** Its URL, without a trailing slash. */
  issuer: string;
  clientId: string;
  /** The required audience of tokens. */
  audience: string;
}

/** Tokens from an issuer. */
export interface IssuedTokens {
  /** A JWT for the audience, which a Berth accepts. */
  token: string;
  /** null: the issuer gave none, or no new one. */
  refreshToken: string | null;
  /** How long the token is valid from now, in milliseconds. */
  lifetimeMs: number;
}

/** What the user confirms in a browser. */
export interface DeviceRequest {
  userCode: string;
  verificationUrl: string;
  /** The same with the code included; null: the issuer has none. */
  completeUrl: string | null;
  deviceCode: string;
  intervalMs: number;
  expiresInMs: number;
}

/** What the token endpoint says while the user has not confirmed yet, and afterwards. */
export type DevicePoll =
  | { state: 'pending' | 'slow_down' | 'denied' | 'expired' }
  | { state: 'given'; tokens: IssuedTokens };

/** Whether the issuer refused, answered wrongly, or did not answer, in which case a retry may help. */
type NoTokensKind = 'refused' | 'broken' | 'away';

/** Why an issuer gave no tokens. The message is for people, and contains no token. */
export class NoTokensError extends Error {
  override readonly name = 'NoTokensError';
  readonly kind: NoTokensKind;
  constructor(kind: NoTokensKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The time limit of a request, in milliseconds. */
const ISSUER_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 262_144;
const MAX_TEXT_LENGTH = 200;
const DEFAULT_INTERVAL_S = 5;
const MAX_INTERVAL_S = 60;
const MAX_EXPIRES_S = 3_600;
const CLOCK_TOLERANCE_S = 86_400;
const USER_CODE = /^[\x21-\x7e]{1,64}$/;
const DENIALS: ReadonlySet<string> = new Set(['access_denied', 'authorization_declined']);
/** A year: longer lifetimes are taken for mistakes. */
const MAX_LIFETIME_MS = 31_536_000_000;

/** Quotes untrusted text for a one-line message, without the secret that the other side was sent. */
const quoted = (text: string, secret = ''): string =>
  JSON.stringify((secret === '' ? text : text.replaceAll(secret, '...')).slice(0, MAX_TEXT_LENGTH));

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** Like `fetch`, but with limits and without redirects, because a request may contain a token. */
const boundedFetch = async (
  url: string,
  options: oauth.CustomFetchOptions<'GET' | 'POST', oauth.ProtectedResourceRequestBody>,
  timeoutMs = ISSUER_TIMEOUT_MS,
): Promise<Response> => {
  const answer = await fetch(url, {
    ...(options as RequestInit),
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (answer.status >= 300 && answer.status < 400) {
    await answer.body?.cancel();
    throw new NoTokensError('broken', 'it answers with a redirect, which is not followed');
  }
  const bytes = await boundedBody(answer, MAX_ANSWER_BYTES);
  const { status, headers } = answer;
  return new Response(BODILESS.has(status) ? null : bytes, { status, headers });
};

/** Statuses after which a retry may succeed. */
const isPassing = (status: number): boolean => status >= 500 || status === 408 || status === 429;

/** Describes an answer that does not follow the protocol, or a missing one. */
function troubleOf(error: unknown): { kind: NoTokensKind; text: string } {
  if (error instanceof NoTokensError) return { kind: error.kind, text: error.message };
  if (!(error instanceof Error)) throw error;
  const { name, message, cause } = error;
  if (cause instanceof Response)
    return { kind: isPassing(cause.status) ? 'away' : 'broken', text: `${message} (HTTP ${cause.status})` };
  if (name === 'TimeoutError') return { kind: 'away', text: 'no answer in time' };
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : null;
  return code === null ? { kind: 'broken', text: message } : { kind: 'away', text: code };
}

/** `secret`: what the issuer was sent. */
function failureOf(issuer: string, error: unknown, secret?: string): NoTokensError {
  if (error instanceof oauth.ResponseBodyError) {
    const { error: code, error_description: text, status } = error;
    const said = [code, ...(text ? [text] : [])].map((part) => quoted(part, secret)).join(', ');
    return new NoTokensError(isPassing(status) ? 'away' : 'refused', `the issuer ${issuer} refuses: ${said}`);
  }
  const { kind, text } = troubleOf(error);
  return new NoTokensError(kind, `the issuer ${issuer} gives no proper answer: ${text}`);
}

const isFor = (claims: JwtClaims | null, audience: string): claims is JwtClaims =>
  [claims?.aud].flat().includes(audience);

/** The lifetime of a token just issued, by its own times, because the local clock may be wrong. */
function lifetimeOf({ exp, iat }: JwtClaims): number {
  const seconds = typeof exp === 'number' && typeof iat === 'number' ? exp - iat : 0;
  return Math.max(0, Math.min(seconds * 1_000, MAX_LIFETIME_MS));
}

function tokensOf(
  { audience }: IssuerClient,
  { id_token: idToken, access_token: accessToken, refresh_token: refreshToken }: oauth.TokenEndpointResponse,
): IssuedTokens {
  for (const token of [idToken, accessToken]) {
    const claims = token === undefined ? null : claimsOf(token);
    if (token === undefined || !isFor(claims, audience)) continue;
    return { token, refreshToken: refreshToken ?? null, lifetimeMs: lifetimeOf(claims) };
  }
  throw new NoTokensError('broken', `it gives no token for ${quoted(audience)}`);
}

/** `text` if it is an address that a browser may be sent to; otherwise null. */
function pageUrl(text: string | undefined): string | null {
  if (text === undefined || text.length > 2_048 || !URL.canParse(text)) return null;
  const { protocol, href, username } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' ? href : null;
}

const within = (value: number | undefined, fallback: number, most: number): number =>
  Math.min(Math.max(value ?? fallback, 1), most);

/** An issuer, as its own document describes it. */
export class IssuerSession {
  private readonly client: IssuerClient;
  private readonly server: oauth.AuthorizationServer;
  private readonly asked: oauth.Client;
  private readonly options;

  private constructor(client: IssuerClient, server: oauth.AuthorizationServer) {
    this.client = client;
    this.server = server;
    // The local clock may be wrong; the server that receives the token checks its times.
    this.asked = { client_id: client.clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE_S };
    this.options = IssuerSession.optionsOf(client.issuer);
  }

  /** http is only allowed on this machine, which `isBerthAddress` has ensured. */
  private static optionsOf(issuer: string) {
    return {
      [oauth.customFetch]: boundedFetch,
      [oauth.allowInsecureRequests]: issuer.startsWith('http:'),
    };
  }

  /**
   * Reads the document of the issuer, which may take `timeoutMs`. Rejects with a NoTokensError, as every
   * method does.
   */
  static async open(client: IssuerClient, timeoutMs = ISSUER_TIMEOUT_MS): Promise<IssuerSession> {
    const { issuer } = client;
    if (!URL.canParse(issuer) || !isBerthAddress(new URL(issuer).origin))
      throw new NoTokensError('broken', `the issuer ${quoted(issuer)} has no address with https`);
    const url = new URL(issuer);
    try {
      const answer = await oauth.discoveryRequest(url, {
        ...IssuerSession.optionsOf(issuer),
        [oauth.customFetch]: (address, options) => boundedFetch(address, options, timeoutMs),
        algorithm: 'oidc',
      });
      const server = await oauth.processDiscoveryResponse(url, answer);
      for (const [name, address] of Object.entries(server)) {
        if (!name.endsWith('_endpoint') || address === undefined) continue;
        const isProper = typeof address === 'string' && URL.canParse(address);
        if (!isProper || !isBerthAddress(new URL(address).origin))
          throw new NoTokensError('broken', `its ${name} has no address with https`);
      }
      return new IssuerSession(client, server);
    } catch (error) {
      throw failureOf(issuer, error);
    }
  }

  /** Begins the device flow. */
  async requestDevice(scope: string): Promise<DeviceRequest> {
    const { issuer } = this.client;
    if (this.server.device_authorization_endpoint === undefined)
      throw new NoTokensError('refused', `the issuer ${issuer} has no device flow`);
    try {
      const answer = await oauth.deviceAuthorizationRequest(
        this.server,
        this.asked,
        oauth.None(),
        { scope },
        this.options,
      );
      const given = await oauth.processDeviceAuthorizationResponse(this.server, this.asked, answer);
      const verificationUrl = pageUrl(given.verification_uri);
      if (verificationUrl === null || !USER_CODE.test(given.user_code))
        throw new NoTokensError('broken', 'its code or the address to enter it cannot be shown');
      return {
        userCode: given.user_code,
        verificationUrl,
        completeUrl: pageUrl(given.verification_uri_complete),
        deviceCode: given.device_code,
        intervalMs: within(given.interval, DEFAULT_INTERVAL_S, MAX_INTERVAL_S) * 1_000,
        expiresInMs: within(given.expires_in, MAX_EXPIRES_S, MAX_EXPIRES_S) * 1_000,
      };
    } catch (error) {
      throw failureOf(issuer, error);
    }
  }

  /** Asks once whether the user has confirmed. */
  async pollDevice(deviceCode: string): Promise<DevicePoll> {
    try {
      const answer = await oauth.deviceCodeGrantRequest(
        this.server,
        this.asked,
        oauth.None(),
        deviceCode,
        this.options,
      );
      const given = await oauth.processDeviceCodeResponse(this.server, this.asked, answer);
      return { state: 'given', tokens: tokensOf(this.client, given) };
    } catch (error) {
      const code = error instanceof oauth.ResponseBodyError ? error.error : '';
      if (code === 'authorization_pending') return { state: 'pending' };
      if (code === 'slow_down') return { state: 'slow_down' };
      if (DENIALS.has(code)) return { state: 'denied' };
      if (code === 'expired_token') return { state: 'expired' };
      throw failureOf(this.client.issuer, error, deviceCode);
    }
  }

  async refresh(refreshToken: string): Promise<IssuedTokens> {
    try {
      const answer = await oauth.refreshTokenGrantRequest(
        this.server,
        this.asked,
        oauth.None(),
        refreshToken,
        this.options,
      );
      return tokensOf(this.client, await oauth.processRefreshTokenResponse(this.server, this.asked, answer));
    } catch (error) {
      throw failureOf(this.client.issuer, error, refreshToken);
    }
  }

  /** Revokes a refresh token. Resolves with false if the issuer does not offer revocation. */
  async revoke(refreshToken: string): Promise<boolean> {
    if (this.server.revocation_endpoint === undefined) return false;
    try {
      const answer = await oauth.revocationRequest(this.server, this.asked, oauth.None(), refreshToken, {
        ...this.options,
        additionalParameters: { token_type_hint: 'refresh_token' },
      });
      await oauth.processRevocationResponse(answer);
      return true;
    } catch (error) {
      throw failureOf(this.client.issuer, error, refreshToken);
    }
  }
}
