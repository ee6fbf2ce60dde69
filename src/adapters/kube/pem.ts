// Untrusted PEM text: certificates and private keys, read with Node's own parser.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { CLOUD } from '../../settings/cloud_limits.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** All certificates in `pem`; undefined when there is none, or one cannot be parsed. */
export function parseCertificates(pem: string): X509Certificate[] | undefined {
  const blocks = pem.match(CERTIFICATE) ?? [];
  try {
    return blocks.length === 0 ? undefined : blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

/** Whether the certificate has expired at `now` (epoch milliseconds). */
export const isCertificateExpired = (certificate: X509Certificate, now: number): boolean =>
  Date.parse(certificate.validTo) < now;

/** The private key in `pem`; undefined when there is none, or it needs a passphrase. */
export function parsePrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** Whether TLS may use the key: EC, Ed25519, or RSA of at least CLOUD.minRsaBits. */
export function isStrongKey(key: KeyObject): boolean {
  if (key.asymmetricKeyType === 'rsa')
    return (key.asymmetricKeyDetails?.modulusLength ?? 0) >= CLOUD.minRsaBits;
  return key.asymmetricKeyType === 'ec' || key.asymmetricKeyType === 'ed25519';
}
