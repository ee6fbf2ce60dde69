// The session of this tab with the daemon that served the page: docs/reference.md "Dashboard sessions".
import { signal } from '@preact/signals';
import { isBerthError } from '../../client/browser.ts';
import { PageSession } from '../../client/page_session.ts';

// Always the page's own origin, so the page sends data only to the daemon that served it.
const session = new PageSession(location.origin, sessionStorage);

/** The client for the daemon. */
export const { client } = session;

/** Why the page asks for the token; null: it does not ask. */
export const loginReason = signal<string | null>(null);
/** Whether the cloud token has been given. */
export const hasCloudToken = signal(false);

/** How many sessions this tab has begun; 0: none yet. The views start again with each. */
export const sessionCount = signal(0);

/** The text of an error for people, including its hint. */
export const errorText = (error: unknown): string =>
  isBerthError(error) ? [error.message, error.hint].filter(Boolean).join('\n') : String(error);

/** Whether another key may help, because the request had none or one that the server does not know. */
const needsLogin = (error: unknown): boolean =>
  isBerthError(error) && (error.status === 401 || error.code === 'unproven');

/** Asks for the token if `error` means that it is missing or wrong; returns whether that is so. */
export function askForToken(error: unknown): boolean {
  if (!needsLogin(error)) return false;
  const isMissing = isBerthError(error) && error.status === 401;
  loginReason.value ??= isMissing ? '' : errorText(error);
  return true;
}

/** Begins the session with `opening`; returns whether that worked. If not, the page asks, and says why. */
async function begin(opening: Promise<void>): Promise<boolean> {
  try {
    await opening;
    loginReason.value = null;
    return true;
  } catch (error) {
    loginReason.value = errorText(error);
    return false;
  } finally {
    sessionCount.value += 1;
  }
}

/** Begins with the code that `berth open` put into the fragment; null: with the key that the tab had. */
export const resume = (code: string | null): Promise<boolean> => begin(session.resume(code));

/** Begins a session with the daemon's token. */
export const login = (token: string): Promise<boolean> => begin(session.login(token));

/** Keeps the cloud token, only in this tab's memory. */
export function loginCloud(token: string): void {
  session.cloudToken = token;
  hasCloudToken.value = true;
}

/** Forgets a cloud token that the daemon does not accept. */
export function forgetCloudToken(): void {
  session.cloudToken = null;
  hasCloudToken.value = false;
}

/** Takes the code out of the fragment; null: there is none. A plus sign stays a plus sign, not a space. */
export function takeCode(): string | null {
  const values = new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B'));
  const code = values.get('code');
  if (code !== null) history.replaceState(null, '', location.pathname);
  return code;
}
