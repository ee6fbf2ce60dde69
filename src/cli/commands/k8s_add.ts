// berth k8s add

import { countText } from '../../presentation/format.ts';
import {
  ACCOUNT_OPTIONS,
  type AccountOptions,
  type ChosenContext,
  CONTEXT_OPTIONS,
  chooseContext,
  credentialsFor,
  manifestText,
  needsAccount,
  ownManifest,
} from '../kit/cluster_login.ts';
import { defineCommand, flagOption, textOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { hintOf } from '../kit/error_hints.ts';
import { EXIT_CODE, UsageError } from '../kit/exit_codes.ts';

/** Describes what the command would do, without doing it. */
async function describe(
  command: CommandContext,
  name: string,
  chosen: ChosenContext,
  account: AccountOptions,
): Promise<undefined> {
  const { context, cluster, login } = chosen;
  const objects = needsAccount(chosen, account) ? await ownManifest(command, account.namespaces) : [];
  const server = String(cluster['server']);
  const record = { name, context: context.name, server, login: login.kind, objects };
  const how =
    objects.length === 0
      ? 'the login of the kubeconfig is stored'
      : `these are created in the cluster:\n${await manifestText(objects)}`;
  command.out.record(
    record,
    () => `${name} would be registered (context ${context.name}, ${server}); ${how}`,
  );
}

/** Warns of the namespaces, of those given for a cluster, that have no workloads: a name may be misspelt. */
async function warnOfEmpty(
  command: CommandContext,
  { id, name }: { id: string; name: string },
  given: readonly string[] = [],
): Promise<void> {
  if (given.length === 0) return;
  const { cloud } = await command.client();
  const found = new Set((await cloud.workloads({ cluster: id })).map(({ namespace }) => namespace));
  const empty = given.filter((namespace) => !found.has(namespace));
  if (empty.length > 0)
    command.out.warn(
      `there are no workloads in ${empty.join(', ')}: check the names, and \`berth k8s rights ${name}\``,
    );
}

/** Registers the cluster and looks for its workloads. */
async function register(
  command: CommandContext,
  body: Parameters<Awaited<ReturnType<CommandContext['client']>>['cloud']['addCluster']>[0],
): Promise<number | undefined> {
  const { out } = command;
  const { cloud } = await command.client();
  const cluster = await cloud.addCluster(body);
  const { name } = body;
  try {
    const { synced } = await cloud.sync(cluster.id);
    const text = `${name} is registered, with ${countText(synced, 'workload')}`;
    out.record({ ...cluster, synced }, () => `${text}; \`berth k8s workloads\` lists them`);
    await warnOfEmpty(command, cluster, body.namespaces);
    return undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    out.record({ ...cluster, synced: null }, () => `${name} is registered, but its workloads are not known`);
    out.warn([reason, hintOf(error), `\`berth k8s sync ${name}\` tries again.`].filter(Boolean).join('\n'));
    return EXIT_CODE.failed;
  }
}

async function refuseTaken(command: CommandContext, name: string): Promise<void> {
  const { cloud } = await command.client();
  if ((await cloud.clusters()).some((cluster) => cluster.name === name))
    throw new UsageError(
      `there is a cluster ${name} already`,
      `\`berth k8s renew ${name}\` gives it new credentials; another name registers another one.`,
    );
}

export const clusterAddCommand = defineCommand({
  about:
    'Reads your kubeconfig as kubectl does, on this machine, and registers one context of it. Files that it ' +
    'names are read; a login command is run here and now, never by the daemon. A login that ends soon is not ' +
    'stored: instead, after asking, Berth gets a ServiceAccount with exactly the rights that it needs, and ' +
    'renews its token.',
  args: [{ syntax: '[name]', about: 'the name of the cluster; default: that of the context' }],
  options: {
    ...CONTEXT_OPTIONS,
    ...ACCOUNT_OPTIONS,
    name: textOption('--name <name>', 'the name of the cluster, in place of the argument'),
    provider: textOption('--provider <name>', 'provider of the cluster; default other'),
    inCluster: flagOption('--in-cluster', 'the cluster that the daemon runs in, without a kubeconfig'),
    print: flagOption('--print', 'only print the manifest of the ServiceAccount'),
    dryRun: flagOption('--dry-run', 'only say what would be done'),
  },
  examples: [
    ['berth k8s add', 'the current context'],
    ['berth k8s add staging --context arn:aws:eks:eu-west-1:1234:cluster/staging', ''],
    ['berth k8s add --print | kubectl apply -f -', 'an administrator makes the account'],
  ],
  run: async (command, [argument], options) => {
    const { provider, inCluster, print, dryRun, namespaces } = options;
    if (print) {
      command.out.raw(await manifestText(await ownManifest(command, namespaces)));
      return undefined;
    }
    const given = options.name ?? argument;
    const more = {
      ...(provider === undefined ? {} : { provider }),
      ...(namespaces.length === 0 ? {} : { namespaces: [...namespaces] }),
    };
    if (inCluster) {
      if (options.file !== undefined || options.context !== undefined)
        throw new UsageError('--in-cluster takes no kubeconfig and no context');
      if (given === undefined) throw new UsageError('give the cluster a name');
      return register(command, { name: given, ...more, in_cluster: true });
    }
    const chosen = await chooseContext(options);
    const name = given ?? chosen.context.name;
    // Do not make the user log in if the name is taken or the daemon is not running.
    await refuseTaken(command, name);
    if (dryRun) return describe(command, name, chosen, options);
    const credentials = await credentialsFor(command, chosen, options, options);
    if (credentials) return register(command, { name, ...more, ...credentials });
    command.out.note('Nothing is changed.');
    return EXIT_CODE.failed;
  },
});
