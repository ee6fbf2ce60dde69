// berth rm

import { leftOutServices } from '../../adapters/storage/damaged_rows.ts';
import { namedUrl } from '../../client/local_daemon.ts';
import { countText } from '../../presentation/format.ts';
import { statePaths } from '../../settings/state_paths.ts';
import { runBatch } from '../kit/batch.ts';
import { defineCommand, FORCE_OPTIONS, flagOption } from '../kit/command.ts';
import { type CommandContext, hasErrorCode } from '../kit/context.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { namedServices } from '../kit/service_selection.ts';
import { chosenStack, SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

/** The error for a service whose damaged record was left out; undefined if `error` has another reason. */
async function leftOutError(
  context: CommandContext,
  name: string,
  error: unknown,
): Promise<CommandError | undefined> {
  const isElsewhere = namedUrl(context.globalOptions, process.env) !== undefined;
  if (isElsewhere || !hasErrorCode(error, 'unknown_service')) return undefined;
  const { damaged } = statePaths((await context.local()).stateDir);
  if (!leftOutServices(damaged).has(name)) return undefined;
  return new CommandError(
    'its record was damaged or lost',
    'Register it again, which takes over its process and logs, then remove it.',
  );
}

export const rmCommand = defineCommand({
  about:
    'Stops a running service first. Its name no longer resolves, and its logs are deleted. With --stack and ' +
    'no names, removes the whole stack with its agents and forgets it.',
  args: [{ syntax: '[names...]', about: 'the services', completes: 'service' }],
  options: {
    force: flagOption(
      '--force',
      `forget a stack although its hook remove fails; ${FORCE_OPTIONS.force.about}`,
    ),
    ...SCOPE_OPTIONS,
  },
  examples: [['berth rm --stack shop--login', 'when its worktree is no longer needed']],
  run: async (context, names, { force, ...choice }) => {
    const isNamed = choice.stack !== undefined || choice.project !== undefined;
    if (choice.all && isNamed)
      throw new UsageError('-A covers all stacks: it does not go with --stack or --project');
    const client = await context.clientFor(force);
    if (names.length > 0) {
      const selected = namedServices(await stackScope(client, choice), names);
      return runBatch(context, selected, 'removing', async (name) => ({
        record: await client.remove(name).catch(async (error: unknown) => {
          throw (await leftOutError(context, name, error)) ?? error;
        }),
        text: 'is removed',
      }));
    }
    const stack = isNamed ? await chosenStack(client, { ...choice, ends: true }) : null;
    if (stack === null)
      throw new UsageError('no service is named', 'Name one or more services, or a whole stack by --stack.');
    const removed = await client.removeStack(stack, { force: force || undefined });
    const count = countText(removed.services.length, 'service');
    context.out.record(removed, () => `${stack} is removed with ${count}`);
    return undefined;
  },
});
