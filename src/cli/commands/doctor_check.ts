// What a check of `berth doctor` is, and the checks that need the settings or the daemon.
import { isSuspended } from '../../adapters/process/process_table.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import type { Client } from '../../client/create_client.ts';
import { type CommandContext, hasErrorCode } from '../kit/context.ts';
import type { DoctorFinding } from './doctor_finding.ts';

export type DoctorCheck = (context: CommandContext) => Promise<DoctorFinding[]>;

type Local = Awaited<ReturnType<CommandContext['local']>>;
type LocalCheck = (context: CommandContext, local: Local) => Promise<DoctorFinding[]>;

/** A check that needs the settings. It reports nothing if they cannot be read, which `settings` reports. */
export const withLocal =
  (check: LocalCheck): DoctorCheck =>
  async (context) => {
    const local = await context.local().catch(() => undefined);
    return local ? check(context, local) : [];
  };

const versions = new WeakMap<Client, ReturnType<Client['version']>>();

/** What the daemon says of itself. It is asked once for all checks. Rejects as every call does. */
export function versionOf(client: Client): ReturnType<Client['version']> {
  const asked = versions.get(client) ?? client.version();
  versions.set(client, asked);
  return asked;
}

/** Whether the daemon lets a request wait to its deadline, as it then would every other one. */
export async function isSilent({ client, stateDir }: Local): Promise<boolean> {
  const running = runningDaemon(stateDir);
  if (running && isSuspended(running.pid)) return true;
  return versionOf(client).then(
    () => false,
    (error) => hasErrorCode(error, 'deadline'),
  );
}

/** A check that asks the daemon. It reports nothing if none runs, or is silent, which `daemon` reports. */
export const withDaemon = (check: LocalCheck): DoctorCheck =>
  withLocal(async (context, local) =>
    runningDaemon(local.stateDir) && !(await isSilent(local)) ? check(context, local) : [],
  );

/** The message of whatever was thrown. */
export const errorMessage = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
