// A kubeconfig is a program in disguise: it can name commands to run, files to read and hosts to call. Here
// it is parsed into a closed record. Every field without a place in that record is refused by name.
// docs/reference.md "Kubeconfig".
import { isIP } from 'node:net';
import type { ClusterAccess } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import { isNamespace } from '../../protocol/names.ts';
import type { Failure } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { HTTP } from '../../settings/limits.ts';
import { parseStrictYaml, YamlError, type YamlMap, type YamlValue } from '../yaml.ts';
import { isCertificateExpired, isStrongKey, parseCertificates, parsePrivateKey } from './pem.ts';
import { serverAddress } from './server_address.ts';

type FieldProblem = { path: string; message: string };

/** Collects all wrong fields, so that a single answer names them all. */
class FieldProblems {
  private readonly rows: FieldProblem[] = [];
  add(path: string, message: string): void {
    this.rows.push({ path: path === '' ? 'kubeconfig' : `kubeconfig.${path}`, message });
  }
  throwIfAny(): void {
    if (this.rows.length > 0) throw this.failure();
  }
  /** Reports this problem and all before it, because the rest cannot be read. */
  throwWith(path: string, message: string): never {
    this.add(path, message);
    throw this.failure();
  }
  private failure(): Failure {
    const message = this.rows.map((row) => `${row.path}: ${row.message}`).join('; ');
    return fail('invalid_spec', message, { details: this.rows });
  }
}

const USE_DATA_FIELD = 'is not accepted: put the content itself in the field';
const OTHER_LOGIN = 'is not accepted: use a token, or client-certificate-data with client-key-data';

/** Fields that do more than name the server and the account, and why each is refused. */
const REFUSED_FIELDS: ReadonlyMap<string, string> = new Map([
  ['exec', 'is not accepted: it would run a command'],
  ['auth-provider', 'is not accepted: it would run a command or call another host'],
  ['certificate-authority', `${USE_DATA_FIELD} certificate-authority-data`],
  ['client-certificate', `${USE_DATA_FIELD} client-certificate-data`],
  ['client-key', `${USE_DATA_FIELD} client-key-data`],
  ['tokenFile', `${USE_DATA_FIELD} token`],
  ['token-file', `${USE_DATA_FIELD} token`],
  ['proxy-url', 'is not accepted: it would send everything through another host'],
  ['insecure-skip-tls-verify', 'must be false or absent: the server must be verified'],
  ['username', OTHER_LOGIN],
  ['password', OTHER_LOGIN],
  ['as', 'is not accepted: impersonation'],
  ['as-uid', 'is not accepted: impersonation'],
  ['as-groups', 'is not accepted: impersonation'],
  ['as-user-extra', 'is not accepted: impersonation'],
]);
/** Harmless fields that are not needed, and dropped. */
const IGNORED_FIELDS = new Set(['extensions', 'disable-compression']);

const ROOT_FIELDS = new Set([
  ...['apiVersion', 'kind', 'preferences', 'current-context'],
  ...['contexts', 'clusters', 'users'],
]);
const CLUSTER_FIELDS = new Set(['server', 'certificate-authority-data', 'tls-server-name']);
const USER_FIELDS = new Set(['token', 'client-certificate-data', 'client-key-data']);
const CONTEXT_FIELDS = new Set(['cluster', 'user', 'namespace']);

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const BASE64URL = /^[A-Za-z0-9_-]+={0,2}$/;
const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;

/**
 * The bytes of base64, with or without line breaks. undefined unless encoding them again gives the same text.
 */
function fromBase64(wrapped: string): Buffer | undefined {
  const text = wrapped.replace(/[\r\n\t ]+/g, '');
  const bytes = Buffer.from(text, 'base64');
  return BASE64.test(text) && bytes.toString('base64') === text ? bytes : undefined;
}

/** The bytes of base64url, with or without padding. */
function fromBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return BASE64URL.test(text) && bytes.toString('base64url') === text.replace(/=+$/, '') ? bytes : undefined;
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The YAML text of an upload, which may be raw or in one layer of base64 or base64url. */
function decodeUpload(upload: string, problems: FieldProblems): string {
  if (Buffer.byteLength(upload) > HTTP.maxKubeconfigBytes)
    throw fail('payload_too_large', `kubeconfig: must be at most ${HTTP.maxKubeconfigBytes} bytes`);
  // Every YAML mapping has a colon, and base64 has none.
  const bytes = upload.includes(':') ? undefined : (fromBase64(upload) ?? fromBase64url(upload.trim()));
  const text = upload.includes(':') ? upload : bytes && utf8(bytes);
  if (text === undefined) return problems.throwWith('', 'must be a YAML document, or one in base64');
  if (text.includes('\0')) return problems.throwWith('', 'must not contain NUL');
  return text;
}

