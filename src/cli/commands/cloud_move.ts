// berth cloud move
import { hostname } from 'node:os';
import { takeStateDir } from '../../adapters/host/host_start.ts';
import { DatabaseError } from '../../adapters/postgres/connection.ts';
import { type LeasedStore, openLeased } from '../../adapters/postgres/open_leased.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import { copyCloud, surplusRows } from '../../adapters/storage/copy_cloud.ts';
import { openDaemonStore } from '../../adapters/storage/daemon_store.ts';
import { embeddedCloudStore } from '../../adapters/storage/embedded_cloud.ts';
import { newPagesInFlight } from '../../adapters/storage/store_room.ts';
import { openVault, openVaultOfAny, type Vault, VaultError } from '../../adapters/storage/vault.ts';
import { loadSettings } from '../../settings/config.ts';
import { readDatabaseUrl } from '../../settings/database_url.ts';
import { type AddressRecord, cloudKeyPath, stateDirPath } from '../../settings/state_dir.ts';
import { statePaths } from '../../settings/state_paths.ts';
import { defineCommand, flagOption, textOption } from '../kit/command.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';

/** The name of this command as a holder of the lease begins with it. */
const HOLDER = 'berth cloud move on ';

const NOTHING_LOST = 'The store of the state directory is as it was; the command can be given again.';

/** The copy's own errors as a CommandError; any other error unchanged. */
function refusal(error: unknown, label: string): unknown {
  if (error instanceof DatabaseError)
    return new CommandError(`the database ${label}: ${error.message}`, NOTHING_LOST);
  if (error instanceof VaultError) return new CommandError(error.message, NOTHING_LOST);
  if (error instanceof Error && 'code' in error && error.code === 'standing_by')
    return new CommandError(
      'a replica has taken the database, which has a part of the copy',
      'Stop the replicas, and give the command again.',
    );
  return error;
}

/** The error when the database would lose rows, or what a replica has changed in them; null: it would not. */
async function lossOf(
  from: CloudStore,
  { store: to, earlierHolder }: LeasedStore,
): Promise<CommandError | null> {
  const surplus = await surplusRows({ from, to });
  const what = surplus.slice(0, 5).join(', ') + (surplus.length > 5 ? ' and others' : '');
  const isUsed = earlierHolder !== null && !earlierHolder.startsWith(HOLDER);
  if (surplus.length > 0)
    return new CommandError(
      `the database has what the state directory does not have: ${what}`,
      '`--replace` removes it, and replaces the rest.',
    );
  if (isUsed && (await to.clusters()).length + (await to.tokens()).length > 0)
    return new CommandError(
      `${earlierHolder} has used the database: what has changed there would be undone, such as revoked tokens`,
      '`--replace` copies all the same.',
    );
  return null;
}

/** The error while a Berth uses the state directory. */
function stillRuns({ pid, isCloudServer }: AddressRecord, stateDir: string): CommandError {
  // A service manager starts again what is only ended by a signal.
  if (isCloudServer)
    return new CommandError(
      `\`berth cloud serve\` runs (pid ${pid}) with ${stateDir}`,
      `Stop it first: \`kill ${pid}\`, or with the service manager that has started it.`,
    );
  return new CommandError(
    `a daemon runs (pid ${pid}) with ${stateDir}`,
    'Stop it first: `berth daemon stop`.',
  );
}

/** The vault of one side of the copy, `side`. A key that did not seal it is a CommandError with `hint`. */
async function vaultOf(opened: Promise<Vault>, side: string, hint: string): Promise<Vault> {
  try {
    return await opened;
  } catch (error) {
    throw error instanceof VaultError ? new CommandError(`${side}: ${error.message}`, hint) : error;
  }
}

export const cloudMoveCommand = defineCommand({
  about:
    'Copies clusters, workloads, policies, tethers, operations, tokens and savings of the state directory into the ' +
    'database of cloud.database_url. Kubeconfigs are sealed anew, with the key in cloud.key_file. No daemon may run. ' +
    'Given again, it replaces what it has copied before, and refuses to undo or remove anything else in the ' +
    'database without --replace.',
  options: {
    fromKey: textOption(
      '--from-key <file>',
      'the key file of the state directory; default cloud.key in it, or cloud.key_file',
      'file',
    ),
    replace: flagOption(
      '--replace',
      'remove what else the database has, and undo what a Berth has changed there',
    ),
  },
  examples: [
    [
      'BERTH_DATABASE_URL=postgresql://berth@localhost/berth berth cloud move',
      'then start the daemon with it',
    ],
  ],
  run: async ({ globalOptions, out }, _args, { replace, fromKey }) => {
    const { cloud } = await loadSettings(globalOptions.config, process.env);
    if (cloud.database_url === '')
      throw new UsageError('cloud.database_url is not set', 'Set it, or BERTH_DATABASE_URL.');
    const stateDir = stateDirPath(globalOptions.stateDir, process.env);
    const running = runningDaemon(stateDir);
    if (running) throw stillRuns(running, stateDir);
    if (!(await takeStateDir(stateDir)))
      throw new CommandError(`another Berth starts with ${stateDir}`, 'Stop it first.');
    const keyFile = cloudKeyPath(cloud.key_file, stateDir);
    const address = readDatabaseUrl(cloud.database_url);
    const embedded = await openDaemonStore({
      ...{ paths: statePaths(stateDir), inFlight: newPagesInFlight(), report: (text) => out.warn(text) },
      // Leaves the stored services unchanged.
      ...{ restore: null, isAlone: false, seal: (stored) => stored },
    });
    try {
      const from = embeddedCloudStore(embedded);
      if ((await from.canary.read()) === null)
        throw new CommandError(`${stateDir} has no clusters`, 'Name the state directory with --state-dir.');
      const opener = await vaultOf(
        openVaultOfAny(
          fromKey ? [fromKey] : [...new Set([statePaths(stateDir).cloudKey, keyFile])],
          from.canary,
        ),
        `the state directory ${stateDir}`,
        'Name its key file with --from-key.',
      );
      const target = await openLeased(address, `${HOLDER}${hostname()}`);
      try {
        const loss = replace ? null : await lossOf(from, target);
        if (loss !== null) throw loss;
        const sealer = await vaultOf(
          openVault(keyFile, target.store.canary),
          `the database ${address.label}`,
          'Name the key file of its replicas in cloud.key_file or BERTH_CLOUD_KEY_FILE.',
        );
        await target.claim();
        const copied = await copyCloud({ from, opener, to: target.store, sealer });
        const { clusters, workloads, policies, tokens } = copied;
        out.record(
          { ...copied },
          () =>
            `${clusters} clusters, ${workloads} workloads, ${policies} policies, ${tokens} tokens are in the database`,
        );
      } finally {
        await target.close();
      }
    } catch (error) {
      throw refusal(error, address.label);
    } finally {
      await embedded.close();
    }
  },
});
