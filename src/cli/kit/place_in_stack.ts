// Puts a service that is registered by hand into the stack of the current folder.
import type { Client } from '../../client/create_client.ts';
import { isShortName, nameInStack } from '../../protocol/stacks.ts';
import { flagOption } from './command.ts';
import type { CommandContext } from './context.ts';
import { chosenStack, projectOption, SCOPE_OPTIONS, type StackChoice, UNREGISTERED } from './stack_scope.ts';

/** SCOPE_OPTIONS for commands whose `-p` is a port. */
export const PLACE_OPTIONS = {
  stack: SCOPE_OPTIONS.stack,
  project: projectOption('--project <name>'),
  all: flagOption('-A, --all', 'in no stack, though this folder is of one'),
};

export interface PlaceInStack {
  /** null: no stack. */
  stack: string | null;
  /** The registered name of the service called `name` in the stack. */
  nameOf(name: string): string;
  /** The registered name of a group; default: the stack's own group. */
  groupOf(group: string | undefined): string | undefined;
}

/** The place of a service registered from this folder; registers the folder's stack if it is new. */
export async function placeInStack(
  context: CommandContext,
  client: Client,
  choice: StackChoice,
): Promise<PlaceInStack> {
  const chosen = await chosenStack(client, { ...choice, mayBeNew: true });
  const stack =
    chosen === UNREGISTERED
      ? await (await import('../project_commands.ts')).registerStackHere(context, client, choice)
      : chosen;
  if (stack === null) return { stack, nameOf: (name) => name, groupOf: (group) => group };
  const whole = (name: string): string => (isShortName(name) ? nameInStack(stack, name) : name);
  return { stack, nameOf: whole, groupOf: (group) => (group === undefined ? stack : whole(group)) };
}
