// What the account may do in a cluster, as the cluster itself answers.
import type { ClusterCapabilities } from '../../protocol/cloud.ts';
import type { KubeHttp } from './kube_http.ts';
import { parseJson } from './parse_objects.ts';
import { arrayOrEmpty } from './untrusted_values.ts';
import {
  type V1ResourceRule,
  type V1SelfSubjectAccessReview,
  type V1SelfSubjectRulesReview,
  wire,
} from './wire_types.ts';

/**
 * The rights that each ability needs in every namespace that is listed. A WebSocket forward is a GET,
 * since 1.35 also a create.
 */
const REQUIRED_RIGHTS: readonly [
  ability: Exclude<keyof ClusterCapabilities, 'denied'>,
  verbs: string[],
  resources: string[],
][] = [
  ['sync', ['list'], ['deployments.apps', 'statefulsets.apps']],
  ['watch', ['watch'], ['deployments.apps', 'statefulsets.apps']],
  ['sleep', ['get', 'patch'], ['deployments.apps', 'statefulsets.apps']],
  ['tether', ['list', 'watch'], ['pods']],
  ['tether', ['get', 'create'], ['pods/portforward']],
];

interface Right {
  ability: Exclude<keyof ClusterCapabilities, 'denied'>;
  verb: string;
  /** As in `deployments.apps` or `pods/portforward`. */
  resource: string;
}

const RIGHTS: readonly Right[] = REQUIRED_RIGHTS.flatMap(([ability, verbs, resources]) =>
  verbs.flatMap((verb) => resources.map((resource) => ({ ability, verb, resource }))),
);

function partsOf(resource: string): { group: string; name: string; subresource: string } {
  const [plain = '', group = ''] = resource.split('.');
  const [name = '', subresource = ''] = plain.split('/');
  return { group, name, subresource };
}

/** Whether the cluster allows it in a namespace, or (null) in all. */
async function isAllowed(
  http: KubeHttp,
  { verb, resource }: Right,
  namespace: string | null,
): Promise<boolean> {
  const { group, name, subresource } = partsOf(resource);
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
 * The rights that one review of all rules in a namespace shows; null: the cluster cannot tell all of them.
 */
async function rulesIn(http: KubeHttp, namespace: string): Promise<((right: Right) => boolean) | null> {
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
    const { group, name, subresource } = partsOf(resource);
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

/** What the account may not do in one namespace. */
async function deniedIn(http: KubeHttp, namespace: string): Promise<Right[]> {
  const rules = await rulesIn(http, namespace);
  if (rules) return RIGHTS.filter((right) => !rules(right));
  const denied: Right[] = [];
  // One after the other: a cluster takes few calls at once, and there may be many namespaces.
  for (const right of RIGHTS) if (!(await isAllowed(http, right, namespace))) denied.push(right);
  return denied;
}

const capabilitiesWithout = (denied: readonly Right[], names: string[]): ClusterCapabilities => {
  const may = (ability: string): boolean => denied.every((right) => right.ability !== ability);
  return {
    sync: may('sync'),
    watch: may('watch'),
    sleep: may('sleep'),
    tether: may('tether'),
    denied: names,
  };
};

const rightName = ({ verb, resource }: Right): string => `${verb} ${resource}`;

/**
 * What the account may do in all of `namespaces`, or (null) everywhere. Fails as `KubeHttp.call`.
 */
export async function reviewCapabilities(
  http: KubeHttp,
  namespaces: readonly string[] | null,
): Promise<ClusterCapabilities> {
  if (namespaces === null) {
    const allowed = await Promise.all(RIGHTS.map((right) => isAllowed(http, right, null)));
    const denied = RIGHTS.filter((_, index) => !allowed[index]);
    return capabilitiesWithout(denied, denied.map(rightName));
  }
  const denied: Right[] = [];
  const names: string[] = [];
  for (const namespace of namespaces) {
    const here = await deniedIn(http, namespace);
    denied.push(...here);
    names.push(...here.map((right) => `${rightName(right)} in namespace ${namespace}`));
  }
  return capabilitiesWithout(denied, names);
}