const isMap = (value: YamlValue | undefined): value is YamlMap => value instanceof Map;

/** The entry called `name` of a list of `{name, <key>: {...}}`, with its path. */
function namedEntry(
  root: YamlMap,
  list: string,
  key: string,
  name: string,
  problems: FieldProblems,
): [YamlMap, string] {
  const items = root.get(list);
  if (!Array.isArray(items)) return problems.throwWith(list, 'must be a list');
  const found = items.flatMap((item, index) =>
    isMap(item) && item.get('name') === name ? [{ item, index }] : [],
  );
  const [first] = found;
  if (!first) return problems.throwWith(list, `has no entry with the name ${JSON.stringify(name)}`);
  if (found.length > 1)
    return problems.throwWith(list, `has ${found.length} entries with the name ${JSON.stringify(name)}`);
  const at = `${list}[${first.index}]`;
  checkFields(first.item, at, new Set(['name', key]), problems);
  const path = `${at}.${key}`;
  const value = first.item.get(key);
  return isMap(value) ? [value, path] : problems.throwWith(path, 'must be an object');
}

function checkFields(
  map: YamlMap,
  path: string,
  allowed: ReadonlySet<string>,
  problems: FieldProblems,
): void {
  for (const [key, value] of map) {
    if (allowed.has(key) || IGNORED_FIELDS.has(key)) continue;
    if (key === 'insecure-skip-tls-verify' && value === false) continue;
    problems.add(
      path === '' ? key : `${path}.${key}`,
      REFUSED_FIELDS.get(key) ?? 'is not accepted: this field is not known here',
    );
  }
}

/** A string field; undefined when it is absent or wrong (then reported). */
function textField(map: YamlMap, path: string, key: string, problems: FieldProblems): string | undefined {
  const value = map.get(key);
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value !== '') return value;
  problems.add(`${path}.${key}`, 'must be a string that is not empty');
  return undefined;
}

function pemField(map: YamlMap, path: string, key: string, problems: FieldProblems): string | undefined {
  const value = textField(map, path, key, problems);
  const bytes = value === undefined ? undefined : fromBase64(value);
  const text = bytes && utf8(bytes);
  if (value !== undefined && text === undefined) problems.add(`${path}.${key}`, 'must be PEM in base64');
  return text;
}

/** The server's address. Its host is checked at every dial (address_rule.ts). */
function serverOf(text: string | undefined, path: string, problems: FieldProblems): string {
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
  else return serverAddress(text);
  return '';
}

/** The CA certificates, without anything else in the PEM text. */
function parseCa(pem: string | undefined, path: string, now: number, problems: FieldProblems): string | null {
  if (pem === undefined) return null;
  const found = parseCertificates(pem);
  const at = `${path}.certificate-authority-data`;
  if (!found) problems.add(at, 'must contain PEM certificates');
  else if (found.length > CLOUD.maxCaCertificates)
    problems.add(at, `must contain at most ${CLOUD.maxCaCertificates} certificates`);
  else if (found.every((certificate) => isCertificateExpired(certificate, now)))
    problems.add(at, 'has expired');
  else return found.map(String).join('');
  return null;
}

