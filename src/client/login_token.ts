// The token of `berth login`, renewed before it expires: docs/reference.md "Login".
import { isBerthError } from './errors.ts';
import { isRenewalDue, loginNeeded, readLogin } from './login_file.ts';

/**
 * The token for the Berth at `url`. Rejects with login_needed when the user must log in again, with
 * issuer_unreachable when no new token is currently available, and with a SettingsError.
 */
export async function loginToken(stateDir: string, url: string): Promise<string> {
  const login = readLogin(stateDir);
  if (login?.url !== url) throw loginNeeded(url, `there is no login at ${url}`);
  if (!isRenewalDue(login)) return login.token;
  try {
    // Loaded here: most commands find a token that is valid.
    const { renewLogin } = await import('./login_renewal.ts');
    return (await renewLogin(stateDir, url)).token;
  } catch (error) {
    // A temporary failure of the issuer must not end a login that is still valid.
    const isAway = isBerthError(error) && error.code === 'issuer_unreachable';
    if (isAway && login.source.expires_at > Date.now()) return login.token;
    throw error;
  }
}
