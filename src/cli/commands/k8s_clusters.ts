// berth k8s clusters, sync
import type { ClusterDetail } from '../../client/records.ts';
import { countText } from '../../presentation/format.ts';
import { runBatch } from '../kit/batch.ts';
import { defineCommand } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';
import type { Column } from '../kit/output.ts';

const stateOf = ({ authenticated, reachable }: ClusterDetail): string | null => {
  if (authenticated === false) return 'refused';
  return reachable === null ? null : reachable ? 'active' : 'unreachable';
};

const COLUMNS: readonly Column<ClusterDetail>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'STATE', cell: stateOf },
  { title: 'PROVIDER', cell: ({ provider }) => provider },
  { title: 'ADDED', cell: ({ created_at }) => created_at },
  { title: 'IN CLUSTER', cell: ({ in_cluster }) => (in_cluster ? 'yes' : 'no'), wideOnly: true },
  { title: 'ID', cell: ({ id }) => id },
  { title: 'REASON', cell: ({ reason }) => reason },
];

export const clusterListCommand = defineCommand({
  run: async (context) => {
    const { cloud } = await context.client();
    context.out.rows(
      await Promise.all((await cloud.clusters()).map(({ id }) => cloud.cluster(id))),
      COLUMNS,
      'There are no clusters. `berth k8s add` registers one.',
    );
  },
});

export const clusterSyncCommand = defineCommand({
  about: 'Finds the Deployments and StatefulSets of all namespaces, and follows their changes from then on.',
  args: [
    { syntax: '[clusters...]', about: 'the clusters, by name or id; default: all', completes: 'cluster' },
  ],
  run: async (context, reference) => {
    const client = await context.client();
    const clusters =
      reference.length > 0 ? reference : (await client.cloud.clusters()).map(({ name }) => name);
    if (clusters.length === 0)
      throw new UsageError('there are no clusters', '`berth k8s add` registers one.');
    return runBatch(context, { names: clusters }, 'syncing', async (one, { progress }) => {
      const { id, name } = await findCluster(client, one);
      const { synced } = await client.cloud.sync(id);
      if (!context.out.isData) {
        const denied = (await client.cloud.cluster(id)).capabilities?.denied ?? [];
        if (denied.length > 0)
          progress.print(() => context.out.warn(`the account of ${name} may not ${denied.join(', ')}`));
      }
      return { record: { name, synced }, text: `has ${countText(synced, 'workload')}` };
    });
  },
});
