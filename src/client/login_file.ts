// The login stored by `berth login` in the state directory: docs/reference.md "Login".
import { rmSync } from 'node:fs';
import { isBerthAddress, SettingsError } from '../settings/config.ts';
import { openStateDir, readSecret, replaceSecret } from '../settings/state_dir.ts';
import { statePaths } from '../settings/state_paths.ts';
import { BerthError } from './errors.ts';

/** The issuer of a person's token. */
export interface LoginSource {
  issuer: string;
  client_id: string;
  audience: string;
  /** null: the issuer gave none, and the login ends with its token. */
  refresh_token: string | null;
  /** From then on a new token is requested (epoch milliseconds). */
  refresh_at: number;
  /** From then on the token is refused (epoch milliseconds). */
  expires_at: number;
  /** The last renewal that got no answer, and when it ended (epoch milliseconds); absent: none. */
  failed?: { at: number; message: string };
}

export interface StoredLogin {
  /** The origin of the Berth. The token is used for no other. */
  url: string;
  /** The token presented to it. */
  token: string;
  /** null: it is an API token. */
  source: LoginSource | null;
}

/** The login of a person. */
export type PersonLogin = StoredLogin & { source: LoginSource };

const LOCK_TIMEOUT_MS = 60_000;
/** For this long an issuer that has not answered is not asked again, while the token is valid. */
const RETRY_MS = 15_000;

const isText = (value: unknown): value is string => typeof value === 'string' && /^[!-~]+$/.test(value);

function isSource(value: unknown): value is LoginSource {
  const source = (value ?? {}) as Partial<LoginSource>;
  const { issuer, client_id, audience, refresh_token, refresh_at, expires_at } = source;
  return (
    [issuer, client_id, audience].every(isText) &&
    (refresh_token === null || isText(refresh_token)) &&
    [refresh_at, expires_at].every(Number.isFinite)
  );
}

function parseLogin(text: string): StoredLogin | null {
  try {
    const value: Partial<StoredLogin> | null = JSON.parse(text);
    if (!isBerthAddress(value?.url) || !isText(value?.token)) return null;
    return value.source === null || isSource(value.source) ? (value as StoredLogin) : null;
  } catch {
    return null;
  }
}

/** The login in a state directory; null if there is none. Throws a SettingsError when it cannot be used. */
export function readLogin(stateDir: string): StoredLogin | null {
  const { login: path } = statePaths(stateDir);
  const remedy = 'remove it, and call `berth login`';
  const text = readSecret(path, remedy)?.toString();
  if (text === undefined) return null;
  const login = parseLogin(text);
  if (!login) throw new SettingsError(`${path}: is no login: ${remedy}`);
  return login;
}

/** The error that asks the user to log in again. */
export const loginNeeded = (url: string, message: string): BerthError =>
  new BerthError('login_needed', message, { status: 401, hint: `Log in again: berth login ${url}` });

/** Whether the token must be renewed. */
export const isRenewalDue = (login: StoredLogin): login is PersonLogin =>
  login.source !== null && login.source.refresh_at <= Date.now();

/** Whether the issuer has just failed to answer. */
export function hasJustFailed({ source: { failed } }: PersonLogin): boolean {
  const sinceMs = failed ? Date.now() - failed.at : RETRY_MS;
  // A time in the future is from before the clock was set back.
  return sinceMs >= 0 && sinceMs < RETRY_MS;
}

/** Must be called within `changeLogin`. Throws a SettingsError. */
export const writeLogin = (stateDir: string, login: StoredLogin): void =>
  replaceSecret(statePaths(stateDir).login, `${JSON.stringify(login)}\n`);

/** Must be called within `changeLogin`. */
export const removeLogin = (stateDir: string): void => rmSync(statePaths(stateDir).login, { force: true });

/**
 * Runs `work` while no other process changes the login of this state directory. Rejects with
 * issuer_unreachable if another one does so for longer than `timeoutMs`.
 */
export async function changeLogin<T>(
  stateDir: string,
  work: () => Promise<T>,
  timeoutMs = LOCK_TIMEOUT_MS,
): Promise<T> {
  openStateDir(stateDir);
  const late = (): Error =>
    new BerthError(
      'issuer_unreachable',
      `another Berth has been changing the login for ${timeoutMs / 1_000} s`,
    );
  // Loaded here: most commands only read.
  const { withFileLock } = await import('../adapters/process/file_lock.ts');
  return withFileLock(statePaths(stateDir).loginLock, { timeoutMs, late }, work);
}