/** The certificates and the key, without anything else in the PEM texts. */
function certificateOf(
  chain: string,
  keyPem: string,
  path: string,
  now: number,
  problems: FieldProblems,
): ClusterAccess['credential'] {
  const found = parseCertificates(chain) ?? [];
  const key = parsePrivateKey(keyPem);
  const [own] = found;
  if (!own) problems.add(`${path}.client-certificate-data`, 'must contain PEM certificates');
  else if (isCertificateExpired(own, now))
    problems.add(`${path}.client-certificate-data`, `has expired on ${own.validTo}`);
  if (!key) problems.add(`${path}.client-key-data`, 'must be a PEM private key without a passphrase');
  else if (!isStrongKey(key))
    problems.add(
      `${path}.client-key-data`,
      `must be an EC, Ed25519 or RSA key of at least ${CLOUD.minRsaBits} bits`,
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
  problems: FieldProblems,
): ClusterAccess['credential'] {
  const token = textField(user, path, 'token', problems);
  const certificate = pemField(user, path, 'client-certificate-data', problems);
  const key = pemField(user, path, 'client-key-data', problems);
  if (token !== undefined) {
    if (!/^[!-~]+$/.test(token) || token.length > CLOUD.maxTokenBytes)
      problems.add(
        `${path}.token`,
        `must be at most ${CLOUD.maxTokenBytes} printable ASCII characters without spaces`,
      );
  }
  // If an API server is sent both, it checks the certificate first.
  if (certificate !== undefined && key !== undefined)
    return certificateOf(certificate, key, path, now, problems);
  if (token !== undefined) return { kind: 'token', token };
  if (!user.has('token') && !(user.has('client-certificate-data') && user.has('client-key-data')))
    problems.add(path, 'must have a token, or both client-certificate-data and client-key-data');
  return { kind: 'token', token: '' };
}

function serverNameOf(cluster: YamlMap, path: string, problems: FieldProblems): string | null {
  const name = textField(cluster, path, 'tls-server-name', problems) ?? null;
  if (name !== null && !HOST_NAME.test(name) && isIP(name) === 0)
    problems.add(`${path}.tls-server-name`, 'must be a host name');
  return name;
}

/** The namespace of the context; null: none, or an invalid one. It never makes the kubeconfig invalid. */
function namespaceOf(context: YamlMap): string | null {
  const name = context.get('namespace');
  return typeof name === 'string' && isNamespace(name) ? name : null;
}

function rootOf(text: string, problems: FieldProblems): YamlMap {
  let root: YamlValue;
  try {
    root = parseStrictYaml(text, CLOUD.maxYamlDepth);
  } catch (error) {
    if (error instanceof YamlError) return problems.throwWith('', error.message);
    throw error;
  }
  if (!isMap(root)) return problems.throwWith('', 'must be a YAML mapping');
  if ((root.get('apiVersion') ?? 'v1') !== 'v1') problems.add('apiVersion', 'must be v1');
  if ((root.get('kind') ?? 'Config') !== 'Config') problems.add('kind', 'must be Config');
  checkFields(root, '', ROOT_FIELDS, problems);
  return root;
}

/**
 * Reduces an uploaded kubeconfig, raw or in base64, to the cluster and user of its current context.
 * Pure: opens no file, runs no command, makes no connection. `now` is epoch milliseconds, for expired
 * certificates. Fails invalid_spec, which names every wrong field, or payload_too_large.
 * docs/reference.md "Kubeconfig".
 */
export function parseKubeconfig(upload: string, now: number): ClusterAccess {
  const problems = new FieldProblems();
  const root = rootOf(decodeUpload(upload, problems), problems);
  const current = root.get('current-context');
  if (typeof current !== 'string' || current === '')
    return problems.throwWith('current-context', 'is required');
  const [context, contextPath] = namedEntry(root, 'contexts', 'context', current, problems);
  checkFields(context, contextPath, CONTEXT_FIELDS, problems);
  const nameOf = (key: string): string => {
    const name = context.get(key);
    return typeof name === 'string' ? name : problems.throwWith(`${contextPath}.${key}`, 'must be a string');
  };
  const clusterName = nameOf('cluster');
  const userName = nameOf('user');
  const [cluster, clusterPath] = namedEntry(root, 'clusters', 'cluster', clusterName, problems);
  const [user, userPath] = namedEntry(root, 'users', 'user', userName, problems);
  checkFields(cluster, clusterPath, CLUSTER_FIELDS, problems);
  checkFields(user, userPath, USER_FIELDS, problems);
  const access: ClusterAccess = {
    server: serverOf(textField(cluster, clusterPath, 'server', problems), clusterPath, problems),
    ca: parseCa(
      pemField(cluster, clusterPath, 'certificate-authority-data', problems),
      clusterPath,
      now,
      problems,
    ),
    tlsServerName: serverNameOf(cluster, clusterPath, problems),
    namespace: namespaceOf(context),
    credential: credentialOf(user, userPath, now, problems),
  };
  problems.throwIfAny();
  return access;
}
