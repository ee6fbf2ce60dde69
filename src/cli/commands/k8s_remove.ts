// berth k8s rm
import type { ClusterDetail } from '../../client/records.ts';
import { runBatch } from '../kit/batch.ts';
import { offerAccountRemoval } from '../kit/cluster_accounts.ts';
import { CONTEXT_OPTIONS, type ContextOptions, chooseContext } from '../kit/cluster_login.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';

/** Offers to remove the account of a cluster, if it has one. */
async function offerAccount(
  command: CommandContext,
  cluster: ClusterDetail,
  options: ContextOptions & { account: boolean },
): Promise<void> {
  const { token_renewal: renewal, server } = cluster;
  if (renewal !== null) {
    const offered = { cluster, renewal, which: '' } as const;
    const choose = () => chooseContext({ ...options, server });
    if (!(await offerAccountRemoval(command, offered, options, options.account || null, choose)))
      throw new CommandError('nothing is changed');
  } else if (options.account) command.out.note(`Berth has no account of its own in ${cluster.name}.`);
}

export const clusterRemoveCommand = defineCommand({
  about:
    'Closes the tethers of the clusters. Sleeping workloads stay asleep: wake them first. An account that ' +
    '`berth k8s add` has made is removed from the cluster too, if you want that, with a login of yours.',
  args: [{ syntax: '<clusters...>', about: 'the clusters, by name or id', completes: 'cluster' }],
  options: {
    ...CONTEXT_OPTIONS,
    account: flagOption('--account', 'also remove the account that `berth k8s add` has made'),
  },
  run: async (command, references, options) => {
    if (options.account && references.length > 1)
      throw new UsageError('--account is for one cluster at a time: each has a context of its own');
    const client = await command.client();
    if (references.length === 1) {
      const { id } = await findCluster(client, references[0] ?? '');
      await offerAccount(command, await client.cloud.cluster(id), options);
    }
    return runBatch(command, { names: references }, 'removing', async (reference) => {
      const { id, name } = await findCluster(client, reference);
      return { record: { name, ...(await client.cloud.removeCluster(id)) }, text: 'is removed' };
    });
  },
});
