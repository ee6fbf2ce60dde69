// The session of this tab with the daemon that has served the page: docs/reference.md "Sessions of the page".
import { signal } from '@preact/signals';
import { isBerthError } from '../../client/browser.ts';
import { PageSession } from '../../client/page_session.ts';

// Always the page's own origin: nothing goes to anybody but the daemon that has served the page.
const session = new PageSession(location.origin, sessionStorage);

/** The daemon. */
export const { client } = session;

/** Whether the page asks for the token, and why; null: it does not. */
export const loginReason = signal<string | null>(null);
/** Whether the cloud token has been given. */
export const hasCloudToken = signal(false);

/** How many sessions this tab has begun, with which its views begin anew; 0: none yet. */
export const sessionCount = signal(0);

/** The text of an error for people, its hint included. */
export const errorText = (error: unknown): string =>
  isBerthError(error) ? [error.message, error.hint].filter(Boolean).join('\n') : String(error);

/** Whether another key may help: none was given, or the server does not know it. */
const needsLogin = (error: unknown): boolean =>
  isBerthError(error) && (error.status === 401 || error.code === 'unproven');

/** Asks for the token when `error` says that it is missing or wrong; returns whether it does. */
export function askForToken(error: unknown): boolean {
  if (!needsLogin(error)) return false;
  const isMissing = isBerthError(error) && error.status === 401;
  loginReason.value ??= isMissing ? '' : errorText(error);
  return true;
}

/** Begins the session by `opening`; returns whether that worked. Otherwise the page asks, and says why. */
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

/** Begins with the code that `berth open` has put into the fragment, or null: with what the tab had. */
export const resume = (code: string | null): Promise<boolean> => begin(session.resume(code));

/** Begins with the daemon's token. */
export const login = (token: string): Promise<boolean> => begin(session.login(token));

/** Takes the cloud token, in this tab's memory alone. */
export function loginCloud(token: string): void {
  session.cloudToken = token;
  hasCloudToken.value = true;
}

/** Forgets a cloud token that the daemon does not accept. */
export function forgetCloudToken(): void {
  session.cloudToken = null;
  hasCloudToken.value = false;
}

/** The code in the fragment, from which it is removed; null: none. A plus sign means itself, not a space. */
export function takeCode(): string | null {
  const values = new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B'));
  const code = values.get('code');
  if (code !== null) history.replaceState(null, '', location.pathname);
  return code;
}
