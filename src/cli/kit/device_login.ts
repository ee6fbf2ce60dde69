// The device flow (RFC 8628) as the user sees it: docs/reference.md "Login".
import { setTimeout as pause } from 'node:timers/promises';
import { type DeviceRequest, type IssuedTokens, NoTokensError } from '../../adapters/issuer_client.ts';
import type { PersonLogin } from '../../client/login_file.ts';
import { openIssuer, personLogin } from '../../client/login_renewal.ts';
import type { LoginSettings } from '../../client/records.ts';
import { isLoopback } from '../../settings/loopback.ts';
import type { CommandContext } from './context.ts';
import { CommandError, EXIT_CODE } from './exit_codes.ts';
import { browserOpener, spawnOpener } from './open_browser.ts';

/** RFC 8628, section 3.5. */
const SLOW_DOWN_MS = 5_000;
/** The pause between polls doubles up to this while the issuer does not answer. */
const MAX_PAUSE_MS = 60_000;

const TOKEN_FILE_HINT = 'For a program, or without an issuer: berth login --token-file.';

function isOfThisMachine(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
}

/** The login settings of the Berth at `url` that a login needs. Throws a CommandError. */
function issuerFor(
  url: string,
  { issuer, client_id, audience, scope }: LoginSettings,
): { issuer: string; client_id: string; audience: string; scope: string } {
  if (issuer === null || client_id === null || audience === null || scope === null)
    throw new CommandError(`the Berth at ${url} has no issuer of logins`, TOKEN_FILE_HINT);
  // Only a Berth on this machine may name an issuer without https.
  if (!issuer.startsWith('https:') && !isOfThisMachine(url))
    throw new CommandError(`the Berth at ${url} names an issuer without https: ${issuer}`);
  return { issuer, client_id, audience, scope };
}

/** Polls the issuer, no more often than it allows, until the user has decided. */
async function awaitUser(
  { deviceCode, intervalMs, expiresInMs }: DeviceRequest,
  poll: (deviceCode: string) => Promise<{ state: string; tokens?: IssuedTokens }>,
): Promise<IssuedTokens> {
  const until = performance.now() + expiresInMs;
  for (let waitMs = intervalMs; performance.now() + waitMs < until; ) {
    await pause(waitMs);
    try {
      const { state, tokens } = await poll(deviceCode);
      if (tokens) return tokens;
      if (state === 'slow_down') waitMs += SLOW_DOWN_MS;
      if (state === 'denied') throw new CommandError('the login was denied', '', EXIT_CODE.unauthorized);
      if (state === 'expired') break;
    } catch (error) {
      if (!(error instanceof NoTokensError) || error.kind !== 'away') throw error;
      waitMs = Math.min(2 * waitMs, Math.max(MAX_PAUSE_MS, intervalMs));
    }
  }
  throw new CommandError('nobody has confirmed the login in time', 'Call berth login again.');
}

/** Logs a person in at the issuer of the Berth at `url`. Throws a CommandError. */
export async function logInByDevice(
  { out }: CommandContext,
  url: string,
  settings: LoginSettings,
  { opens }: { opens: boolean },
): Promise<PersonLogin> {
  const { scope, ...source } = issuerFor(url, settings);
  try {
    const issuer = await openIssuer(source);
    const request = await issuer.requestDevice(scope);
    const { userCode, verificationUrl, completeUrl } = request;
    out.note(`Open ${verificationUrl} and enter the code ${userCode}`);
    const program = opens ? browserOpener() : undefined;
    if (opens && (!program || !(await spawnOpener(program, completeUrl ?? verificationUrl))))
      out.note('No browser can be opened here.');
    return personLogin(url, source, await awaitUser(request, (code) => issuer.pollDevice(code)));
  } catch (error) {
    throw error instanceof NoTokensError ? new CommandError(error.message) : error;
  }
}
