// Whose login is in a state directory, so that what was opened with it ends with it.
// docs/reference.md "Login".
import { claimsOf } from '../protocol/jwt_claims.ts';
import { readLogin } from './login_file.ts';

/**
 * The holder of the login at `url`: a user, whose token may be renewed, or an API token. null: there is none;
 * undefined: the login cannot be read.
 */
export function loginHolder(stateDir: string, url: string): string | null | undefined {
  try {
    const login = readLogin(stateDir);
    if (login?.url !== url) return null;
    if (login.source === null) return login.token;
    const claims = claimsOf(login.token);
    return JSON.stringify([claims?.iss, claims?.sub]);
  } catch {
    return undefined;
  }
}
