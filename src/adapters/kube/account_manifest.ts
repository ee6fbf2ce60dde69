// The objects of Berth's account in a cluster. Pure.
import { createHash } from 'node:crypto';
import type { ServiceAccountName } from '../../protocol/cluster_account.ts';
import { policyRules } from './cluster_rights.ts';

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

export const OWN_NAMESPACE = 'berth';
export const LABELS = { 'app.kubernetes.io/managed-by': 'berth' };
export const RBAC = 'rbac.authorization.k8s.io';
/** Says where an account was given rights, so that all of them can be removed. */
export const GRANTS_ANNOTATION = 'berth/namespaces';
/** In that annotation: all namespaces. */
export const ALL_NAMESPACES = '*';
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
export const nameElsewhere = ({ namespace, name }: ServiceAccountName): string => `${name}.${namespace}`;

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

/** The object as shown to people: `ServiceAccount berth/berth-ada`. */
export const objectName = ({ kind, metadata: { name, namespace } }: ManifestObject): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
