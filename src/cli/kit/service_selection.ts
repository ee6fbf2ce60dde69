// Which services are meant: those that are named, or those of a group.
import type { Client } from '../../client/create_client.ts';
import { CommandError, UsageError } from './exit_codes.ts';

/** The names given, or those of `group`. Throws a UsageError when neither is given. */
export async function selectServices(
  client: Client,
  names: readonly string[],
  group: string | undefined,
): Promise<string[]> {
  if (group === undefined) {
    if (names.length > 0) return [...new Set(names)];
    throw new UsageError(
      'say which services',
      'Name one or several, or give --group. `berth ps` lists them.',
    );
  }
  const members = (await client.services())
    .filter((service) => service.group === group)
    .map(({ name }) => name);
  if (members.length === 0)
    throw new CommandError(`there is no group ${group}`, '`berth group ls` lists the groups.');
  return [...new Set([...names, ...members])];
}
