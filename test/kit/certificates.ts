// X.509 certificates for tests, made without any program: the minimal DER for TLS on loopback.
import {
  createHash,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { isIP } from 'node:net';

export interface Identity {
  cert: string;
  key: string;
  keyObject: KeyObject;
}

const der = (tag: number, ...content: Uint8Array[]): Buffer => {
  const body = Buffer.concat(content);
  const size = Buffer.from(
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 255],
  );
  return Buffer.concat([Buffer.from([tag]), size, body]);
};
const sequence = (...content: Uint8Array[]): Buffer => der(0x30, ...content);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const text = (value: string): Buffer => der(0x0c, Buffer.from(value));
const time = (at: number): Buffer =>
  der(
    0x18,
    Buffer.from(
      `${new Date(at)
        .toISOString()
        .replace(/[-:T]|\.\d+/g, '')
        .slice(0, 14)}Z`,
    ),
  );
const attribute = (type: string, value: string): Buffer => der(0x31, sequence(oid(type), text(value)));
const subject = (commonName: string, organization?: string): Buffer =>
  sequence(...(organization ? [attribute('55040a', organization)] : []), attribute('550403', commonName));
const extension = (type: string, value: Uint8Array): Buffer => sequence(oid(type), der(0x04, value));

const ipBytes = (ip: string): Buffer =>
  isIP(ip) === 4 ? Buffer.from(ip.split('.').map(Number)) : Buffer.from([...new Uint8Array(15), 1]);

export interface CertificateOptions {
  commonName: string;
  organization?: string;
  /** Host names and IP addresses (only ::1 for IPv6). */
  names?: string[];
  issuer?: Identity & { commonName: string };
  from?: number;
  until?: number;
  keys?: { publicKey: KeyObject; privateKey: KeyObject };
}

/** A certificate for a new P-256 key (or `keys`), signed by `issuer`, or by itself as a CA. */
export function certificate(options: CertificateOptions): Identity & { commonName: string } {
  const { publicKey, privateKey } = options.keys ?? generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaSha256 = sequence(oid('2a8648ce3d040302'));
  const info = publicKey.export({ type: 'spki', format: 'der' });
  const names = (options.names ?? []).map((name) =>
    isIP(name) ? der(0x87, ipBytes(name)) : der(0x82, Buffer.from(name)),
  );
  const extensions = [
    ...(names.length > 0 ? [extension('551d11', sequence(...names))] : []),
    ...(options.issuer ? [] : [extension('551d13', sequence(der(0x01, Buffer.from([255]))))]),
    extension('551d0e', der(0x04, createHash('sha1').update(info).digest())),
  ];
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaSha256,
    subject(options.issuer?.commonName ?? options.commonName),
    sequence(time(options.from ?? Date.UTC(2020, 0, 1)), time(options.until ?? Date.UTC(2120, 0, 1))),
    subject(options.commonName, options.organization),
    info,
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, options.issuer?.keyObject ?? privateKey);
  const whole = sequence(body, ecdsaSha256, der(0x03, Buffer.from([0]), signature));
  return {
    commonName: options.commonName,
    cert: new X509Certificate(whole).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    keyObject: privateKey,
  };
}
