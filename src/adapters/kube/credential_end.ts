// When the credentials of an account expire, as far as they say.
import type { ClusterAccess } from '../../protocol/clusters.ts';
import { isTime } from '../../protocol/timestamps.ts';
import { parseCertificates } from './pem.ts';
import { wire } from './wire_types.ts';

/**
 * The expiry of a JSON web token (epoch milliseconds); null: it is not one, or does not expire. Some issuers
 * write the largest number there is for that.
 */
function tokenEnd(token: string): number | null {
  const [, payload = ''] = token.split('.');
  try {
    const seconds = wire<{ exp: number }>(JSON.parse(Buffer.from(payload, 'base64url').toString()))?.exp;
    return typeof seconds === 'number' && isTime(seconds * 1_000) ? Math.round(seconds * 1_000) : null;
  } catch {
    return null;
  }
}

/** When the client certificate or the token expires (epoch milliseconds); null: unknown. */
export function credentialEnd(credential: ClusterAccess['credential']): number | null {
  if (credential.kind === 'token') return tokenEnd(credential.token);
  if (credential.kind === 'pod') return null;
  const [own] = parseCertificates(credential.certificate) ?? [];
  return own ? Date.parse(own.validTo) : null;
}
