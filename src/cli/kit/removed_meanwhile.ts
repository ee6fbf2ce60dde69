// Handles services that another command removes at the same time.
import type { Client } from '../../client/create_client.ts';
import type { ServiceDetail } from '../../client/records.ts';
import { hasErrorCode } from './context.ts';
import { CommandError } from './exit_codes.ts';

/** The value of `work`; null if its service is no longer registered. */
export async function unlessRemoved<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (hasErrorCode(error, 'unknown_service')) return null;
    throw error;
  }
}

/** The details of those `names` that are still registered. */
export async function detailsOf(client: Client, names: readonly string[]): Promise<ServiceDetail[]> {
  const details = await Promise.all(names.map((name) => unlessRemoved(client.service(name))));
  return details.filter((detail) => detail !== null);
}

/** The value of `work` on the registered `name`. Throws a CommandError if another command removes `name`. */
export async function whileRegistered<T>(name: string, work: Promise<T>): Promise<T> {
  const value = await unlessRemoved(work);
  if (value !== null) return value;
  throw new CommandError(`${name} was removed by another command meanwhile`, 'Try again when that is done.');
}
