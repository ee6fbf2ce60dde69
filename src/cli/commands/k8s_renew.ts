// berth k8s renew

import { serverAddress } from '../../adapters/kube/server_address.ts';
import type { ClusterDetail } from '../../client/records.ts';
import { accountOf, noteAccountStays, offerAccountRemoval } from '../kit/cluster_accounts.ts';
import {
  ACCOUNT_OPTIONS,
  type ChosenContext,
  CONTEXT_OPTIONS,
  type ContextOptions,
  chooseContext,
  credentialsFor,
} from '../kit/cluster_login.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, EXIT_CODE, UsageError } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';

/** Refuses a context of another cluster, whose workloads would be taken for those of this one. */
function requireServer(
  { context, cluster }: ChosenContext,
  { name, server }: Pick<ClusterDetail, 'name' | 'server'>,
): void {
  const found = serverAddress(String(cluster['server']));
  // Not known of the cluster, or to an older server.
  if (!server || found === server) return;
  throw new CommandError(
    `the context ${context.name} leads to ${found}, and ${name} is at ${server}`,
    `Name a context of ${name} with --context. If ${name} has moved to the other address, pass --moved.`,
  );
}

/** The namespaces, that of the present account first: the first one contains the account. */
const homeFirst = (
  namespaces: readonly string[],
  renewal: ClusterDetail['token_renewal'],
): readonly string[] =>
  renewal && namespaces.includes(renewal.namespace)
    ? [renewal.namespace, ...namespaces.filter((one) => one !== renewal.namespace)]
    : namespaces;

/** Offers to remove the account that the cluster had before, if it has another one now, or none. */
async function offerEarlierAccount(
  command: CommandContext,
  cluster: ClusterDetail,
  renewal: NonNullable<ClusterDetail['token_renewal']>,
  options: ContextOptions,
  chosen: ChosenContext,
): Promise<void> {
  const { cloud } = await command.client();
  const { token_renewal: now } = await cloud.cluster(cluster.id);
  if (now && accountOf(now) === accountOf(renewal)) return;
  const earlier = { cluster, renewal, which: 'earlier ' } as const;
  const isSettled = await offerAccountRemoval(command, earlier, options, null, async () => chosen).catch(
    (error: Error) => {
      // The cluster has its new credentials, so the command has done its work.
      command.out.warn(`the earlier account is not removed: ${error.message}`);
      return false;
    },
  );
  if (!isSettled) await noteAccountStays(command, earlier);
}

export const clusterRenewCommand = defineCommand({
  about:
    'Gives the cluster the credentials that your kubeconfig has now, as `berth k8s add` does. The context must ' +
    'lead to the server of the cluster; without --context, the only one that does is taken. Workloads keep ' +
    'their ids and settings; tethers stay open.',
  args: [{ syntax: '<cluster>', about: 'the cluster, by name or id', completes: 'cluster' }],
  options: {
    ...CONTEXT_OPTIONS,
    ...ACCOUNT_OPTIONS,
    moved: flagOption('--moved', 'the cluster has moved to the server of the context'),
  },
  run: async (command, [reference = ''], options) => {
    const { cloud } = await command.client();
    const { id, name } = await findCluster(await command.client(), reference);
    const detail = await cloud.cluster(id);
    const { namespaces, token_renewal } = detail;
    if (detail.in_cluster)
      throw new UsageError(`${name} is the cluster of Berth's own pod, whose credentials renew themselves`);
    const chosen = await chooseContext(options.moved ? options : { ...options, server: detail.server });
    if (!options.moved) requireServer(chosen, detail);
    const account = {
      ...options,
      namespaces: homeFirst(options.namespaces.length > 0 ? options.namespaces : namespaces, token_renewal),
      ownAccount: options.ownAccount || token_renewal !== null,
    };
    const credentials = await credentialsFor(command, chosen, options, account);
    if (!credentials) {
      command.out.note('Nothing is changed.');
      return EXIT_CODE.failed;
    }
    const given = options.namespaces.length > 0 ? { namespaces: [...options.namespaces] } : {};
    const changed = await cloud.changeCluster(id, { ...credentials, ...given });
    command.out.record(changed, () => `${name} has new credentials, of the context ${chosen.context.name}`);
    if (token_renewal) await offerEarlierAccount(command, detail, token_renewal, options, chosen);
    return undefined;
  },
});
