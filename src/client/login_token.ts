// The token of `berth login`, renewed before it expires: docs/reference.md "Login".
import { isSignalHeld } from '../adapters/process/held_signals.ts';
import { isBerthError } from './errors.ts';
import { hasJustFailed, isRenewalDue, loginNeeded, readLogin } from './login_file.ts';

/** How long a renewal may delay a request whose token is still valid. */
const PATIENCE_MS = 2_000;

/**
 * Resolves with a token for a request, or never if Ctrl-C or another signal ends the process once its renewal
 * is over: what a person has cancelled is not done.
 */
const unlessEnding = (token: string): Promise<string> =>
  isSignalHeld() ? new Promise(() => undefined) : Promise.resolve(token);

/**
 * The token for the Berth at `url`. Rejects with login_needed when the user must log in again, with
 * issuer_unreachable when no new token is currently available, and with a SettingsError.
 */
export async function loginToken(stateDir: string, url: string): Promise<string> {
  const login = readLogin(stateDir);
  if (login?.url !== url) throw loginNeeded(url, `there is no login at ${url}`);
  if (!isRenewalDue(login)) return login.token;
  const isValid = login.source.expires_at > Date.now() + PATIENCE_MS;
  if (isValid && hasJustFailed(login)) return login.token;
  // Loaded here: most commands find a token that is valid.
  const { renewLogin } = await import('./login_renewal.ts');
  if (!isValid) return (await renewLogin(stateDir, url)).token;
  let timer: NodeJS.Timeout | undefined;
  // The renewal continues if the request does not wait for it: its answer must be stored.
  const patience = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(unlessEnding(login.token)), PATIENCE_MS);
  });
  try {
    return await Promise.race([renewLogin(stateDir, url, PATIENCE_MS).then(({ token }) => token), patience]);
  } catch (error) {
    // A temporary failure of the issuer must not end a login that is still valid.
    if (isBerthError(error) && error.code === 'issuer_unreachable') return unlessEnding(login.token);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
