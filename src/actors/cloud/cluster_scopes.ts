// The part of a cluster that an account may list: each kind of workload in all namespaces, or in some.
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

const isDenied = (error: unknown): boolean => error instanceof KubeError && error.status.status === 403;

/** The scopes in a cluster's record; null: everything. */
export const scopesOf = (scope: readonly ClusterScope[] | null): WorkloadScope[] =>
  scope === null
    ? WORKLOAD_KINDS.map((kind) => ({ kind, namespace: null }))
    : scope.flatMap(({ kind, namespaces }) =>
        (namespaces ?? [null]).map((namespace) => ({ kind, namespace })),
      );

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

/** The listing of a scope; null if the account may not list it. */
async function listIfAllowed(cluster: KubeCluster, scope: WorkloadScope): Promise<ScopeListing | null> {
  try {
    return await listScope(cluster, scope);
  } catch (error) {
    if (isDenied(error)) return null;
    throw error;
  }
}

/** Lists one kind as far as the account may: in all namespaces, or else namespace by namespace. */
async function listKind(
  cluster: KubeCluster,
  kind: WorkloadKind,
  namespaces: () => Promise<readonly string[]>,
): Promise<ScopeListing[] | KubeError> {
  try {
    return [await listScope(cluster, { kind, namespace: null })];
  } catch (error) {
    if (!(error instanceof KubeError && isDenied(error))) throw error;
    const listings: ScopeListing[] = [];
    // One after the other, because a cluster takes few calls at a time.
    for (const namespace of await namespaces()) {
      const listing = await listIfAllowed(cluster, { kind, namespace });
      if (listing) listings.push(listing);
    }
    return listings.length > 0 ? listings : error;
  }
}

const NAME_NAMESPACES =
  'Give the account the right that is named, or, where it has rights in some namespaces alone, ' +
  'name these in `namespaces` of the cluster (POST or PATCH /k8s/clusters).';

/**
 * Lists both kinds as far as the account may: in all namespaces, or else in those of `given`, or else in
 * those that the cluster lists. Fails cluster_denied when it may list nothing, and as `KubeCluster.list`.
 * docs/reference.md "Sync".
 */
export async function listScopes(cluster: KubeCluster, given: readonly string[]): Promise<ScopeListing[]> {
  let found: Promise<readonly string[]> | null = null;
  const namespaces = (): Promise<readonly string[]> => {
    found ??=
      given.length > 0
        ? Promise.resolve(given)
        : listNamespaces(cluster).then((all) =>
            (all ?? []).slice(0, CLOUD.maxNamespaces).map(({ name }) => name),
          );
    return found;
  };
  const results = await Promise.all(WORKLOAD_KINDS.map((kind) => listKind(cluster, kind, namespaces)));
  const listings = results.flatMap((result) => (result instanceof KubeError ? [] : result));
  const denial = results.find((result) => result instanceof KubeError);
  if (listings.length > 0 || denial === undefined) return listings;
  throw fail('cluster_denied', kubeFailure(denial).message, { hint: NAME_NAMESPACES });
}
