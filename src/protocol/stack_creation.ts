// The rule that nothing of a stack starts before its hook `create` has completed: docs/reference.md "Hooks".
import type { Failure } from '../runtime/actor.ts';
import { fail } from './errors.ts';
import { HOOKS } from './hooks.ts';
import type { LastEnd, ServiceSpec, StoredService } from './service.ts';
import { isHookOf, nameInStack } from './stacks.ts';

/** What the store knows of services, by name. */
interface ServiceRecords {
  table(name: 'services'): { get(name: string): StoredService | undefined };
  table(name: 'ends'): { get(name: string): LastEnd | undefined };
}

/** Why the hook whose last run ended as `end` does not count as completed; undefined: it never ended. */
function creationFault(end: LastEnd | undefined): string {
  if (!end) return 'has not completed';
  if (end.undone) return 'must run again, because the hook remove has been started since';
  if (end.status === 'stopped') return 'was stopped';
  return end.exitCode === null ? 'failed' : `failed with exit code ${end.exitCode}`;
}

/**
 * The failure hook_refused of a start of a service, if its stack has a hook `create` that has not completed;
 * otherwise null. Agents may start: they may be what mends the hook.
 */
export function uncreatedFailure(
  { agent, name, stack }: Pick<ServiceSpec, 'agent' | 'name' | 'stack'>,
  records: ServiceRecords,
): Failure | null {
  if (!stack || agent || isHookOf(stack, name)) return null;
  const hook = nameInStack(stack, HOOKS.create);
  const end = records.table('ends').get(hook);
  if (end?.status === 'completed' || !records.table('services').get(hook)) return null;
  return fail('hook_refused', `${name} is not started: the hook create of ${stack} ${creationFault(end)}`, {
    hint: `\`berth up\` runs it again or waits for it. \`berth logs ${hook}\` shows its output.`,
  });
}

/** Throws the failure hook_refused of `uncreatedFailure`, if there is one. */
export function refuseUncreated(...args: Parameters<typeof uncreatedFailure>): void {
  const failure = uncreatedFailure(...args);
  if (failure) throw failure;
}
