// The services that a command is for: those named, and those of a group.
import type { Client } from '../../client/create_client.ts';
import { CommandError, UsageError } from './exit_codes.ts';

/** The given names and those of `group`, each once. Throws a UsageError if there are neither. */
export async function selectServices(
  client: Client,
  names: readonly string[],
  group: string | undefined,
): Promise<string[]> {
  if (group === undefined) {
    if (names.length > 0) return [...new Set(names)];
    throw new UsageError(
      'no service is named',
      'Name one or more services, or give --group. `berth ps` lists them.',
    );
  }
  const members = (await client.services())
    .filter((service) => service.group === group)
    .map(({ name }) => name);
  if (members.length === 0)
    throw new CommandError(`there is no group ${group}`, '`berth group ls` lists the groups.');
  return [...new Set([...names, ...members])];
}
