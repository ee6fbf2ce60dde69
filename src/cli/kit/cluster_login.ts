// Turns a context of the user's kubeconfig into credentials that the daemon can store.
// docs/reference.md "Clusters on the command line".
import { hostname, userInfo } from 'node:os';
import type { ManifestObject } from '../../adapters/kube/account_manifest.ts';
import type { AccountUser } from '../../adapters/kube/service_account.ts';
import {
  type ContextChoice,
  type Fields,
  type KubeContext,
  readKubeContext,
  readUserInput,
} from '../../adapters/kubeconfig/kubeconfig_files.ts';
import {
  clusterFields,
  loginOf,
  type StoredUser,
  standaloneKubeconfig,
  type UserLogin,
} from '../../adapters/kubeconfig/user_login.ts';
import type { ServiceAccountName } from '../../protocol/cluster_account.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { berthName, cloudKeyPath, readSecret } from '../../settings/state_dir.ts';
import { durationOption, flagOption, listOption, textOption } from './command.ts';
import { isAgreed } from './confirm.ts';
import type { CommandContext } from './context.ts';
import { UsageError } from './exit_codes.ts';
import { sanitize } from './sanitize.ts';

/** The options that choose a context of the user's kubeconfig. */
export const CONTEXT_OPTIONS = {
  file: textOption('--kubeconfig <file>', 'kubeconfig, - for stdin; default as for kubectl', 'file'),
  context: textOption('--context <name>', 'context of the kubeconfig; default its current one'),
  authority: textOption(
    '--certificate-authority <file>',
    'certificates that the server is verified with, in place of those in the kubeconfig',
    'file',
  ),
  loginTimeout: durationOption('--login-timeout <duration>', 'time for a login command; default 5m'),
  yes: flagOption('-y, --yes', 'do not ask'),
} as const;

/** The options for Berth's own account in the cluster. */
export const ACCOUNT_OPTIONS = {
  namespaces: listOption('--namespaces <names>', 'only these are listed: no right outside of them is needed'),
  ownAccount: flagOption('--service-account', 'an account of its own also where the login can be stored'),
  lifetime: durationOption('--token-lifetime <duration>', 'of the tokens of that account; default 168h'),
} as const;

export interface ContextOptions extends ContextChoice {
  authority: string | undefined;
  loginTimeout: number | undefined;
  yes: boolean;
}

export interface AccountOptions {
  namespaces: readonly string[];
  ownAccount: boolean;
  lifetime: number | undefined;
}

/** A context of the user's kubeconfig, and how its user logs in. */
export interface ChosenContext {
  context: KubeContext;
  cluster: Fields;
  login: UserLogin;
}

/** The credentials that the command sends to the daemon. */
export interface ClusterCredentials {
  kubeconfig: string;
  renew_token: boolean;
}

const DEFAULT_LOGIN_TIMEOUT_MS = 300_000;

/**
 * The manifest of the account for this user of this machine and for the Berth that the command is about;
 * empty `namespaces`: with rights in all namespaces.
 */
export async function ownManifest(
  command: CommandContext,
  namespaces: readonly string[],
): Promise<ManifestObject[]> {
  const { accountManifest, accountName } = await import('../../adapters/kube/account_manifest.ts');
  const { cloudServer } = await command.local();
  const name = accountName(userInfo().username, hostname(), cloudServer());
  return accountManifest(name, namespaces.length === 0 ? null : namespaces);
}

/** The Berth that the command is about, as it is noted on the accounts that it uses. */
export async function ownUser(command: CommandContext): Promise<AccountUser> {
  const { accountUser } = await import('../../adapters/kube/service_account.ts');
  const { cloudServer, settings, stateDir } = await command.local();
  const server = cloudServer();
  if (server !== null) return accountUser(server, server);
  const name = berthName(stateDir);
  // Two containers may have the same host name and state directory, and a copy has the key of its original.
  const key = readSecret(cloudKeyPath(settings.cloud.key_file, stateDir)) ?? '';
  return accountUser(Buffer.concat([Buffer.from(key), Buffer.from(name)]), name);
}

/** The names of the users of an account other than `own`, for people; '' if there are none. */
export const otherUsersText = (users: readonly AccountUser[], own: AccountUser): string =>
  users.flatMap(({ id, name }) => (id === own.id ? [] : [name])).join(', ');

/** The objects as YAML for `kubectl apply`. */
export async function manifestText(objects: readonly ManifestObject[]): Promise<string> {
  const { stringifyYaml } = await import('../../adapters/yaml.ts');
  return objects.map((object) => stringifyYaml(object)).join('---\n');
}

/** Reads the chosen context. Throws a KubeconfigError. */
export async function chooseContext(options: ContextOptions): Promise<ChosenContext> {
  if (options.file === '-' && options.authority === '-')
    throw new UsageError('only one of --kubeconfig and --certificate-authority can be stdin');
  const isFromStdin = options.file === '-' || options.authority === '-';
  const stdin = isFromStdin ? await readUserInput() : '';
  const context = readKubeContext({ ...options, stdin }, process.env);
  const cluster = clusterFields(context, options.authority, stdin);
  return { context, cluster, login: loginOf(context, Date.now()) };
}

