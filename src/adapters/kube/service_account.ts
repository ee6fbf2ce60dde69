// Berth's account in a cluster when the user's own login cannot be stored: a ServiceAccount with the rights
// in cluster_rights.ts, whose tokens expire and are renewed.
import { createHash } from 'node:crypto';
import type { ServiceAccountName, TokenRenewal } from '../../protocol/cluster_account.ts';
import { isTime } from '../../protocol/timestamps.ts';
import {
  ALL_NAMESPACES,
  GRANTS_ANNOTATION,
  LABELS,
  type ManifestObject,
  nameElsewhere,
  OWN_NAMESPACE,
  objectName,
  RBAC,
} from './account_manifest.ts';
import { KubeError, WireError } from './kube_errors.ts';
import type { KubeHttp } from './kube_http.ts';
import { DNS_SUBDOMAIN, FIELD_MANAGER, parseJson } from './parse_objects.ts';
import { arrayOrEmpty, boundedText } from './untrusted_values.ts';
import { wire } from './wire_types.ts';

const LABEL_SELECTOR = Object.entries(LABELS)
  .map((pair) => pair.join('='))
  .join();
const MAX_GRANTS_CHARS = 16_384;
/** Begins the annotation of a Berth that uses an account: each has one, and overwrites no others. */
const USER_PREFIX = 'berth/used-by.';
const USER_DIGITS = 8;
const MAX_USER_CHARS = 200;

/** A Berth that uses an account. */
export interface AccountUser {
  id: string;
  /** Its name, as shown to people; other Berths may have the same. */
  name: string;
}

/** The user for a Berth whose `identity` no other Berth has. It may be secret. */
export const accountUser = (identity: string | Uint8Array, name: string): AccountUser => ({
  id: createHash('sha256').update('berth account\0').update(identity).digest('hex').slice(0, USER_DIGITS),
  name,
});

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
  /** The Berths noted on it. Earlier versions note none. */
  users: AccountUser[];
}

const accountPath = ({ namespace, name }: ServiceAccountName): string =>
  `${collectionOf('ServiceAccount', namespace)}/${encodeURIComponent(name)}`;

function usersIn(annotations: Readonly<Record<string, unknown>> | null | undefined): AccountUser[] {
  const keys = Object.keys(annotations ?? {}).filter((key) => key.startsWith(USER_PREFIX));
  return keys.map((key) => {
    const id = key.slice(USER_PREFIX.length);
    return { id, name: boundedText(annotations?.[key], MAX_USER_CHARS) || id };
  });
}

/**
 * Notes on the account that a Berth uses it, or no longer does, and returns all that do; none if the caller
 * may not change the account. Fails as `KubeHttp.call`.
 */
export async function noteAccountUser(
  http: KubeHttp,
  account: ServiceAccountName,
  { id, name }: AccountUser,
  isUsed: boolean,
): Promise<AccountUser[]> {
  try {
    const body = await http.call({
      action: `change the ServiceAccount ${account.namespace}/${account.name}`,
      method: 'PATCH',
      path: accountPath(account),
      query: { fieldManager: FIELD_MANAGER },
      contentType: 'application/merge-patch+json',
      body: { metadata: { annotations: { [`${USER_PREFIX}${id}`]: isUsed ? name : null } } },
    });
    return usersIn(wire<AccountObject>(parseJson(body))?.metadata?.annotations);
  } catch (error) {
    if (hasStatus(error, 403)) return [];
    throw error;
  }
}

/** The account; null: there is none. Fails as `KubeHttp.call`. */
export async function findAccount(http: KubeHttp, account: ServiceAccountName): Promise<FoundAccount | null> {
  try {
    const body = await http.call({
      action: `get the ServiceAccount ${account.namespace}/${account.name}`,
      path: accountPath(account),
    });
    const { uid, annotations } = wire<AccountObject>(parseJson(body))?.metadata ?? {};
    // Anyone who may change the account may have written it.
    const grants = boundedText(annotations?.[GRANTS_ANNOTATION], MAX_GRANTS_CHARS).split(',');
    return { uid: boundedText(uid, 128), grants: grants.filter(isGrant), users: usersIn(annotations) };
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
  account: ServiceAccountName,
  lifetimeS: number,
): Promise<string> {
  const body = await http.call({
    action: `create a token of the ServiceAccount ${account.namespace}/${account.name}`,
    method: 'POST',
    path: `${accountPath(account)}/token`,
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
