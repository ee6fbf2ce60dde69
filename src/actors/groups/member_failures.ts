// The failures of a group's members: conditions that cannot hold, and dependencies that have failed.
import { type Dependency, dependencyName } from '../../protocol/dependency_order.ts';
import { type FailureDetail, fail } from '../../protocol/errors.ts';
import type { Member } from '../../protocol/registry.ts';
import { Failure, isFailure } from '../../runtime/actor.ts';

const NO_TASK_HINT = 'Wait until it is ready instead, or register it with kind task.';

/** Fails for a condition that can never hold, because only tasks complete. */
export function refuseEndless(members: readonly Member[]): void {
  const services = new Set(members.flatMap(({ name, kind }) => (kind === 'task' ? [] : [name])));
  for (const { name, dependsOn } of members)
    for (const one of dependsOn) {
      if (typeof one === 'string' || one.condition !== 'completed' || !services.has(one.name)) continue;
      const why = `${name} cannot be started: it waits until ${one.name} has completed`;
      throw fail('dependency_failed', `${why}, and ${one.name} is no task`, { hint: NO_TASK_HINT });
    }
}

/**
 * The failure of the `waiting` members that the failure of `first` keeps from starting; undefined if they
 * only have plain dependencies on services: docs/reference.md "Dependencies".
 */
export function dependencyFailure(
  members: readonly Member[],
  waiting: readonly Member[],
  first: string | undefined,
  error: unknown,
): Failure | undefined {
  if (first === undefined || !isFailure(error)) return undefined;
  const isTask = members.some(({ name, kind }) => name === first && kind === 'task');
  const isHeld = (one: Dependency): boolean =>
    dependencyName(one) === first && (isTask || typeof one !== 'string');
  const held = waiting.filter(({ dependsOn }) => dependsOn.some(isHeld)).map(({ name }) => name);
  if (held.length === 0) return undefined;
  const message = `${held.join(', ')} not started: ${first} is needed, and ${error.message}`;
  const { hint }: FailureDetail = error.detail ?? {};
  return fail('dependency_failed', message, hint === undefined ? {} : { hint });
}

/** Like `act`, but failure messages name the member. */
export function namingMember<A extends unknown[]>(
  act: (name: string, ...rest: A) => Promise<void>,
): (name: string, ...rest: A) => Promise<void> {
  return async (name, ...rest) => {
    try {
      await act(name, ...rest);
    } catch (error) {
      if (!isFailure(error) || error.message.startsWith(`${name} `)) throw error;
      throw new Failure(error.code, `${name}: ${error.message}`, error.detail);
    }
  };
}
