// The part of a cluster that is listed: each kind of workload in all namespaces, or in some, as far as the
// account may list them.
import { type KubeCluster, workloadsResource } from '../../adapters/kube/kube_cluster.ts';
import { KubeError, kubeFailure } from '../../adapters/kube/kube_errors.ts';
import { type NamespaceRow, namespacesResource } from '../../adapters/kube/namespaces.ts';
import type { ObservedWorkload } from '../../protocol/cloud.ts';
import type { WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { ClusterScope } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import { WORKLOAD_KINDS, type WorkloadKind } from '../../protocol/workload_kinds.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

/** All workloads of a scope. */
export interface ScopeListing {
  scope: WorkloadScope;
  rows: ObservedWorkload[];
  /** The version from which a watch continues. */
  version: string;
}

const isDenied = (error: unknown): error is KubeError =>
  error instanceof KubeError && error.status.status === 403;

/** The scopes in a cluster's record; null: everything. */
export const scopesOf = (scope: readonly ClusterScope[] | null): WorkloadScope[] =>
  scope === null
    ? WORKLOAD_KINDS.map((kind) => ({ kind, namespace: null }))
    : scope.flatMap(({ kind, namespaces }) =>
        (namespaces ?? [null]).map((namespace) => ({ kind, namespace })),
      );

/** `scopes` if no part of them is outside of the namespaces in `given`, which may be empty; else these. */
export function scopesWithin(scopes: WorkloadScope[], given: readonly string[]): WorkloadScope[] {
  const isWithin = ({ namespace }: WorkloadScope): boolean => namespace !== null && given.includes(namespace);
  if (given.length === 0 || scopes.every(isWithin)) return scopes;
  return WORKLOAD_KINDS.flatMap((kind) => given.map((namespace) => ({ kind, namespace })));
}

/** The form of scopes in a cluster's record: each kind with its namespaces, null for all. */
export const clusterScopeOf = (scopes: readonly WorkloadScope[]): ClusterScope[] =>
  WORKLOAD_KINDS.map((kind) => {
    const own = scopes.filter((scope) => scope.kind === kind);
    const isWhole = own.some(({ namespace }) => namespace === null);
    return { kind, namespaces: isWhole ? null : own.flatMap(({ namespace }) => namespace ?? []).sort() };
  });

/** The namespaces in which anything is listed; null: all. */
export const namespacesOf = (scope: readonly ClusterScope[]): string[] | null =>
  scope.some(({ namespaces }) => namespaces === null)
    ? null
    : [...new Set(scope.flatMap(({ namespaces }) => namespaces ?? []))].sort();

/** All namespaces; null where the account may not list them. Fails as `KubeCluster.list`. */
export async function listNamespaces(cluster: KubeCluster): Promise<NamespaceRow[] | null> {
  try {
    return (await cluster.list(namespacesResource)).rows;
  } catch (error) {
    if (isDenied(error)) return null;
    throw error;
  }
}

async function listScope(cluster: KubeCluster, scope: WorkloadScope): Promise<ScopeListing> {
  const { rows, version } = await cluster.list(workloadsResource(scope.kind, scope.namespace));
  return { scope, rows, version };
}

/** The listing of a scope, or why the account may not list it. */
async function listIfAllowed(cluster: KubeCluster, scope: WorkloadScope): Promise<ScopeListing | KubeError> {
  try {
    return await listScope(cluster, scope);
  } catch (error) {
    if (isDenied(error)) return error;
    throw error;
  }
}

/** Lists one kind in each of `given`; if that is empty, in all namespaces or else in each of `likely`. */
async function listKind(
  cluster: KubeCluster,
  kind: WorkloadKind,
  given: readonly string[],
  likely: () => Promise<readonly string[]>,
): Promise<(ScopeListing | KubeError)[]> {
  const results = given.length > 0 ? [] : [await listIfAllowed(cluster, { kind, namespace: null })];
  if (results.some((result) => !(result instanceof KubeError))) return results;
  // One after the other, because a cluster takes few calls at a time.
  for (const namespace of given.length > 0 ? given : await likely())
    results.push(await listIfAllowed(cluster, { kind, namespace }));
  return results;
}

const NAME_NAMESPACES =
  'Give the account the right that is named, or, where it has rights in some namespaces alone, ' +
  'name these in `namespaces` of the cluster (POST or PATCH /k8s/clusters).';

/**
 * Lists both kinds as far as the account may: in the namespaces of `given`; if that is empty, in all, or else
 * in those of `likely`, or else in those that the cluster lists. Fails cluster_denied when it may list
 * nothing, and as `KubeCluster.list`. docs/reference.md "Sync".
 */
export async function listScopes(
  cluster: KubeCluster,
  given: readonly string[],
  likely: readonly string[],
): Promise<ScopeListing[]> {
  let found: Promise<readonly string[]> | null = null;
  const namespaces = (): Promise<readonly string[]> => {
    found ??=
      likely.length > 0
        ? Promise.resolve(likely)
        : listNamespaces(cluster).then((all) =>
            (all ?? []).slice(0, CLOUD.maxNamespaces).map(({ name }) => name),
          );
    return found;
  };
  const kinds = WORKLOAD_KINDS.map((kind) => listKind(cluster, kind, given, namespaces));
  const results = (await Promise.all(kinds)).flat();
  const listings = results.flatMap((result) => (result instanceof KubeError ? [] : result));
  const denial = results.find((result) => result instanceof KubeError);
  if (listings.length > 0 || denial === undefined) return listings;
  throw fail('cluster_denied', kubeFailure(denial).message, { hint: NAME_NAMESPACES });
}
