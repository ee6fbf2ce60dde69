// PEM text from strangers: certificates and private keys, read with node's own parser.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { CLOUD } from '../../settings/limits.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Every certificate in `pem`; undefined when there is none or one cannot be read. */
export function parseCertificates(pem: string): X509Certificate[] | undefined {
  const blocks = pem.match(CERTIFICATE) ?? [];
  try {
    return blocks.length === 0 ? undefined : blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

/** Whether it has expired at `now` (epoch milliseconds). */
export const isCertificateExpired = (certificate: X509Certificate, now: number): boolean =>
  Date.parse(certificate.validTo) < now;

/** The private key in `pem`; undefined when there is none or it needs a passphrase. */
export function parsePrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** EC and Ed25519 keys are; an RSA key must be long enough. */
export function isStrongKey(key: KeyObject): boolean {
  if (key.asymmetricKeyType === 'rsa')
    return (key.asymmetricKeyDetails?.modulusLength ?? 0) >= CLOUD.minRsaBits;
  return key.asymmetricKeyType === 'ec' || key.asymmetricKeyType === 'ed25519';
}
