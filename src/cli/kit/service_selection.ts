// Selects the services for a command: the named ones, and those of a group.
import type { Client } from '../../client/create_client.ts';
import type { NamedServices } from './batch.ts';
import { CommandError, UsageError } from './exit_codes.ts';
import { type StackChoice, type StackScope, stackScope } from './stack_scope.ts';

/** The services called `names` in `scope`, each once. */
export const namedServices = (scope: StackScope, names: readonly string[]): NamedServices => ({
  names: [...new Set(names.map(scope.full))],
  label: scope.label,
});

/** The given names and those of `group`, each once. Throws a UsageError if there are neither. */
export async function selectServices(
  client: Client,
  names: readonly string[],
  { group, ...choice }: StackChoice & { group: string | undefined },
): Promise<NamedServices> {
  if (names.length === 0 && group === undefined) {
    throw new UsageError(
      'no service is named',
      'Name one or more services, or give --group. `berth ps` lists them.',
    );
  }
  const scope = await stackScope(client, choice);
  if (group === undefined) return namedServices(scope, names);
  const members = (await client.services())
    .filter((service) => service.group === scope.group(group))
    .map(({ name }) => name);
  if (members.length === 0)
    throw new CommandError(`there is no group ${group}`, '`berth group ls` lists the groups.');
  return namedServices(scope, [...names, ...members]);
}
