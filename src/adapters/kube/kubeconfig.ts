// A kubeconfig is a program in disguise: it can name commands to run, files to read and hosts to call. Here it is only
// ever parsed into a closed record; what the record has no place for is refused by name:
// docs/reference.md "Kubeconfig".
import { isIP } from 'node:net';
import { CLOUD, HTTP } from '../../limits.ts';
import type { ClusterAccess } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';
import { readYaml, YamlError, type YamlMap, type YamlValue } from '../yaml.ts';
import { certificates, isExpired, isStrong, privateKey } from './pem.ts';

type Problem = { path: string; message: string };

/** Collects every wrong field, so that one answer names them all. */
class Problems {
  private readonly rows: Problem[] = [];
  add(path: string, message: string): void {
    this.rows.push({ path: path === '' ? 'kubeconfig' : `kubeconfig.${path}`, message });
  }
  throwIfAny(): void {
    if (this.rows.length > 0) throw this.failure();
  }
  /** Reports this problem with all before it: what follows could not be read. */
  stop(path: string, message: string): never {
    this.add(path, message);
    throw this.failure();
  }
  private failure(): Failure {
    const message = this.rows.map((row) => `${row.path}: ${row.message}`).join('; ');
    return fail('invalid_spec', message, { details: this.rows });
  }
}

const DATA = 'is not accepted: put the content itself in the field';
const OTHER_LOGIN = 'is not accepted: use a token, or client-certificate-data with client-key-data';

/** Fields that do more than say where and who, and why each is refused. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['exec', 'is not accepted: it would run a command'],
  ['auth-provider', 'is not accepted: it would run a command or call another host'],
  ['certificate-authority', `${DATA} certificate-authority-data`],
  ['client-certificate', `${DATA} client-certificate-data`],
  ['client-key', `${DATA} client-key-data`],
  ['tokenFile', `${DATA} token`],
  ['token-file', `${DATA} token`],
  ['proxy-url', 'is not accepted: it would send everything through another host'],
  ['insecure-skip-tls-verify', 'must be false or absent: the server must be verified'],
  ['username', OTHER_LOGIN],
  ['password', OTHER_LOGIN],
  ['as', 'is not accepted: impersonation'],
  ['as-uid', 'is not accepted: impersonation'],
  ['as-groups', 'is not accepted: impersonation'],
  ['as-user-extra', 'is not accepted: impersonation'],
]);
/** Fields that say nothing we need: dropped. */
const DROPPED = new Set(['extensions', 'disable-compression', 'namespace']);

const CLUSTER_FIELDS = new Set(['server', 'certificate-authority-data', 'tls-server-name']);
const USER_FIELDS = new Set(['token', 'client-certificate-data', 'client-key-data']);
const CONTEXT_FIELDS = new Set(['cluster', 'user']);

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const HOST =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;

/** The bytes of strict base64, or undefined: decoding and encoding again must give the same text. */
function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return BASE64.test(text) && bytes.toString('base64') === text ? bytes : undefined;
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The YAML text of an upload: as it is, or out of one layer of strict base64. */
function plainText(upload: string, problems: Problems): string {
  if (Buffer.byteLength(upload) > HTTP.kubeconfigBytes)
    throw fail('payload_too_large', `kubeconfig: must be at most ${HTTP.kubeconfigBytes} bytes`);
  // No YAML mapping is without a colon, and base64 has none.
  const text = upload.includes(':') ? upload : utf8(fromBase64(upload.trim()) ?? new Uint8Array([0xff]));
  if (text === undefined)
    return problems.stop('', 'must be a YAML document, or one in base64 (without line breaks: base64 -w0)');
  if (text.includes('\0')) return problems.stop('', 'must not contain NUL');
  return text;
}

const isMap = (value: YamlValue | undefined): value is YamlMap => value instanceof Map;