/** Logs the user in, with the context's login command if it has one. Throws a LoginError. */
async function logIn(
  command: CommandContext,
  { cluster, login }: ChosenContext,
  { file, loginTimeout }: ContextOptions,
): Promise<StoredUser> {
  if (login.kind !== 'exec') return login.user;
  const { runExecPlugin } = await import('../../adapters/kubeconfig/exec_plugin.ts');
  return runExecPlugin(login.plugin, {
    cluster,
    isInteractive: process.stdin.isTTY === true && file !== '-',
    timeoutMs: loginTimeout ?? DEFAULT_LOGIN_TIMEOUT_MS,
    onInterrupt: command.onInterrupt,
  });
}

/** Calls the cluster with the user's own login. Throws a LoginError. */
export async function callAsUser<T>(
  command: CommandContext,
  chosen: ChosenContext,
  options: ContextOptions,
  work: Parameters<typeof import('../../adapters/kubeconfig/user_cluster.ts').withUserCluster<T>>[1],
): Promise<T> {
  const { withUserCluster } = await import('../../adapters/kubeconfig/user_cluster.ts');
  const user = await logIn(command, chosen, options);
  return withUserCluster(standaloneKubeconfig(chosen.context, chosen.cluster, user), work);
}

/** Whether Berth needs its own account in the cluster. */
export const needsAccount = ({ login }: ChosenContext, { ownAccount }: AccountOptions): boolean =>
  ownAccount || login.kind !== 'stored';

const whyAccount = ({ context, login }: ChosenContext): string => {
  const reasons = {
    exec: `The context ${context.name} logs in with a command, which the daemon never runs.`,
    provider: `The login of the context ${context.name} is renewed by kubectl alone.`,
    stored: `The login of the context ${context.name} is not stored.`,
  };
  return `${reasons[login.kind]} Berth would have a ServiceAccount of its own with these rights alone:`;
};

/** Creates the account and a token for it if the user agrees; null if the user declines. */
async function makeAccount(
  command: CommandContext,
  chosen: ChosenContext,
  options: ContextOptions,
  { namespaces, lifetime }: AccountOptions,
): Promise<ClusterCredentials | null> {
  const { out } = command;
  const objects = await ownManifest(command, namespaces);
  if (!out.isData) {
    out.note(whyAccount(chosen));
    out.errorLine(sanitize(await manifestText(objects)));
  }
  const question = `Create this in the cluster at ${chosen.cluster['server']}?`;
  if (!options.yes && !(await isAgreed(command, question))) return null;
  const { applyManifest, noteAccountUser, requestToken } = await import(
    '../../adapters/kube/service_account.ts'
  );
  const { name, namespace = '' } = objects.find(({ kind }) => kind === 'ServiceAccount')?.metadata ?? {
    name: '',
  };
  const account: ServiceAccountName = { namespace, name };
  const own = await ownUser(command);
  const lifetimeS = lifetime === undefined ? CLOUD.tokenRenewal.lifetimeS : Math.floor(lifetime / 1_000);
  const { users, token } = await callAsUser(command, chosen, options, async (http) => {
    await applyManifest(http, objects);
    return {
      users: await noteAccountUser(http, account, own, true),
      token: await requestToken(http, account, lifetimeS),
    };
  });
  const others = otherUsersText(users, own);
  if (others !== '') out.note(`Another Berth uses the ServiceAccount ${namespace}/${name}, too: ${others}.`);
  return { kubeconfig: standaloneKubeconfig(chosen.context, chosen.cluster, { token }), renew_token: true };
}

/**
 * The credentials for a context: its own login if that can be stored, otherwise an account of Berth's own;
 * null if the user declines that account. Throws a KubeconfigError or a LoginError.
 */
export async function credentialsFor(
  command: CommandContext,
  chosen: ChosenContext,
  options: ContextOptions,
  account: AccountOptions,
): Promise<ClusterCredentials | null> {
  const { lifetime } = account;
  if (lifetime !== undefined && lifetime < CLOUD.tokenRenewal.minLifetimeS * 1_000)
    throw new UsageError('--token-lifetime must be at least 10m, as clusters want it');
  const { login } = chosen;
  if (login.kind !== 'stored' || account.ownAccount) return makeAccount(command, chosen, options, account);
  const kubeconfig = standaloneKubeconfig(chosen.context, chosen.cluster, login.user);
  const { checkStandalone } = await import('../../adapters/kubeconfig/user_cluster.ts');
  checkStandalone(kubeconfig);
  if (login.file !== null)
    command.out.warn(`the token is stored as ${login.file} has it now; \`berth k8s renew\` reads it again`);
  return { kubeconfig, renew_token: false };
}
