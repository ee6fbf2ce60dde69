// How the user of a context logs in, and where its cluster is, with all referenced files read. Logins that
// Berth cannot use are refused here, with an alternative. docs/reference.md "Clusters on the command line".
import { resolve } from 'node:path';
import { credentialEnd } from '../kube/credential_end.ts';
import { type ExecPlugin, execPluginOf } from './exec_plugin.ts';
import {
  type Fields,
  type KubeContext,
  type KubeconfigEntry,
  KubeconfigError,
  mappingOf,
  readUserFile,
} from './kubeconfig_files.ts';

/** The fields of a user that can be stored: a token, or a certificate with its key in base64. */
export type StoredUser = Readonly<Partial<Record<(typeof STORED_FIELDS)[number], string>>>;
const STORED_FIELDS = ['token', 'client-certificate-data', 'client-key-data'] as const;

export type UserLogin =
  /** `file`: the file with the token, which others may replace. */
  | { kind: 'stored'; user: StoredUser; file: string | null }
  | { kind: 'exec'; plugin: ExecPlugin }
  /** The token that an `auth-provider` has left in the file. It expires soon. */
  | { kind: 'provider'; user: StoredUser };

interface Refusal {
  field: string;
  message: string;
  hint: string;
}

const IMPERSONATION: Omit<Refusal, 'field'> = {
  message: 'acts as another user (impersonation)',
  hint: 'Berth does not support it: choose a context of the account itself, or register a token of the other user.',
};

const REFUSED_USER: readonly Refusal[] = [
  ...['as', 'as-uid', 'as-groups', 'as-user-extra'].map((field) => ({ field, ...IMPERSONATION })),
  ...['username', 'password'].map((field) => ({
    field,
    message: 'logs in with a user name and password, which Kubernetes has not known since 1.19',
    hint: 'Use a token or a certificate.',
  })),
];

const PROXY: Refusal = {
  field: 'proxy-url',
  message: 'is reached through a proxy, and the daemon connects to clusters directly',
  hint: 'Choose a context whose server can be reached without it, for example over a VPN.',
};

const UNVERIFIED =
  'Name its certificate authority: --certificate-authority FILE. ' +
  "`kubectl get configmap kube-root-ca.crt -o jsonpath='{.data.ca\\.crt}'` prints it on most clusters.";

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

function refuse(what: string, { fields }: KubeconfigEntry, refusals: readonly Refusal[]): void {
  const found = refusals.find(({ field }) => isSet(fields[field]));
  if (found) throw new KubeconfigError(`${what} ${found.message} (${found.field})`, found.hint);
}

/** A string field of an entry; undefined if absent. */
function textOf({ name, fields }: KubeconfigEntry, field: string): string | undefined {
  const value = fields[field];
  if (!isSet(value)) return undefined;
  if (typeof value === 'string') return value;
  throw new KubeconfigError(`${field} of ${name} must be a text`, 'Put it in quotes.');
}

/** Content in base64: from `<field>-data`, or from the file that `<field>` names. */
function dataOf(entry: KubeconfigEntry, field: string): string | undefined {
  const data = textOf(entry, `${field}-data`);
  if (data !== undefined) return data;
  const path = textOf(entry, field);
  return path === undefined
    ? undefined
    : Buffer.from(readUserFile(resolve(entry.folder, path))).toString('base64');
}

/**
 * The fields of the cluster for a self-contained kubeconfig. `authority`: a file that replaces its CA; `-`:
 * the text `stdin`.
 */