/** The entry called `name` of a list of `{name, <key>: {...}}`, with its path. */
function entry(
  root: YamlMap,
  list: string,
  key: string,
  name: string,
  problems: Problems,
): [YamlMap, string] {
  const items = root.get(list);
  if (!Array.isArray(items)) return problems.stop(list, 'must be a list');
  const found = items.flatMap((item, index) =>
    isMap(item) && item.get('name') === name ? [{ item, index }] : [],
  );
  const [first] = found;
  if (!first) return problems.stop(list, `has no entry with the name ${JSON.stringify(name)}`);
  if (found.length > 1)
    return problems.stop(list, `has ${found.length} entries with the name ${JSON.stringify(name)}`);
  const path = `${list}[${first.index}].${key}`;
  const value = first.item.get(key);
  return isMap(value) ? [value, path] : problems.stop(path, 'must be an object');
}

function checkFields(map: YamlMap, path: string, allowed: ReadonlySet<string>, problems: Problems): void {
  for (const [key, value] of map) {
    if (allowed.has(key) || DROPPED.has(key)) continue;
    if (key === 'insecure-skip-tls-verify' && value === false) continue;
    problems.add(`${path}.${key}`, REFUSED.get(key) ?? 'is not accepted: this field is not known here');
  }
}

/** A string field; undefined when it is absent or wrong (then reported). */
function textField(map: YamlMap, path: string, key: string, problems: Problems): string | undefined {
  const value = map.get(key);
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value !== '') return value;
  problems.add(`${path}.${key}`, 'must be a string that is not empty');
  return undefined;
}

function pemField(map: YamlMap, path: string, key: string, problems: Problems): string | undefined {
  const value = textField(map, path, key, problems);
  const bytes = value === undefined ? undefined : fromBase64(value);
  const text = bytes && utf8(bytes);
  if (value !== undefined && text === undefined)
    problems.add(`${path}.${key}`, 'must be PEM in strict base64');
  return text;
}

