// The hooks of a stack: docs/reference.md "Hooks". They are tasks of the stack: `up` runs one of them, and
// the removal of the stack runs the other.
import type { Client } from '../../client/create_client.ts';
import type { ServiceDetail } from '../../client/records.ts';
import type { Project } from '../../project/read_project.ts';
import { HOOKS } from '../../protocol/hooks.ts';
import { nameInStack } from '../../protocol/stacks.ts';
import type { CommandContext } from './context.ts';
import { CommandError } from './exit_codes.ts';
import { createProgress } from './progress.ts';
import { hooksInStack } from './project_stack.ts';
import { registerService } from './registration_diff.ts';
import { unlessRemoved, whileRegistered } from './removed_meanwhile.ts';
import { startContinuesNote } from './start_service.ts';

/** Registers the hooks of `project` in `stack`, and removes hooks that the file no longer has. */
export async function registerHooks(
  client: Client,
  project: Project,
  stack: string,
  registered: ReadonlyMap<string, ServiceDetail>,
): Promise<void> {
  const hooks = hooksInStack(project, stack);
  for (const hook of hooks) await registerService(client, project.file, hook, registered.get(hook.name));
  const names = hooks.map(({ name }) => name);
  const gone = Object.values(HOOKS).map((hook) => nameInStack(stack, hook));
  for (const name of gone)
    if (!names.includes(name) && registered.has(name)) await unlessRemoved(client.remove(name));
}

/**
 * Runs the hook `create` unless it has completed before, even with another definition; joins a run in
 * progress. Rejects with the error of its start, which includes its last lines.
 */
export async function runCreateHook(
  context: CommandContext,
  client: Client,
  { hooks }: Project,
  stack: string,
): Promise<void> {
  if (!hooks.some(({ name }) => name === HOOKS.create)) return;
  const name = nameInStack(stack, HOOKS.create);
  if ((await whileRegistered(name, client.service(name))).status === 'completed') return;
  if (process.env['BERTH_SERVICE'] === name)
    throw new CommandError(
      'the hook create runs this command, which waits for the hook',
      'Take `berth up` out of the hook: the services start after it.',
    );
  const progress = createProgress(context.out);
  const removeInterrupt = context.onInterrupt(() => {
    progress.stop();
    context.out.note(startContinuesNote([HOOKS.create]));
  });
  progress.begin(HOOKS.create, 'running');
  try {
    await whileRegistered(name, client.start(name, { ifChanged: true }));
  } finally {
    progress.stop();
    removeInterrupt();
  }
  context.out.note(`The hook create of ${stack} has run; \`berth logs ${HOOKS.create}\` shows its output.`);
}
