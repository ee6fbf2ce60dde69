// The accounts that `berth k8s add` and `renew` create in clusters, and their removal.
// docs/reference.md "Clusters on the command line".
import type { Client } from '../../client/create_client.ts';
import type { ClusterDetail } from '../../client/records.ts';
import { type ChosenContext, type ContextOptions, callAsUser } from './cluster_login.ts';
import { canAsk, isAgreed } from './confirm.ts';
import type { CommandContext } from './context.ts';
import { CommandError } from './exit_codes.ts';

type Renewal = NonNullable<ClusterDetail['token_renewal']>;

/** Its name, as shown to people. */
export const accountOf = ({ namespace, service_account: name }: Renewal): string =>
  `ServiceAccount ${namespace}/${name}`;

/** Removes the account of a cluster, with the user's own login. */
async function removeAccount(
  command: CommandContext,
  chosen: ChosenContext,
  { name: cluster, namespaces }: ClusterDetail,
  { namespace, service_account: name, uid }: Renewal,
  options: ContextOptions,
): Promise<void> {
  const { ALL_NAMESPACES, accountObjects, findAccount, objectName, removeManifest } = await import(
    '../../adapters/kube/service_account.ts'
  );
  const account = { namespace, name };
  // An account that does not say so was made for the namespaces of the cluster.
  const likely = namespaces.includes(namespace) ? namespaces : [ALL_NAMESPACES, ...namespaces];
  const kept = await callAsUser(command, chosen, options, async (http) => {
    const found = await findAccount(http, account);
    // Another cluster may have an account of the same name.
    if (found !== null && found.uid !== uid)
      throw new CommandError(
        `the context ${chosen.context.name} leads to another cluster than ${cluster}`,
        'Name the right one with --context.',
      );
    const objects = accountObjects(account, found?.grants.length ? found.grants : likely);
    if (!options.yes) {
      command.out.note(`With the context ${chosen.context.name}, these are removed from the cluster:`);
      for (const object of objects) command.out.note(`  ${objectName(object)}`);
      if (!(await isAgreed(command, 'Remove them?'))) throw new CommandError('nothing is changed');
    }
    return removeManifest(http, objects);
  });
  for (const one of kept) command.out.note(`${one} stays: other things are in it.`);
}

/** The name of another cluster here that uses the same account; undefined: none does. */
async function sharer(client: Client, id: string, own: Renewal): Promise<string | undefined> {
  const others = (await client.cloud.clusters()).filter((one) => one.id !== id);
  const details = await Promise.all(others.map((one) => client.cloud.cluster(one.id)));
  const isSame = ({ token_renewal: its }: ClusterDetail): boolean =>
    its !== null && its.uid === own.uid && accountOf(its) === accountOf(own);
  return details.find(isSame)?.name;
}

/** An account that may be removed. */
interface OfferedAccount {
  cluster: ClusterDetail;
  renewal: Renewal;
  /** What it is for the cluster, with a blank at the end; empty: its account. */
  which: '' | 'earlier ';
}

/**
 * Removes an account if the user wants that and nothing else uses it; otherwise says that it stays.
 * `isWanted` null: asks, if that is possible. `choose` finds the context to remove it with.
 */
export async function offerAccountRemoval(
  command: CommandContext,
  { cluster, renewal, which }: OfferedAccount,
  options: ContextOptions,
  isWanted: boolean | null,
  choose: () => Promise<ChosenContext>,
): Promise<void> {
  const account = `${which}${accountOf(renewal)}`;
  const other = await sharer(await command.client(), cluster.id, renewal);
  if (other !== undefined) {
    command.out.note(`Its ${account} stays in the cluster ${cluster.name}: ${other} uses it, too.`);
    return;
  }
  const isAsked = canAsk(command) && !options.yes;
  if (isWanted ?? (isAsked && (await isAgreed(command, `Remove its ${account}, too?`))))
    await removeAccount(command, await choose(), cluster, renewal, options);
  else command.out.note(`Its ${account} stays in the cluster ${cluster.name}.`);
}
