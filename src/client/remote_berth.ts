// A Berth on another machine, as a Berth or a command here uses it: docs/reference.md "Remote tethers".
import { RELAY_PATH } from '../adapters/relay/relay_path.ts';
import { fail, isErrorCode } from '../protocol/errors.ts';
import { RELAY } from '../settings/cloud_limits.ts';
import { type Client, createClient } from './create_client.ts';
import { isBerthError } from './errors.ts';
import { nodeTransport } from './node_transport.ts';

/** Where it is, and its cloud token, which is a secret. */
export interface RemoteBerth {
  url: string;
  token: string;
}

/** The codes of its answers that mean the same here. */
const PASSED_CODES: ReadonlySet<string> = new Set(['relay_off', 'unknown_workload', 'unknown_cluster']);
const DENIED_CODES: ReadonlySet<string> = new Set([
  ...['unauthorized', 'forbidden_host', 'forbidden_origin', 'forbidden_token', 'unproven'],
]);

/** A client of its API of clusters, workloads and the relay. */
export const connectRemote = ({ url, token }: RemoteBerth): Client =>
  createClient(nodeTransport, { url, token: null, cloudToken: token, deadlineMs: RELAY.answerTimeoutMs });

/**
 * What an error of a call to it is here: remote_denied, remote_unreachable, or its own Failure. Any other
 * error is returned as it is.
 */
export function remoteFailure(error: unknown): unknown {
  if (!isBerthError(error)) return error;
  const { code, message, hint } = error;
  if (isErrorCode(code) && PASSED_CODES.has(code)) return fail(code, message, { hint });
  return fail(DENIED_CODES.has(code) ? 'remote_denied' : 'remote_unreachable', message);
}

/** Asks for a ticket: where to connect to its relay, and with what. Fails as `remoteFailure` says. */
export async function admitToRelay(client: Client, url: string): Promise<{ url: string; ticket: string }> {
  try {
    const { ticket, port } = await client.cloud.admitToRelay();
    const to = new URL(RELAY_PATH, url);
    if (port !== null) to.port = String(port);
    return { url: to.href.replace(/^http/, 'ws'), ticket };
  } catch (error) {
    throw remoteFailure(error);
  }
}
