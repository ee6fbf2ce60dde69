// berth k8s rm
import type { Client } from '../../client/create_client.ts';
import type { ClusterDetail } from '../../client/records.ts';
import { runBatch } from '../kit/batch.ts';
import { CONTEXT_OPTIONS, type ContextOptions, callAsUser, chooseContext } from '../kit/cluster_login.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import { canAsk, isAgreed } from '../kit/confirm.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';

type Renewal = NonNullable<ClusterDetail['token_renewal']>;

const accountOf = ({ namespace, service_account: name }: Renewal): string =>
  `ServiceAccount ${namespace}/${name}`;

/** Removes the account that `berth k8s add` created, with the user's own login. */
async function removeAccount(
  command: CommandContext,
  { name: cluster, namespaces, server }: ClusterDetail,
  renewal: Renewal,
  options: ContextOptions,
): Promise<void> {
  const { namespace, service_account: name, uid } = renewal;
  const chosen = await chooseContext({ ...options, server });
  const { accountManifest, accountUid, objectName, removeManifest } = await import(
    '../../adapters/kube/service_account.ts'
  );
  const others = namespaces.filter((one) => one !== namespace);
  const objects = accountManifest(name, namespaces.includes(namespace) ? [namespace, ...others] : null);
  if (!options.yes) {
    command.out.note(`With the context ${chosen.context.name}, these are removed from the cluster:`);
    for (const object of objects) command.out.note(`  ${objectName(object)}`);
    if (!(await isAgreed(command, 'Remove them?'))) throw new CommandError('nothing is changed');
  }
  const kept = await callAsUser(command, chosen, options, async (http) => {
    const found = await accountUid(http, { namespace, name });
    // Another cluster may have an account of the same name.
    if (found !== null && found !== uid)
      throw new CommandError(
        `the context ${chosen.context.name} leads to another cluster than ${cluster}`,
        'Name the right one with --context.',
      );
    return removeManifest(http, objects);
  });
  for (const one of kept) command.out.note(`${one} stays: other things are in it.`);
}

/** The name of another cluster here that uses the same account; undefined: none does. */
async function sharer(
  client: Client,
  { id, token_renewal: own }: ClusterDetail,
): Promise<string | undefined> {
  const others = (await client.cloud.clusters()).filter((one) => one.id !== id);
  const details = await Promise.all(others.map((one) => client.cloud.cluster(one.id)));
  const isSame = ({ token_renewal: its }: ClusterDetail): boolean =>
    its !== null && its.uid === own?.uid && accountOf(its) === accountOf(own);
  return details.find(isSame)?.name;
}

/** Removes the account if the user wants that and nothing else uses it; otherwise says that it stays. */
async function offerAccount(
  command: CommandContext,
  client: Client,
  detail: ClusterDetail,
  options: ContextOptions & { account: boolean },
): Promise<void> {
  const { token_renewal: renewal } = detail;
  if (renewal === null) {
    if (options.account) command.out.note(`Berth has no account of its own in ${detail.name}.`);
    return;
  }
  const account = accountOf(renewal);
  const other = await sharer(client, detail);
  if (other !== undefined) {
    command.out.note(`Its ${account} stays in the cluster ${detail.name}: ${other} uses it, too.`);
    return;
  }
  const isWanted =
    options.account ||
    (canAsk(command) && !options.yes && (await isAgreed(command, `Remove its ${account}, too?`)));
  if (isWanted) await removeAccount(command, detail, renewal, options);
  else command.out.note(`Its ${account} stays in the cluster ${detail.name}.`);
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
      await offerAccount(command, client, await client.cloud.cluster(id), options);
    }
    return runBatch(command, { names: references }, 'removing', async (reference) => {
      const { id, name } = await findCluster(client, reference);
      return { record: { name, ...(await client.cloud.removeCluster(id)) }, text: 'is removed' };
    });
  },
});
