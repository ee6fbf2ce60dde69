// Berth's account in a cluster when the user's own login cannot be stored: a ServiceAccount with the rights
// in cluster_rights.ts, whose tokens expire and are renewed.
import { createHash } from 'node:crypto';
import type { ServiceAccountName, TokenRenewal } from '../../protocol/cluster_account.ts';
import { isTime } from '../../protocol/timestamps.ts';
import { policyRules } from './cluster_rights.ts';
import { KubeError, WireError } from './kube_errors.ts';
import type { KubeHttp } from './kube_http.ts';
import { DNS_SUBDOMAIN, FIELD_MANAGER, parseJson } from './parse_objects.ts';
import { arrayOrEmpty, boundedText } from './untrusted_values.ts';
import { wire } from './wire_types.ts';

/** An object as in a manifest. */
export interface ManifestObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels: Record<string, string>;
    annotations?: Record<string, string>;
  };
  [field: string]: unknown;
}

const OWN_NAMESPACE = 'berth';
const LABELS = { 'app.kubernetes.io/managed-by': 'berth' };
const LABEL_SELECTOR = Object.entries(LABELS)
  .map((pair) => pair.join('='))
  .join();
const RBAC = 'rbac.authorization.k8s.io';
/** Says where an account was given rights, so that all of them can be removed. */
const GRANTS_ANNOTATION = 'berth/namespaces';
/** In that annotation: all namespaces. */
export const ALL_NAMESPACES = '*';
const MAX_GRANTS_CHARS = 16_384;
/** The longest name of an account. Bindings and roles are called after it. */
const MAX_NAME = 50;
const SERVER_DIGITS = 6;

/**
 * An account name specific to one user on one machine, and to the Berth at `server` (null: that of the
 * machine), so that removing it harms no others.
 */
export function accountName(user: string, host: string, server: string | null): string {
  const digest = server && createHash('sha256').update(server).digest('hex').slice(0, SERVER_DIGITS);
  const suffix = digest ? `-${digest}` : '';
  const clean = `berth-${user}-${host}`
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_NAME - suffix.length);
  return clean.replace(/-+$/, '') + suffix;
}

/**
 * The name of an account's Roles and RoleBindings outside of its own namespace: an account of the same name
 * may have rights there as well.
 */
const nameElsewhere = ({ namespace, name }: ServiceAccountName): string => `${name}.${namespace}`;

/**
 * The objects of the account, with rights in all namespaces (null) or in some. In that case the first one
 * contains the ServiceAccount, and nothing outside them is requested.
 */
export function accountManifest(name: string, namespaces: readonly string[] | null): ManifestObject[] {
  const [home = OWN_NAMESPACE] = namespaces ?? [];
  const nameIn = (namespace: string | null): string =>
    namespace === null || namespace === home ? name : nameElsewhere({ namespace: home, name });
  const made = (apiVersion: string, kind: string, namespace: string | null): ManifestObject => ({
    apiVersion,
    kind,
    metadata: { name: nameIn(namespace), ...(namespace === null ? {} : { namespace }), labels: LABELS },
  });
  const subjects = [{ kind: 'ServiceAccount', name, namespace: home }];
  const bound = (roleKind: string, roleName: string) => ({
    roleRef: { apiGroup: RBAC, kind: roleKind, name: roleName },
    subjects,
  });
  const rights: ManifestObject[] =
    namespaces === null
      ? [
          { ...made(`${RBAC}/v1`, 'ClusterRole', null), rules: policyRules(true) },
          { ...made(`${RBAC}/v1`, 'ClusterRoleBinding', null), ...bound('ClusterRole', name) },
        ]
      : namespaces.flatMap((namespace) => [
          { ...made(`${RBAC}/v1`, 'Role', namespace), rules: policyRules(false) },
          { ...made(`${RBAC}/v1`, 'RoleBinding', namespace), ...bound('Role', nameIn(namespace)) },
        ]);
  const tokens = `${name}-token`;
  const named = (object: ManifestObject) => ({ ...object, metadata: { ...object.metadata, name: tokens } });
  const grants = { [GRANTS_ANNOTATION]: (namespaces ?? [ALL_NAMESPACES]).join() };
  const account = made('v1', 'ServiceAccount', home);
  return [
    ...(namespaces === null
      ? [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: OWN_NAMESPACE, labels: LABELS } }]
      : []),
    { ...account, metadata: { ...account.metadata, annotations: grants } },
    ...rights,
    // Lets it renew its own token, and no other.
    {
      ...named(made(`${RBAC}/v1`, 'Role', home)),
      rules: [
        { apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: [name], verbs: ['create'] },
      ],
    },
    { ...named(made(`${RBAC}/v1`, 'RoleBinding', home)), ...bound('Role', tokens) },
  ];
}

/**
 * All objects of an account that was given rights in `grants`, namespaces or ALL_NAMESPACES. Only the account
 * in Berth's own namespace can have them in all.
 */
