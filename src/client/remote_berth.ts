// A Berth on another machine, as used by a Berth or a command here: docs/reference.md "Remote tethers".
import type { RelayAdmission } from '../adapters/relay/dial_relay.ts';
import { RELAY_PATH } from '../adapters/relay/relay_path.ts';
import type { AccessKey } from '../protocol/access_key.ts';
import { keyOfToken } from '../protocol/api_token.ts';
import { fail, isErrorCode } from '../protocol/errors.ts';
import { RELAY } from '../settings/cloud_limits.ts';
import { SettingsError } from '../settings/config.ts';
import { readSecret } from '../settings/state_dir.ts';
import { statePaths } from '../settings/state_paths.ts';
import { type Client, createClient } from './create_client.ts';
import { isBerthError } from './errors.ts';
import { readLogin } from './login_file.ts';
import { loginHolder } from './login_holder.ts';
import { loginToken } from './login_token.ts';
import { nodeTransport } from './node_transport.ts';

/** Its address, and the token for it. */
export interface RemoteBerth {
  url: string;
  /**
   * Its cloud token or an API token, which is a secret; or the state directory with `remote-token` or a
   * login, which may change at any time; null: none.
   */
  token: string | { stateDir: string } | null;
}

/** The token in `<state>/remote-token`; undefined: there is none. Throws a SettingsError. */
const fileToken = (stateDir: string): string | undefined =>
  readSecret(statePaths(stateDir).remoteToken, 'put the token into it')?.toString('utf8').trim();

/** Whether a state directory has a token for the Berth at `url`. Throws a SettingsError. */
export const hasRemoteToken = (stateDir: string, url: string): boolean =>
  fileToken(stateDir) !== undefined || readLogin(stateDir)?.url === url;

/** The current key for it. Rejects as `loginToken` does. */
export const remoteKey = async ({ url, token }: RemoteBerth): Promise<AccessKey | null> => {
  if (token === null) return null;
  if (typeof token === 'string') return keyOfToken(token);
  return keyOfToken(fileToken(token.stateDir) ?? (await loginToken(token.stateDir, url)));
};

/** Whose token a state directory has, as in `loginHolder`. */
function holderIn(stateDir: string, url: string): string | null | undefined {
  try {
    return fileToken(stateDir) ?? loginHolder(stateDir, url);
  } catch {
    return undefined;
  }
}

/**
 * Returns a check of whether what is opened with its token from now on may stay open: after a logout, a login
 * as another user, or a change of `remote-token`, it must end. A token that cannot be read at the moment has
 * not changed. Must be called before the token is read.
 */
export function watchHolder({ url, token }: RemoteBerth): () => boolean {
  if (token === null || typeof token === 'string') return () => true;
  const { stateDir } = token;
  const holder = holderIn(stateDir, url);
  return () => {
    const now = holderIn(stateDir, url);
    return now === undefined || now === holder;
  };
}

/** Its error codes that have the same meaning here. */
const PASSED_CODES: ReadonlySet<string> = new Set([
  ...['relay_off', 'unknown_workload', 'unknown_cluster', 'forbidden'],
]);
const DENIED_CODES: ReadonlySet<string> = new Set([
  ...['unauthorized', 'forbidden_host', 'forbidden_origin', 'forbidden_token', 'unproven'],
]);

/**
 * A client of its API of clusters, workloads and the relay, which tries again for `busyRetryMs` while it
 * starts.
 */
export const connectRemote = (remote: RemoteBerth, busyRetryMs = 0): Client => {
  const { url } = remote;
  const cloudKey = (): Promise<AccessKey | null> => remoteKey(remote);
  const deadlineMs = RELAY.answerTimeoutMs;
  return createClient(nodeTransport, { url, token: null, cloudKey, deadlineMs, busyRetryMs });
};

/**
 * The local form of an error from a call to it: remote_denied, remote_unreachable, or its own Failure. Other
 * errors are returned unchanged.
 */
export function remoteFailure(error: unknown): unknown {
  // The file with the token.
  if (error instanceof SettingsError) return fail('remote_denied', error.message);
  if (!isBerthError(error)) return error;
  const { code, message, hint } = error;
  if (isErrorCode(code) && PASSED_CODES.has(code)) return fail(code, message, { hint });
  // The error about a login already says what to do.
  if (code === 'login_needed') return fail('remote_denied', message, { hint });
  return fail(DENIED_CODES.has(code) ? 'remote_denied' : 'remote_unreachable', message);
}

/** Requests a ticket: where to connect to its relay, and with what. Fails as `remoteFailure` says. */
export async function admitToRelay(client: Client, url: string): Promise<RelayAdmission> {
  try {
    const { ticket, port, ends_in: endsIn } = await client.cloud.admitToRelay();
    const to = new URL(RELAY_PATH, url);
    if (port !== null) to.port = String(port);
    // A Berth of an earlier version does not report an expiry.
    const endsInMs = typeof endsIn === 'number' ? endsIn * 1_000 : null;
    return { url: to.href.replace(/^http/, 'ws'), ticket, endsInMs };
  } catch (error) {
    throw remoteFailure(error);
  }
}