/** The server's address without a slash at the end. What hosts it may be at is decided at every dial (addresses.ts). */
function serverOf(text: string | undefined, path: string, problems: Problems): string {
  const at = `${path}.server`;
  if (text === undefined) {
    problems.add(at, 'is required');
    return '';
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:') problems.add(at, 'must be an https:// address');
  else if (url.username !== '' || url.password !== '')
    problems.add(at, 'must not contain a user or password');
  else if (text.includes('?') || text.includes('#')) problems.add(at, 'must not contain a query or fragment');
  else return url.origin + url.pathname.replace(/\/+$/, '');
  return '';
}

/** The CA certificates alone: whatever else the PEM text holds is dropped. */
function caOf(pem: string | undefined, path: string, now: number, problems: Problems): string | null {
  if (pem === undefined) return null;
  const found = certificates(pem);
  const at = `${path}.certificate-authority-data`;
  if (!found) problems.add(at, 'must contain PEM certificates');
  else if (found.length > CLOUD.caCertificates)
    problems.add(at, `must contain at most ${CLOUD.caCertificates} certificates`);
  else if (found.every((certificate) => isExpired(certificate, now))) problems.add(at, 'has expired');
  else return found.map(String).join('');
  return null;
}

/** The certificates and the key as their own PEM text: whatever else the fields hold is dropped. */
function certificateOf(
  chain: string,
  keyPem: string,
  path: string,
  now: number,
  problems: Problems,
): ClusterAccess['credential'] {
  const found = certificates(chain) ?? [];
  const key = privateKey(keyPem);
  const [own] = found;
  if (!own) problems.add(`${path}.client-certificate-data`, 'must contain PEM certificates');
  else if (isExpired(own, now))
    problems.add(`${path}.client-certificate-data`, `has expired on ${own.validTo}`);
  if (!key) problems.add(`${path}.client-key-data`, 'must be a PEM private key without a passphrase');
  else if (!isStrong(key))
    problems.add(
      `${path}.client-key-data`,
      `must be an EC, Ed25519 or RSA key of at least ${CLOUD.rsaBits} bits`,
    );
  else if (own && !own.checkPrivateKey(key))
    problems.add(`${path}.client-key-data`, 'does not belong to the client certificate');
  const pem = key?.export({ type: 'pkcs8', format: 'pem' }) ?? '';
  return { kind: 'certificate', certificate: found.map(String).join(''), key: pem.toString() };
}

function credentialOf(
  user: YamlMap,
  path: string,
  now: number,
  problems: Problems,
): ClusterAccess['credential'] {
  const token = textField(user, path, 'token', problems);
  const certificate = pemField(user, path, 'client-certificate-data', problems);
  const key = pemField(user, path, 'client-key-data', problems);
  if (token !== undefined) {
    if (!/^[!-~]+$/.test(token) || token.length > CLOUD.tokenBytes)
      problems.add(
        `${path}.token`,
        `must be at most ${CLOUD.tokenBytes} printable ASCII characters without spaces`,
      );
    if (certificate !== undefined || key !== undefined)
      problems.add(path, 'must have either a token or a client certificate, not both');
    return { kind: 'token', token };
  }
  if (certificate !== undefined && key !== undefined)
    return certificateOf(certificate, key, path, now, problems);
  if (!user.has('token') && !(user.has('client-certificate-data') && user.has('client-key-data')))
    problems.add(path, 'must have a token, or both client-certificate-data and client-key-data');
  return { kind: 'token', token: '' };
}

function serverNameOf(cluster: YamlMap, path: string, problems: Problems): string | null {
  const name = textField(cluster, path, 'tls-server-name', problems) ?? null;
  if (name !== null && !HOST.test(name) && isIP(name) === 0)
    problems.add(`${path}.tls-server-name`, 'must be a host name');
  return name;
}

function rootOf(text: string, problems: Problems): YamlMap {
  let root: YamlValue;
  try {
    root = readYaml(text, CLOUD.yamlDepth);
  } catch (error) {
    if (error instanceof YamlError) return problems.stop('', error.message);
    throw error;
  }
  if (!isMap(root)) return problems.stop('', 'must be a YAML mapping');
  if (root.get('apiVersion') !== 'v1') problems.add('apiVersion', 'must be v1');
  if (root.get('kind') !== 'Config') problems.add('kind', 'must be Config');
  return root;
}

/**
 * Reduces an uploaded kubeconfig, raw or in strict base64, to where the server is and who we are there: the cluster and
 * user of the current context, and nothing else of it. Pure: opens no file, runs no command, makes no connection.
 * `now` is epoch milliseconds (for expired certificates). Fails `invalid_spec` naming every wrong field, or
 * `payload_too_large`: docs/reference.md "Kubeconfig".
 */
export function parseKubeconfig(upload: string, now: number): ClusterAccess {
  const problems = new Problems();
  const root = rootOf(plainText(upload, problems), problems);
  const current = root.get('current-context');
  if (typeof current !== 'string' || current === '') return problems.stop('current-context', 'is required');
  const [context, contextPath] = entry(root, 'contexts', 'context', current, problems);
  checkFields(context, contextPath, CONTEXT_FIELDS, problems);
  const names = ['cluster', 'user'].map((key) => {
    const name = context.get(key);
    return typeof name === 'string' ? name : problems.stop(`${contextPath}.${key}`, 'must be a string');
  });
  const [cluster, clusterPath] = entry(root, 'clusters', 'cluster', names[0] ?? '', problems);
  const [user, userPath] = entry(root, 'users', 'user', names[1] ?? '', problems);
  checkFields(cluster, clusterPath, CLUSTER_FIELDS, problems);
  checkFields(user, userPath, USER_FIELDS, problems);
  const access: ClusterAccess = {
    server: serverOf(textField(cluster, clusterPath, 'server', problems), clusterPath, problems),
    ca: caOf(
      pemField(cluster, clusterPath, 'certificate-authority-data', problems),
      clusterPath,
      now,
      problems,
    ),
    tlsServerName: serverNameOf(cluster, clusterPath, problems),
    credential: credentialOf(user, userPath, now, problems),
  };
  problems.throwIfAny();
  return access;
}
