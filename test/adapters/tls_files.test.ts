// The certificate and the key of the cloud part's listeners: which files are refused before a listener opens.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readTlsFiles } from '../../src/adapters/tls_files.ts';
import { SettingsError } from '../../src/settings/config.ts';
import { tempDir } from '../kit/actors.ts';
import { certificate } from '../kit/certificates.ts';

const own = certificate({ commonName: 'localhost' });
const other = certificate({ commonName: 'other' });

/** What the reading gives for files with these contents. */
function read(cert: string, key: string) {
  const folder = tempDir();
  const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  writeFileSync(paths.cert, cert);
  writeFileSync(paths.key, key);
  return readTlsFiles(paths);
}

it('a certificate with its key is read', () => {
  expect(read(own.cert, own.key)).toEqual({ cert: own.cert, key: own.key });
});

it.each([
  ['an empty certificate', '', own.key, /^cloud\.tls_cert = "\S+cert\.pem" is empty$/],
  ['an empty key', own.cert, '', /^cloud\.tls_key = "\S+key\.pem" is empty$/],
  ['a certificate of white space', '\n', own.key, /do not work: /],
  ['a key of white space', own.cert, '\n', /do not work: /],
  ['a file without a certificate', own.key, own.key, /do not work: /],
  ['a certificate with another key', own.cert, other.key, /do not work: /],
])('%s is refused', (_, cert, key, message) => {
  expect(() => read(cert, key)).toThrow(SettingsError);
  expect(() => read(cert, key)).toThrow(message);
});
