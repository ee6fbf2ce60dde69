// The accounts that `berth k8s add` and `renew` create in clusters, and their removal.
// docs/reference.md "Clusters on the command line".
import type { Client } from '../../client/create_client.ts';
import type { ClusterDetail } from '../../client/records.ts';
import type { ServiceAccountName } from '../../protocol/cluster_account.ts';
import {
  type ChosenContext,
  type ContextOptions,
  callAsUser,
  otherUsersText,
  ownUser,
} from './cluster_login.ts';
import { canAsk, isAgreed } from './confirm.ts';
import type { CommandContext } from './context.ts';
import { CommandError } from './exit_codes.ts';

type Renewal = NonNullable<ClusterDetail['token_renewal']>;

/** Its name, as shown to people. */
export const accountOf = ({ namespace, service_account: name }: Renewal): string =>
  `ServiceAccount ${namespace}/${name}`;

/** An account that may be removed. */
interface OfferedAccount {
  cluster: ClusterDetail;
  renewal: Renewal;
  /** What it is for the cluster, with a blank at the end; empty: its account. */
  which: '' | 'earlier ';
}

/** Of an account of an earlier version, or one that an administrator has made. */
const UNKNOWN_USERS =
  'The account does not say which Berths use it: another one of this user and host may lose its access.';

/** Prints the commands that remove the account. */
async function noteCommands(command: CommandContext, account: ServiceAccountName): Promise<void> {
  const { removalCommands } = await import('../../adapters/kube/account_manifest.ts');
  for (const line of removalCommands(account)) command.out.note(`  ${line}`);
}

/**
 * Removes the account of a cluster, with the user's own login; false: the user refused the list. An account
 * that other Berths use as well is kept, and says from then on that this one no longer does.
 */
async function removeAccount(
  command: CommandContext,
  chosen: ChosenContext,
  { cluster: { name: cluster, namespaces }, renewal, which }: OfferedAccount,
  options: ContextOptions,
): Promise<boolean> {
  const { ALL_NAMESPACES, accountObjects, objectName } = await import(
    '../../adapters/kube/account_manifest.ts'
  );
  const { findAccount, listedGrants, noteAccountUser, removeManifest } = await import(
    '../../adapters/kube/service_account.ts'
  );
  const { namespace, service_account: name, uid } = renewal;
  const account = { namespace, name };
  const own = await ownUser(command);
  let others = '';
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
    others = otherUsersText(found?.users ?? [], own);
    if (others !== '') {
      await noteAccountUser(http, account, own, false);
      return [];
    }
    const stated = found?.grants ?? [];
    // The account may say less: `kubectl apply` of a manifest with fewer namespaces replaces what it says.
    const listed = await listedGrants(http, account);
    const grants = listed ? [...listed, ...stated] : stated.length > 0 ? stated : likely;
    const objects = accountObjects(account, grants);
    if (!options.yes) {
      command.out.note(`With the context ${chosen.context.name}, these are removed from the cluster:`);
      for (const object of objects) command.out.note(`  ${objectName(object)}`);
      if (found?.users.length === 0) command.out.note(UNKNOWN_USERS);
      if (!(await isAgreed(command, 'Remove them?'))) return null;
    }
    return removeManifest(http, objects);
  });
  if (others !== '') {
    const text = `Its ${which}${accountOf(renewal)} stays in the cluster ${cluster}`;
    command.out.note(`${text}: another Berth uses it, too (${others}). If that is no longer so, remove it:`);
    await noteCommands(command, account);
  }
  for (const one of kept ?? []) command.out.note(`${one} stays: other things are in it.`);
  return kept !== null;
}

/** The name of another cluster here that uses the same account; undefined: none does. */
async function sharer(client: Client, id: string, own: Renewal): Promise<string | undefined> {
  const others = (await client.cloud.clusters()).filter((one) => one.id !== id);
  const details = await Promise.all(others.map((one) => client.cloud.cluster(one.id)));
  const isSame = ({ token_renewal: its }: ClusterDetail): boolean =>
    its !== null && its.uid === own.uid && accountOf(its) === accountOf(own);
  return details.find(isSame)?.name;
}

/** Says that the account stays, and how to remove it without Berth. */
export async function noteAccountStays(
  command: CommandContext,
  { cluster, renewal, which }: OfferedAccount,
): Promise<void> {
  const { namespace, service_account: name } = renewal;
  command.out.note(`Its ${which}${accountOf(renewal)} stays in the cluster ${cluster.name}. To remove it:`);
  await noteCommands(command, { namespace, name });
}

/**
 * Removes an account if the user wants that and nothing else uses it; otherwise says that it stays. Resolves
 * with false, and says nothing, if the user wants that but refuses the list of objects. `isWanted` null:
 * asks, if that is possible. `choose` finds the context to remove it with.
 */
export async function offerAccountRemoval(
  command: CommandContext,
  offered: OfferedAccount,
  options: ContextOptions,
  isWanted: boolean | null,
  choose: () => Promise<ChosenContext>,
): Promise<boolean> {
  const { cluster, renewal, which } = offered;
  const account = `${which}${accountOf(renewal)}`;
  const other = await sharer(await command.client(), cluster.id, renewal);
  if (other !== undefined) {
    command.out.note(`Its ${account} stays in the cluster ${cluster.name}: ${other} uses it, too.`);
    return true;
  }
  const isAsked = canAsk(command) && !options.yes;
  if (isWanted ?? (isAsked && (await isAgreed(command, `Remove its ${account}, too?`))))
    return removeAccount(command, await choose(), offered, options);
  await noteAccountStays(command, offered);
  return true;
}