export function clusterFields(
  { name, cluster }: KubeContext,
  authority: string | undefined,
  stdin = '',
): Fields {
  const what = `the cluster of the context ${name}`;
  refuse(what, cluster, [PROXY]);
  if (cluster.fields['insecure-skip-tls-verify'] === true && authority === undefined)
    throw new KubeconfigError(`${what} is not verified (insecure-skip-tls-verify)`, UNVERIFIED);
  const server = textOf(cluster, 'server');
  if (server === undefined) throw new KubeconfigError(`${what} has no server`);
  if (!/^https:\/\//i.test(server))
    throw new KubeconfigError(
      `the server ${server} is no https:// address`,
      'Berth sends no login without TLS.',
    );
  const ca =
    authority === undefined
      ? dataOf(cluster, 'certificate-authority')
      : Buffer.from(authority === '-' ? stdin : readUserFile(resolve(authority))).toString('base64');
  const tlsName = textOf(cluster, 'tls-server-name');
  return {
    server,
    ...(ca === undefined ? {} : { 'certificate-authority-data': ca }),
    ...(tlsName === undefined ? {} : { 'tls-server-name': tlsName }),
  };
}

interface Provider {
  tokenField: string;
  /** The expiry of the token in epoch milliseconds, as the provider writes it. */
  endOf: (config: Fields) => number;
  hint: string;
}

const PROVIDERS: Readonly<Record<string, Provider>> = {
  oidc: {
    tokenField: 'id-token',
    endOf: (config) => credentialEnd({ kind: 'token', token: String(config['id-token']) }) ?? Number.NaN,
    hint: 'Run kubectl once with this context to renew the login, then repeat the command.',
  },
  gcp: {
    tokenField: 'access-token',
    endOf: (config) => Date.parse(String(config['expiry'])),
    hint: '`gcloud container clusters get-credentials` writes an entry that kubectl and Berth can use.',
  },
  azure: {
    tokenField: 'access-token',
    endOf: (config) => Number(config['expires-on']) * 1_000,
    hint: '`kubelogin convert-kubeconfig` writes an entry that kubectl and Berth can use.',
  },
};

/** kubectl renews such a login with programs and hosts of its own. Here, the token it has left is used. */
function providerLogin(context: KubeContext, value: Fields, now: number): UserLogin {
  const name = String(value['name']);
  const provider = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
  const what = `the auth-provider ${name} of the context ${context.name}`;
  if (!provider)
    throw new KubeconfigError(`${what} is not known`, 'Use an exec login, a token or a certificate.');
  const config = mappingOf(value['config']) ?? {};
  const token = config[provider.tokenField];
  if (typeof token !== 'string' || !(provider.endOf(config) > now))
    throw new KubeconfigError(`${what} has no token that is still valid`, provider.hint);
  return { kind: 'provider', user: { token } };
}

function storedUser(user: KubeconfigEntry): { user: StoredUser; file: string | null } {
  const path = textOf(user, 'tokenFile');
  const file = path === undefined ? null : resolve(user.folder, path);
  // As in kubectl: a file takes precedence over a token beside it.
  const token = file === null ? textOf(user, 'token') : readUserFile(file).trim();
  const certificate = dataOf(user, 'client-certificate');
  const key = dataOf(user, 'client-key');
  const stored: StoredUser = {
    ...(token === undefined ? {} : { token }),
    ...(certificate === undefined ? {} : { 'client-certificate-data': certificate }),
    ...(key === undefined ? {} : { 'client-key-data': key }),
  };
  return { user: stored, file: token === undefined ? null : file };
}

/** How the user of the context logs in. `now`: epoch milliseconds. Throws a KubeconfigError. */
export function loginOf(context: KubeContext, now: number): UserLogin {
  const { user, name } = context;
  const what = `the user of the context ${name}`;
  refuse(what, user, REFUSED_USER);
  const stored = storedUser(user);
  const hasCertificate =
    isSet(stored.user['client-certificate-data']) && isSet(stored.user['client-key-data']);
  // As in kubectl, a program is only run without them.
  if (isSet(stored.user.token) || hasCertificate) return { kind: 'stored', ...stored };
  const exec = mappingOf(user.fields['exec']);
  if (exec) return { kind: 'exec', plugin: execPluginOf(exec, user) };
  const provider = mappingOf(user.fields['auth-provider']);
  if (provider) return providerLogin(context, provider, now);
  throw new KubeconfigError(
    `${what} has no login`,
    'It needs a token, a certificate with its key, or an exec login.',
  );
}

/** A self-contained kubeconfig with only this context, as the daemon accepts it. */
export const standaloneKubeconfig = (
  { name, namespace }: KubeContext,
  cluster: Fields,
  user: StoredUser,
): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    contexts: [
      { name, context: { cluster: name, user: name, ...(namespace === null ? {} : { namespace }) } },
    ],
    clusters: [{ name, cluster }],
    users: [{ name, user }],
  });
