// How `berth login` and its renewals get tokens from an issuer: docs/reference.md "Login".
import { type IssuedTokens, IssuerSession, NoTokensError } from '../adapters/issuer_client.ts';
import { holdSignals } from '../adapters/process/held_signals.ts';
import { BerthError, isBerthError } from './errors.ts';
import {
  changeLogin,
  isRenewalDue,
  type LoginSource,
  loginNeeded,
  type PersonLogin,
  readLogin,
  type StoredLogin,
  writeLogin,
} from './login_file.ts';

/** A token is renewed this long before it expires, or after half of its lifetime if that is shorter. */
const MARGIN_MS = 60_000;

type Issuer = Pick<LoginSource, 'issuer' | 'client_id' | 'audience'>;

/** The issuer of a login, which has `timeoutMs` to answer. Rejects with a NoTokensError. */
export const openIssuer = (
  { issuer, client_id: clientId, audience }: Issuer,
  timeoutMs?: number,
): Promise<IssuerSession> => IssuerSession.open({ issuer, clientId, audience }, timeoutMs);

/** The login for `tokens`. `before`: the refresh token to keep unless there is a new one. */
export function personLogin(
  url: string,
  { issuer, client_id, audience }: Issuer,
  { token, refreshToken, lifetimeMs }: IssuedTokens,
  before: string | null = null,
): PersonLogin {
  const now = Date.now();
  const refresh_at = now + lifetimeMs - Math.min(MARGIN_MS, lifetimeMs / 2);
  const times = { refresh_at, expires_at: now + lifetimeMs };
  const source = { issuer, client_id, audience, refresh_token: refreshToken ?? before, ...times };
  return { url, token, source };
}

/** Gets new tokens and stores them. */
async function renew(
  stateDir: string,
  { url, source }: PersonLogin,
  patienceMs?: number,
): Promise<PersonLogin> {
  const { refresh_token: refreshToken } = source;
  if (refreshToken === null) throw loginNeeded(url, `the login at ${url} has expired`);
  try {
    const issuer = await openIssuer(source, patienceMs);
    // The issuer may accept a refresh token only once: without the answer to this request, the login is lost.
    return await holdSignals(async () => {
      const fresh = personLogin(url, source, await issuer.refresh(refreshToken), refreshToken);
      writeLogin(stateDir, fresh);
      return fresh;
    });
  } catch (error) {
    if (!(error instanceof NoTokensError)) throw error;
    if (error.kind === 'refused') throw loginNeeded(url, `the login at ${url} has ended: ${error.message}`);
    throw new BerthError('issuer_unreachable', `the login at ${url} is not renewed: ${error.message}`);
  }
}

/** Records that the issuer gives no answer, for those that wait for this renewal. */
function noteFailure(stateDir: string, login: PersonLogin, message: string): void {
  try {
    writeLogin(stateDir, { ...login, source: { ...login.source, failed: { at: Date.now(), message } } });
  } catch {
    // Without disk space, each of them asks the issuer itself.
  }
}

/**
 * Renews the token if it is due. Only one process at a time does so; the others find what it has stored, also
 * that the issuer did not answer. `patienceMs`: how long to wait for another process, and for an issuer that
 * has not been sent the refresh token yet.
 */
export function renewLogin(stateDir: string, url: string, patienceMs?: number): Promise<StoredLogin> {
  const askedAt = Date.now();
  const work = async (): Promise<StoredLogin> => {
    const login = readLogin(stateDir);
    if (login?.url !== url) throw loginNeeded(url, `there is no login at ${url} any more`);
    if (!isRenewalDue(login)) return login;
    const { failed } = login.source;
    // A time in the future is from before the clock was set back.
    if (failed && failed.at >= askedAt && failed.at <= Date.now())
      throw new BerthError('issuer_unreachable', failed.message);
    try {
      return await renew(stateDir, login, patienceMs);
    } catch (error) {
      if (isBerthError(error) && error.code === 'issuer_unreachable')
        noteFailure(stateDir, login, error.message);
      throw error;
    }
  };
  return changeLogin(stateDir, work, patienceMs);
}
