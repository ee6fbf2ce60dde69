// The account that a cluster has for Berth: its rights, and the renewal of its token.
// docs/reference.md "Rights in a cluster", "Renewal of tokens".
import { CLOUD } from '../settings/cloud_limits.ts';

/** A ServiceAccount of a cluster. */
export interface ServiceAccountName {
  namespace: string;
  name: string;
}

/** The ServiceAccount whose token is renewed by itself, and when the current one was made. */
export interface TokenRenewal extends ServiceAccountName {
  uid: string;
  issuedAt: number;
}

/** A right in one namespace, or (null) in all, and whether the account of a cluster has it. */
export interface ReviewedRight {
  namespace: string | null;
  verb: string;
  /** As in `deployments.apps` or `pods/portforward`. */
  resource: string;
  isAllowed: boolean;
  /** Things go without it. */
  isOptional: boolean;
  /** What users lose without it. */
  without: string;
}

interface Credential {
  renewal?: TokenRenewal | null;
  credentialEndsAt?: number | null;
}

/** When the token is to be renewed (epoch milliseconds); null: it is not renewed. */
export function renewalTime({ renewal, credentialEndsAt }: Credential): number | null {
  if (!renewal || !credentialEndsAt) return null;
  const { maxAgeMs, renewAt } = CLOUD.tokenRenewal;
  return renewal.issuedAt + Math.min((credentialEndsAt - renewal.issuedAt) * renewAt, maxAgeMs);
}

/**
 * From when on users are warned that the credentials end (epoch milliseconds); null: the end is not known.
 */
export function expiryWarningTime({ renewal, credentialEndsAt }: Credential): number | null {
  if (!credentialEndsAt) return null;
  // A token that is renewed is never far from its end: only a renewal that has failed for a while is news.
  if (renewal) return renewal.issuedAt + (credentialEndsAt - renewal.issuedAt) * CLOUD.tokenRenewal.warnAt;
  return credentialEndsAt - CLOUD.expiryWarningMs;
}
