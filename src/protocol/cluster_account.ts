// Berth's account in a cluster: its rights, and the renewal of its token.
// docs/reference.md "Rights in a cluster", "Cluster token renewal".
import { CLOUD } from '../settings/cloud_limits.ts';

/** A ServiceAccount of a cluster. */
export interface ServiceAccountName {
  namespace: string;
  name: string;
}

/** The ServiceAccount whose token is renewed automatically. */
export interface TokenRenewal extends ServiceAccountName {
  uid: string;
  /** When the current token was issued, by the clock of the cluster. */
  issuedAt: number;
  /** When Berth requested it, by the own clock; absent: it came with the registration. */
  renewedAt?: number;
}

/** A right in one namespace, or (null) in all, and whether the cluster's account has it. */
export interface ReviewedRight {
  namespace: string | null;
  verb: string;
  /** Such as `deployments.apps` or `pods/portforward`. */
  resource: string;
  isAllowed: boolean;
  /** Berth works without it. */
  isOptional: boolean;
  /** What users lose without it. */
  without: string;
}

interface Credential {
  renewal?: TokenRenewal | null;
  credentialEndsAt?: number | null;
}

/**
 * When the life of a token began, by the own clock as far as it is known: with the time of a cluster whose
 * clock is behind, each new token would be due at once.
 */
const beginOf = ({ issuedAt, renewedAt = issuedAt }: TokenRenewal): number => renewedAt;

/** How long after the beginning of its life a token is renewed, in milliseconds; null: it is not. */
export function renewalPauseMs({ renewal, credentialEndsAt }: Credential): number | null {
  if (!renewal || !credentialEndsAt) return null;
  const { maxAgeMs, minPauseMs, renewAt } = CLOUD.tokenRenewal;
  const share = Math.min((credentialEndsAt - renewal.issuedAt) * renewAt, maxAgeMs);
  return renewal.renewedAt === undefined ? share : Math.max(share, minPauseMs);
}

/** When to renew the token (epoch milliseconds); null: it is not renewed. */
export function renewalTime(credential: Credential): number | null {
  const pauseMs = renewalPauseMs(credential);
  return pauseMs === null || !credential.renewal ? null : beginOf(credential.renewal) + pauseMs;
}

/**
 * From when on users are warned that the credentials expire (epoch milliseconds); null: the expiry is
 * unknown.
 */
export function expiryWarningTime({ renewal, credentialEndsAt }: Credential): number | null {
  if (!credentialEndsAt) return null;
  // A renewed token is always close to its expiry. Only a renewal that has been failing for a while is worth
  // a warning.
  if (renewal) return beginOf(renewal) + (credentialEndsAt - renewal.issuedAt) * CLOUD.tokenRenewal.warnAt;
  return credentialEndsAt - CLOUD.expiryWarningMs;
}
