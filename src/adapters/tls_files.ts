// The certificate and the key of the cloud part's own listeners: docs/reference.md "Settings".
import { createSecureContext } from 'node:tls';
import { SettingsError } from '../settings/config.ts';
import { readTextFile } from '../settings/state_files.ts';

/** Their paths, as `cloud.tls_cert` and `cloud.tls_key` have them. */
export interface TlsFiles {
  cert: string;
  key: string;
}

function readSetting(name: string, path: string): string {
  let text: string;
  try {
    text = readTextFile(path);
  } catch (error) {
    throw new SettingsError(`${name} = "${path}" cannot be read: ${(error as Error).message}`);
  }
  // Node takes an empty text for a certificate or key that is not given, and then every handshake fails.
  if (text === '') throw new SettingsError(`${name} = "${path}" is empty`);
  return text;
}

/** Their contents. Throws a SettingsError if one cannot be read or is empty, or if they are no pair. */
export function readTlsFiles(paths: TlsFiles): { cert: string; key: string } {
  const pair = {
    cert: readSetting('cloud.tls_cert', paths.cert),
    key: readSetting('cloud.tls_key', paths.key),
  };
  try {
    createSecureContext(pair);
  } catch (error) {
    const { message } = error as Error;
    throw new SettingsError(`cloud.tls_cert = "${paths.cert}" and cloud.tls_key do not work: ${message}`);
  }
  return pair;
}
