// The table of rights that Berth uses in a cluster. It reviews them, explains what a missing one costs, and
// requests exactly these when it creates an account of its own.
import type { ClusterCapabilities } from '../../protocol/clusters.ts';

export type Ability = Exclude<keyof ClusterCapabilities, 'denied'>;

/** A verb on a resource, as in `patch` and `deployments.apps`, or `create` and `pods/portforward`. */
export interface ClusterRight {
  verb: string;
  resource: string;
  /** What it is needed for; null: it is optional. */
  ability: Ability | null;
  /** What users lose without it. */
  without: string;
  /** Reviewed only for all namespaces, because the resource is not namespaced. */
  isClusterWide: boolean;
}

interface RightsRow {
  ability: Ability | null;
  verbs: readonly string[];
  resource: string;
  without: string;
  isClusterWide?: boolean;
}

const workloadRows = (resource: string, kinds: string): readonly RightsRow[] => [
  { ability: 'sync', verbs: ['list'], resource, without: `${kinds} are not found` },
  {
    ability: 'watch',
    verbs: ['watch'],
    resource,
    without: `changes of ${kinds} are seen up to 30 s late`,
  },
  { ability: 'sleep', verbs: ['get', 'patch'], resource, without: `${kinds} cannot sleep or wake` },
];

// A WebSocket forward is a GET, and since Kubernetes 1.35 also a create.
const ROWS: readonly RightsRow[] = [
  ...workloadRows('deployments.apps', 'Deployments'),
  ...workloadRows('statefulsets.apps', 'StatefulSets'),
  { ability: 'tether', verbs: ['list', 'watch'], resource: 'pods', without: 'tethers find no pod' },
  {
    ability: 'tether',
    verbs: ['get', 'create'],
    resource: 'pods/portforward',
    without: 'tethers reach no pod',
  },
  {
    ability: null,
    verbs: ['list'],
    resource: 'replicasets.apps',
    without: 'right after a change of its count, a pod that is about to end may count as ready',
  },
  {
    ability: null,
    verbs: ['list'],
    resource: 'events',
    without: 'the reason why no pod becomes ready is not told',
  },
  {
    ability: null,
    verbs: ['list'],
    resource: 'horizontalpodautoscalers.autoscaling',
    without: 'an autoscaler that undoes a sleep is not named, and its maximum does not bound a wake',
  },
  {
    ability: null,
    verbs: ['list'],
    resource: 'namespaces',
    without: 'an account with rights in some namespaces alone needs their names (--namespaces)',
    isClusterWide: true,
  },
];

/** Every right that Berth uses, the required ones first. */
export const CLUSTER_RIGHTS: readonly ClusterRight[] = ROWS.flatMap(({ verbs, ...row }) =>
  verbs.map((verb) => ({ verb, isClusterWide: false, ...row })),
);

/** The parts of a resource's name as the API has them: `pods/portforward`, `deployments.apps`. */
export function resourceParts(resource: string): { group: string; name: string; subresource: string } {
  const [plain = '', group = ''] = resource.split('.');
  const [name = '', subresource = ''] = plain.split('/');
  return { group, name, subresource };
}

/** A rule of a Role or ClusterRole. */
interface PolicyRule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

/** The rights as the rules of a Role: with `isEverywhere` those of a ClusterRole for all namespaces. */
export function policyRules(isEverywhere: boolean): PolicyRule[] {
  const rights = CLUSTER_RIGHTS.filter((right) => isEverywhere || !right.isClusterWide);
  const rules: PolicyRule[] = [];
  for (const resource of new Set(rights.map((right) => right.resource))) {
    const { group, name, subresource } = resourceParts(resource);
    const plural = subresource === '' ? name : `${name}/${subresource}`;
    const verbs = rights.filter((right) => right.resource === resource).map(({ verb }) => verb);
    const same = rules.find((rule) => rule.apiGroups[0] === group && `${rule.verbs}` === `${verbs}`);
    if (same) same.resources.push(plural);
    else rules.push({ apiGroups: [group], resources: [plural], verbs });
  }
  return rules;
}