export function accountObjects(
  { namespace, name }: ServiceAccountName,
  grants: readonly string[],
): ManifestObject[] {
  const isWide = grants.includes(ALL_NAMESPACES) && namespace === OWN_NAMESPACE;
  const given = grants.filter((one) => one !== ALL_NAMESPACES);
  const narrow = accountManifest(name, [...new Set([namespace, ...given])]);
  const all = [
    ...(isWide ? accountManifest(name, null) : []),
    ...(isWide && given.length === 0 ? [] : narrow),
  ];
  return [...new Map(all.map((object) => [objectName(object), object])).values()];
}

/**
 * The kubectl commands that remove an account and its rights, wherever it was given them. The namespace
 * `berth` stays: others may use it.
 */
export function removalCommands(account: ServiceAccountName): string[] {
  const { namespace, name } = account;
  const own = accountManifest(name, [namespace]).map(
    ({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`,
  );
  return [
    ...(namespace === OWN_NAMESPACE
      ? [`kubectl delete --ignore-not-found clusterrole/${name} clusterrolebinding/${name}`]
      : []),
    `kubectl delete role,rolebinding -A --field-selector metadata.name=${nameElsewhere(account)}`,
    `kubectl delete --ignore-not-found -n ${namespace} ${own.join(' ')}`,
  ];
}

const PLURALS: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  ServiceAccount: 'serviceaccounts',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  Role: 'roles',
  RoleBinding: 'rolebindings',
};

const collectionOf = (kind: string, namespace: string | undefined): string => {
  const root = kind === 'Namespace' || kind === 'ServiceAccount' ? '/api/v1' : `/apis/${RBAC}/v1`;
  const where = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${where}/${PLURALS[kind]}`;
};

const pathOf = ({ kind, metadata: { name, namespace } }: ManifestObject): string =>
  `${collectionOf(kind, namespace)}/${encodeURIComponent(name)}`;

/** The object as shown to people: `ServiceAccount berth/berth-ada`. */
export const objectName = ({ kind, metadata: { name, namespace } }: ManifestObject): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;

const hasStatus = (error: unknown, status: number): boolean =>
  error instanceof KubeError && error.status.status === status;

const isGrant = (one: string): boolean => one === ALL_NAMESPACES || DNS_SUBDOMAIN.test(one);

interface AccountObject {
  metadata: { uid: string; annotations: Record<string, string> };
}

/** An account of Berth as it is in its cluster. */
interface FoundAccount {
  uid: string;
  /** Where it was given rights: namespaces, or ALL_NAMESPACES. Empty: it does not say. */
  grants: string[];
}

/** The account; null: there is none. Fails as `KubeHttp.call`. */
export async function findAccount(
  http: KubeHttp,
  { namespace, name }: ServiceAccountName,
): Promise<FoundAccount | null> {
  try {
    const body = await http.call({
      action: `get the ServiceAccount ${namespace}/${name}`,
      path: `${collectionOf('ServiceAccount', namespace)}/${encodeURIComponent(name)}`,
    });
    const { uid, annotations } = wire<AccountObject>(parseJson(body))?.metadata ?? {};
    // Anyone who may change the account may have written it.
    const grants = boundedText(annotations?.[GRANTS_ANNOTATION], MAX_GRANTS_CHARS).split(',');
    return { uid: boundedText(uid, 128), grants: grants.filter(isGrant) };
  } catch (error) {
    if (hasStatus(error, 404)) return null;
    throw error;
  }
}

/**
 * Where the cluster has Roles and bindings of the account: namespaces other than its own, or ALL_NAMESPACES;
 * null: the user may not list them. Fails as `KubeHttp.call`.
 */
export async function listedGrants(http: KubeHttp, account: ServiceAccountName): Promise<string[] | null> {
  const kinds = ['Role', 'RoleBinding'];
  if (account.namespace === OWN_NAMESPACE) kinds.push('ClusterRole', 'ClusterRoleBinding');
  const listed = async (kind: string): Promise<string[]> => {
    const name = kind.startsWith('Cluster') ? account.name : nameElsewhere(account);
    const body = await http.call({
      action: `list ${PLURALS[kind]} in all namespaces`,
      path: collectionOf(kind, undefined),
      query: { fieldSelector: `metadata.name=${name}`, labelSelector: LABEL_SELECTOR },
    });
    const items = arrayOrEmpty(wire<{ items: unknown[] }>(parseJson(body))?.items);
    return items
      .map((item) => boundedText(wire<ManifestObject>(item)?.metadata?.namespace, 63) || ALL_NAMESPACES)
      .filter(isGrant);
  };
  try {
    return [...new Set((await Promise.all(kinds.map(listed))).flat())];
  } catch (error) {
    if (hasStatus(error, 403)) return null;
    throw error;
  }
}

/** The manifest of an account, which also says where the account in the cluster was given rights before. */
async function withEarlierGrants(http: KubeHttp, account: ManifestObject): Promise<ManifestObject> {
  const { name, namespace = '', annotations = {} } = account.metadata;
  const before = await findAccount(http, { namespace, name }).catch((error: unknown) => {
    if (hasStatus(error, 403)) return null;
    throw error;
  });
  const now = annotations[GRANTS_ANNOTATION]?.split(',') ?? [];
  const grants = [...new Set([...now, ...(before?.grants ?? [])])].join();
  return {
    ...account,
    metadata: { ...account.metadata, annotations: { ...annotations, [GRANTS_ANNOTATION]: grants } },
  };
}

async function applyObject(http: KubeHttp, object: ManifestObject): Promise<void> {
  const path = pathOf(object);
  try {
    await http.call({
      action: `create ${objectName(object)}`,
      method: 'PATCH',
      path,
      query: { fieldManager: FIELD_MANAGER, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: object,
    });
  } catch (error) {
    if (!hasStatus(error, 403)) throw error;
    // An administrator may have created it for a user who may not.
    const isThere = await http.call({ action: `get ${objectName(object)}`, path }).then(
      () => true,
      () => false,
    );
    if (!isThere) throw error;
  }
}

/**
 * Creates or updates the objects in order. Objects that the account may not change are left alone if they
 * exist, and rights that it was given before stay. Fails as `KubeHttp.call`; what was already created stays.
 */
export async function applyManifest(http: KubeHttp, objects: readonly ManifestObject[]): Promise<void> {
  for (const object of objects)
    await applyObject(
      http,
      object.kind === 'ServiceAccount' ? await withEarlierGrants(http, object) : object,
    );
}

/**
 * Requests a new token of the account for `lifetimeS` seconds; the cluster may shorten that. Fails as
 * `KubeHttp.call`, or with a WireError.
 */
export async function requestToken(
  http: KubeHttp,
  { namespace, name }: ServiceAccountName,
  lifetimeS: number,
): Promise<string> {
  const body = await http.call({
    action: `create a token of the ServiceAccount ${namespace}/${name}`,
    method: 'POST',
    path: `${collectionOf('ServiceAccount', namespace)}/${encodeURIComponent(name)}/token`,
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: lifetimeS },
    },
  });
  const token = wire<{ status: { token: string } }>(parseJson(body))?.status?.token;
  if (typeof token !== 'string' || token === '') throw new WireError('the answer has no token');
  return token;
}

const SUBJECT = /^system:serviceaccount:([^:]+):([^:]+)$/;

interface TokenClaims {
  sub: string;
  iat: number;
  exp: number;
  'kubernetes.io': { serviceaccount: { uid: string } };
}

/** The ServiceAccount that a token says it belongs to; null: none, or it does not expire. */
export function tokenRenewal(token: string): TokenRenewal | null {
  const [, payload = ''] = token.split('.');
  let claims: ReturnType<typeof wire<TokenClaims>>;
  try {
    claims = wire<TokenClaims>(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  } catch {
    return null;
  }
  const { sub, iat, exp } = claims ?? {};
  const [, namespace = '', name = ''] = SUBJECT.exec(boundedText(sub, 400)) ?? [];
  // They go into the commands that people are given.
  if (!DNS_SUBDOMAIN.test(namespace) || !DNS_SUBDOMAIN.test(name)) return null;
  if (typeof iat !== 'number' || typeof exp !== 'number') return null;
  if (!isTime(iat * 1_000) || !isTime(exp * 1_000) || iat >= exp) return null;
  const uid = boundedText(claims?.['kubernetes.io']?.serviceaccount?.uid, 128);
  return { namespace, name, uid, issuedAt: Math.round(iat * 1_000) };
}

/** What every namespace contains from the start. */
const GIVEN: Readonly<Record<string, readonly string[]>> = {
  pods: [],
  services: [],
  persistentvolumeclaims: [],
  configmaps: ['kube-root-ca.crt', 'openshift-service-ca.crt', 'istio-ca-root-cert'],
  serviceaccounts: ['default'],
};

/** Whether the namespace contains only what the cluster itself put there. */
async function isUnused(http: KubeHttp, namespace: string): Promise<boolean> {
  for (const [plural, given] of Object.entries(GIVEN)) {
    const body = await http.call({
      action: `list ${plural} in namespace ${namespace}`,
      path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}`,
      query: { limit: '20' },
    });
    const items = arrayOrEmpty(wire<{ items: unknown[] }>(parseJson(body))?.items);
    const names = items.map((item) => boundedText(wire<ManifestObject>(item)?.metadata?.name, 253));
    if (names.some((name) => !given.includes(name))) return false;
  }
  return true;
}

/**
 * Removes the objects, last first, and returns the names of those that stay because others use them. Missing
 * objects are skipped. Fails as `KubeHttp.call`; what was already removed is gone.
 */
export async function removeManifest(http: KubeHttp, objects: readonly ManifestObject[]): Promise<string[]> {
  const kept: string[] = [];
  for (const object of [...objects].reverse()) {
    try {
      if (object.kind === 'Namespace' && !(await isUnused(http, object.metadata.name))) {
        kept.push(objectName(object));
        continue;
      }
      await http.call({ action: `delete ${objectName(object)}`, method: 'DELETE', path: pathOf(object) });
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
    }
  }
  return kept;
}
