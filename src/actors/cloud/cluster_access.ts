// Checks the access to a cluster given in a registration, without connecting.
import { isIP } from 'node:net';
import { type AddressRule, addressCheck } from '../../adapters/address_rule.ts';
import { credentialEnd } from '../../adapters/kube/credential_end.ts';
import { tokenRenewal } from '../../adapters/kube/service_account.ts';
import { unbracketedHost } from '../../adapters/url_host.ts';
import type { TokenRenewal } from '../../protocol/cluster_account.ts';
import type { ClusterAccess, ClusterInput } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';

export interface ClusterAccessConfig {
  /** Parses an uploaded kubeconfig, on a job thread. Fails invalid_spec. */
  parse: (text: string) => Promise<ClusterAccess>;
  rule: AddressRule;
  /** The setting `cloud.allow_in_cluster`. */
  allowInCluster: boolean;
  /** Whether the daemon runs in a pod with a service account. */
  inPod: boolean;
}

/** An access, with what is shown of its credentials. */
export interface CheckedAccess {
  access: ClusterAccess;
  credentialEndsAt: number | null;
  renewal: TokenRenewal | null;
}

/** Names that always resolve to the local machine (RFC 6761). */
const LOOPBACK_NAME = /^(.+\.)?localhost\.?$/i;

/** The failure of one field. */
export const invalidField = (path: string, message: string) =>
  fail('invalid_spec', `${path} ${message}`, { details: [{ path, message: `${path} ${message}` }] });

/** Parses a kubeconfig and checks the address of its server. Fails invalid_spec. */
export async function checkAccess(
  { parse, rule }: Pick<ClusterAccessConfig, 'parse' | 'rule'>,
  kubeconfig: string,
  renewToken: boolean,
): Promise<CheckedAccess> {
  const access = await parse(kubeconfig);
  const host = unbracketedHost(new URL(access.server));
  // Names are checked when they are dialled. Addresses, and names that always stand for the same address, can
  // be refused at once.
  const address = LOOPBACK_NAME.test(host) ? '127.0.0.1' : host;
  const reason = isIP(address) === 0 ? null : addressCheck(rule)(address);
  if (reason !== null) throw invalidField('kubeconfig', `names the server ${host}: it ${reason}`);
  const { credential } = access;
  const credentialEndsAt = credentialEnd(credential);
  const renewal = renewToken && credential.kind === 'token' ? tokenRenewal(credential.token) : null;
  if (renewToken && renewal === null)
    throw invalidField('renew_token', 'needs the token of a ServiceAccount that says when it ends');
  return { access, credentialEndsAt, renewal };
}

/** The access given in a registration; null: this pod's own. Fails invalid_spec. */
export async function accessOfInput(
  config: ClusterAccessConfig,
  { kubeconfig, inCluster, renewToken }: ClusterInput,
): Promise<CheckedAccess | null> {
  if (!inCluster) {
    if (kubeconfig === null) throw invalidField('kubeconfig', 'is required unless in_cluster is true');
    return checkAccess(config, kubeconfig, renewToken);
  }
  if (!config.allowInCluster)
    throw invalidField('in_cluster', 'is not allowed: cloud.allow_in_cluster is false');
  if (!config.inPod)
    throw invalidField('in_cluster', 'is not possible: this is no pod with a service account');
  if (kubeconfig !== null) throw invalidField('kubeconfig', 'must be absent when in_cluster is true');
  if (renewToken) throw invalidField('renew_token', 'must be absent when in_cluster is true');
  return null;
}
