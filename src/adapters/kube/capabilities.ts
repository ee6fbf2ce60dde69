// The account's rights in a cluster, as reported by the cluster itself.

import type { ReviewedRight } from '../../protocol/cluster_account.ts';
import type { ClusterCapabilities } from '../../protocol/clusters.ts';
import { type Ability, CLUSTER_RIGHTS, type ClusterRight, resourceParts } from './cluster_rights.ts';
import type { KubeHttp } from './kube_http.ts';
import { parseJson } from './parse_objects.ts';
import { arrayOrEmpty } from './untrusted_values.ts';
import {
  type V1ResourceRule,
  type V1SelfSubjectAccessReview,
  type V1SelfSubjectRulesReview,
  wire,
} from './wire_types.ts';

/** A right in one namespace, or (null) in all, and whether the account has it. */
interface Review {
  right: ClusterRight;
  namespace: string | null;
  isAllowed: boolean;
}

/** Whether the cluster allows it in a namespace, or (null) in all. */
async function isAllowed(
  http: KubeHttp,
  { verb, resource }: ClusterRight,
  namespace: string | null,
): Promise<boolean> {
  const { group, name, subresource } = resourceParts(resource);
  const where = namespace === null ? {} : { namespace };
  const body = await http.call({
    action: 'review its own rights',
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb, group, resource: name, subresource, ...where } },
    },
  });
  return wire<V1SelfSubjectAccessReview>(parseJson(body))?.status?.allowed === true;
}

const hasAny = (list: unknown, ...wanted: string[]): boolean =>
  arrayOrEmpty(list).some((item) => item === '*' || wanted.some((one) => item === one));

/**
 * The rights shown by a single review of all rules in a namespace; null: the cluster cannot list all of them.
 */
async function rulesIn(
  http: KubeHttp,
  namespace: string,
): Promise<((right: ClusterRight) => boolean) | null> {
  const body = await http.call({
    action: `review its own rights in namespace ${namespace}`,
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    },
  });
  const status = wire<V1SelfSubjectRulesReview>(parseJson(body))?.status;
  if (status?.incomplete === true) return null;
  const rules = arrayOrEmpty(status?.resourceRules).map((item) => wire<V1ResourceRule>(item));
  return ({ verb, resource }) => {
    const { group, name, subresource } = resourceParts(resource);
    const resources = subresource === '' ? [name] : [`${name}/${subresource}`, `*/${subresource}`];
    return rules.some(
      (rule) =>
        hasAny(rule?.verbs, verb) &&
        hasAny(rule?.apiGroups, group) &&
        hasAny(rule?.resources, ...resources) &&
        arrayOrEmpty(rule?.resourceNames).length === 0,
    );
  };
}

/** Reviews `rights` in one namespace. */
async function reviewIn(
  http: KubeHttp,
  rights: readonly ClusterRight[],
  namespace: string,
): Promise<Review[]> {
  const rules = await rulesIn(http, namespace);
  if (rules) return rights.map((right) => ({ right, namespace, isAllowed: rules(right) }));
  const reviewed: Review[] = [];
  // One after the other: a cluster takes few calls at a time, and there may be many namespaces.
  for (const right of rights)
    reviewed.push({ right, namespace, isAllowed: await isAllowed(http, right, namespace) });
  return reviewed;
}

const reviewEverywhere = (http: KubeHttp, rights: readonly ClusterRight[]): Promise<Review[]> =>
  Promise.all(
    rights.map(async (right) => ({ right, namespace: null, isAllowed: await isAllowed(http, right, null) })),
  );

async function review(
  http: KubeHttp,
  rights: readonly ClusterRight[],
  namespaces: readonly string[] | null,
): Promise<Review[]> {
  if (namespaces === null) return reviewEverywhere(http, rights);
  const within = rights.filter((right) => !right.isClusterWide);
  const reviewed: Review[] = [];
  for (const namespace of namespaces) reviewed.push(...(await reviewIn(http, within, namespace)));
  const clusterWide = rights.filter((right) => right.isClusterWide);
  return [...reviewed, ...(await reviewEverywhere(http, clusterWide))];
}

/**
 * Which of the rights used by Berth the account has in each of `namespaces`, or (null) in all. Fails as
 * `KubeHttp.call`.
 */
export async function reviewRights(
  http: KubeHttp,
  namespaces: readonly string[] | null,
): Promise<ReviewedRight[]> {
  const reviews = await review(http, CLUSTER_RIGHTS, namespaces);
  return reviews.map(({ right: { verb, resource, ability, without }, namespace, isAllowed: allowed }) => ({
    ...{ namespace, verb, resource, isAllowed: allowed, isOptional: ability === null, without },
  }));
}

/** The account's abilities in all of `namespaces`, or (null) everywhere. Fails as `KubeHttp.call`. */
export async function reviewCapabilities(
  http: KubeHttp,
  namespaces: readonly string[] | null,
): Promise<ClusterCapabilities> {
  const needed = CLUSTER_RIGHTS.filter(({ ability }) => ability !== null);
  const denied = (await review(http, needed, namespaces)).filter((reviewed) => !reviewed.isAllowed);
  const may = (ability: Ability): boolean => denied.every(({ right }) => right.ability !== ability);
  return {
    sync: may('sync'),
    watch: may('watch'),
    sleep: may('sleep'),
    tether: may('tether'),
    denied: denied.map(({ right: { verb, resource }, namespace }) =>
      namespace === null ? `${verb} ${resource}` : `${verb} ${resource} in namespace ${namespace}`,
    ),
  };
}
