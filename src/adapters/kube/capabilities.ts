// What the account may do in a cluster, as the cluster itself answers.
import type { ClusterCapabilities } from '../../protocol/cloud.ts';
import type { KubeHttp } from './kube_http.ts';
import { parseJson } from './parse_objects.ts';
import { type V1SelfSubjectAccessReview, wire } from './wire_types.ts';

/**
 * The rights that each ability needs in all namespaces. A WebSocket forward is a GET, since 1.35 also a
 * create.
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

function reviewOf(verb: string, resource: string): object {
  const [plain = '', group = ''] = resource.split('.');
  const [name = '', subresource = ''] = plain.split('/');
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb, group, resource: name, subresource } },
  };
}

/** Reviews the account's rights one by one. Fails as `KubeHttp.call`. */
export async function reviewCapabilities(http: KubeHttp): Promise<ClusterCapabilities> {
  const asked = REQUIRED_RIGHTS.flatMap(([ability, verbs, resources]) =>
    verbs.flatMap((verb) => resources.map((resource) => ({ ability, verb, resource }))),
  );
  const rows = await Promise.all(
    asked.map(async ({ ability, verb, resource }) => {
      const body = await http.call({
        action: 'review its own rights',
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        body: reviewOf(verb, resource),
      });
      const review = wire<V1SelfSubjectAccessReview>(parseJson(body));
      return { ability, right: `${verb} ${resource}`, isAllowed: review?.status?.allowed === true };
    }),
  );
  const may = (ability: string): boolean => rows.every((row) => row.ability !== ability || row.isAllowed);
  const denied = rows.filter((row) => !row.isAllowed).map((row) => row.right);
  return { sync: may('sync'), watch: may('watch'), sleep: may('sleep'), tether: may('tether'), denied };
}
