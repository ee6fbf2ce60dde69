// berth k8s clusters, add, rm, sync
import { readFileSync } from 'node:fs';
import type { Cluster } from '../../client/records.ts';
import { runBatch } from '../kit/batch.ts';
import { defineCommand, flagOption, listOption, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { pluralize } from '../kit/format.ts';
import { findCluster } from '../kit/k8s_lookup.ts';
import type { Column } from '../kit/output.ts';

const COLUMNS: readonly Column<Cluster>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'PROVIDER', cell: ({ provider }) => provider },
  { title: 'ADDED', cell: ({ created_at }) => created_at },
  { title: 'IN CLUSTER', cell: ({ in_cluster }) => (in_cluster ? 'yes' : 'no'), wideOnly: true },
  { title: 'ID', cell: ({ id }) => id },
];

export const clusterListCommand = defineCommand({
  run: async (context) => {
    context.out.rows(
      await (await context.client()).cloud.clusters(),
      COLUMNS,
      'There are no clusters. `berth k8s add` registers one.',
    );
  },
});

/** The text of a kubeconfig: a file, or stdin for `-`. */
function kubeconfig(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export const clusterAddCommand = defineCommand({
  about:
    'Checks the kubeconfig and stores it encrypted. It must contain its certificates and tokens: entries ' +
    'that run a program or read a file are refused. Only its current context is used.',
  args: [{ syntax: '<name>', about: 'the name of the cluster' }],
  options: {
    file: textOption('--kubeconfig <file>', 'kubeconfig file, - for stdin', 'file'),
    provider: textOption('--provider <name>', 'provider of the cluster; default other'),
    inCluster: flagOption('--in-cluster', 'the cluster that the daemon runs in, without a kubeconfig'),
    namespaces: listOption('--namespaces <names>', 'where an account without rights on all has some'),
  },
  examples: [
    [
      'kubectl config view --raw --minify --flatten | berth k8s add dev --kubeconfig -',
      'the current context',
    ],
  ],
  run: async (context, [name = ''], { file, provider, inCluster, namespaces }) => {
    if ((file === undefined) === !inCluster) throw new UsageError('give either --kubeconfig or --in-cluster');
    const client = await context.client();
    const cluster = await client.cloud.addCluster({
      name,
      ...(provider === undefined ? {} : { provider }),
      ...(namespaces.length === 0 ? {} : { namespaces: [...namespaces] }),
      ...(file === undefined ? { in_cluster: true } : { kubeconfig: kubeconfig(file) }),
    });
    context.out.record(
      cluster,
      () => `${name} is registered; \`berth k8s sync ${name}\` looks for its workloads`,
    );
  },
});

export const clusterRenewCommand = defineCommand({
  about: 'Replaces the kubeconfig. Workloads keep their ids and settings; tethers stay open.',
  args: [{ syntax: '<cluster>', about: 'the cluster, by name or id', completes: 'cluster' }],
  options: { file: textOption('--kubeconfig <file>', 'kubeconfig file, - for stdin', 'file') },
  run: async (context, [reference = ''], { file }) => {
    if (file === undefined) throw new UsageError('give --kubeconfig');
    const client = await context.client();
    const { id, name } = await findCluster(client, reference);
    const changed = await client.cloud.changeCluster(id, { kubeconfig: kubeconfig(file) });
    context.out.record(changed, () => `${name} has new credentials`);
  },
});

export const clusterRemoveCommand = defineCommand({
  about: 'Closes the tethers of the clusters. Sleeping workloads stay asleep: wake them first.',
  args: [{ syntax: '<clusters...>', about: 'the clusters, by name or id', completes: 'cluster' }],
  run: async (context, clusters) => {
    const client = await context.client();
    return runBatch(context, { names: clusters }, 'removing', async (reference) => {
      const { id, name } = await findCluster(client, reference);
      return {
        record: { name, ...(await client.cloud.removeCluster(id)) },
        text: 'is removed',
      };
    });
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
      return { record: { name, synced }, text: `has ${pluralize(synced, 'workload')}` };
    });
  },
});
