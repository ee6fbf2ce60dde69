// Finds clusters, workloads and tethers by the names that people use.
import type { Client } from '../../client/create_client.ts';
import type { Cluster, Tether, Workload } from '../../client/records.ts';
import { CommandError } from './exit_codes.ts';

type WorkloadName = Pick<Workload, 'kind' | 'namespace' | 'name'>;

/** The full name of a workload: `shop/deployment/web`. */
export const workloadName = ({ kind, namespace, name }: WorkloadName): string =>
  `${namespace}/${kind.toLowerCase()}/${name}`;

/** Finds a cluster by id or name. Throws a CommandError that lists the clusters. */
export async function findCluster(client: Client, reference: string): Promise<Cluster> {
  const all = await client.cloud.clusters();
  const found = all.find(({ id, name }) => id === reference || name === reference);
  if (found) return found;
  const hint =
    all.length > 0
      ? `Known clusters: ${all.map(({ name }) => name).join(', ')}.`
      : '`berth k8s add` registers one.';
  throw new CommandError(`there is no cluster ${reference}`, hint);
}

const matchesName = (workload: WorkloadName & Pick<Workload, 'id'>, reference: string): boolean => {
  const { id, name, namespace, kind } = workload;
  const short = kind === 'Deployment' ? 'deploy' : 'sts';
  return [
    id,
    name,
    `${namespace}/${name}`,
    `${kind.toLowerCase()}/${name}`,
    `${short}/${name}`,
    workloadName(workload),
    `${namespace}/${short}/${name}`,
  ].includes(reference);
};

/**
 * Finds a workload by id, name, namespace/name or kind/name. Throws a CommandError if none or several match.
 */
export async function findWorkload(
  client: Client,
  reference: string,
  cluster: string | undefined,
): Promise<Workload> {
  const at = cluster === undefined ? {} : { cluster: (await findCluster(client, cluster)).id };
  const all = (await client.cloud.workloads(at)).filter((workload) => matchesName(workload, reference));
  const [first, second] = all;
  if (first && !second) return first;
  if (!first)
    throw new CommandError(
      `there is no workload ${reference}`,
      '`berth k8s workloads` lists them; `berth k8s sync` looks for new ones.',
    );
  const clusters = await client.cloud.clusters();
  const nameOf = (id: string): string => clusters.find((one) => one.id === id)?.name ?? id;
  const names = all
    .map((workload) => `${workloadName(workload)} in ${nameOf(workload.cluster_id)} (${workload.id})`)
    .join('\n');
  throw new CommandError(
    `${reference} matches several workloads:\n${names}`,
    'Name the namespace, the kind or the id, or give --cluster.',
  );
}

/**
 * The name of a tether's workload. A tether of an earlier version has it only while it is one of `workloads`.
 */
export const tetheredWorkload = (
  { workload, workload_id }: Tether,
  workloads: readonly Workload[],
): WorkloadName | undefined => workload ?? workloads.find(({ id }) => id === workload_id);

/** Finds a tether by id, label, local port or workload. Throws a CommandError if none or several match. */
export async function findTether(client: Client, reference: string): Promise<Tether> {
  const tethers = await client.cloud.tethers();
  let all = tethers.filter(
    ({ tether_id, label, local_port }) =>
      tether_id === reference || label === reference || String(local_port) === reference,
  );
  if (all.length === 0) {
    const workloads = await client.cloud.workloads();
    all = tethers.filter((one) => {
      const workload = tetheredWorkload(one, workloads);
      return workload && matchesName({ ...workload, id: one.workload_id }, reference);
    });
  }
  const [first, second] = all;
  if (first && !second) return first;
  if (!first) throw new CommandError(`there is no tether ${reference}`, '`berth k8s tethers` lists them.');
  const names = all.map(({ local_port, tether_id }) => local_port ?? tether_id).join(', ');
  throw new CommandError(`${reference} matches several tethers: ${names}`, 'Name the local port or the id.');
}
