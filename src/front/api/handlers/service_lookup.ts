// Common parts of the handlers of services, groups and agents: finding a service, and the deadlines of its
// owner.
import { serviceAddress } from '../../../protocol/address.ts';
import { fail } from '../../../protocol/errors.ts';
import { isHook } from '../../../protocol/hooks.ts';
import type { ServiceProtocol } from '../../../protocol/service.ts';
import { shortName } from '../../../protocol/stacks.ts';
import type { SpecRow } from '../../../protocol/views.ts';
import type { Ref } from '../../../runtime/actor.ts';
import { SERVICE, THREADS } from '../../../settings/limits.ts';
import type { AppContext } from '../app_context.ts';

/** The spec of a service. Throws unknown_service, so that an unknown name never starts an actor. */
export function findService(app: AppContext, name: string): SpecRow {
  const spec = app.views.spec(name);
  if (!spec) throw fail('unknown_service', `there is no service ${name}`);
  return spec;
}

/**
 * The spec of a service that a client may start. Throws unknown_service, and hook_refused for a hook other
 * than `allowed`: docs/reference.md "Hooks".
 */
export function findStartable(app: AppContext, name: string, allowed?: string): SpecRow {
  const spec = findService(app, name);
  const hook = spec.stack === null ? null : shortName(name, spec.stack);
  if (isHook(hook) && hook !== allowed)
    throw fail('hook_refused', `${name} is a hook: only its stack runs it`);
  return spec;
}

/** The actor of a service known to exist. */
export const serviceRef = (app: AppContext, name: string): Ref<ServiceProtocol> =>
  app.ref(serviceAddress(name));

/** The longest time a stop may take, in milliseconds. `grace` null: the service's own. */
export const stopMs = (spec: SpecRow, grace: number | null): number =>
  // A stop command may take as long again as the grace period.
  (grace ?? spec.stopGrace) * (spec.stop === null ? 1 : 2) + SERVICE.killTimeoutMs + THREADS.askDeadlineMs;

/**
 * The longest time a start may take, including the stop after a timeout. `timeout` null: the service's own;
 * for a task, whose start waits for its end, a fixed one.
 */
export const startMs = (spec: SpecRow, timeout: number | null): number =>
  (timeout ?? (spec.kind === 'task' ? SERVICE.taskWaitMs : spec.startTimeout)) + stopMs(spec, null);

/** The deadline of an ask that takes the sum of `parts` milliseconds. */
export const deadline = (...parts: number[]): { deadlineMs: number } => ({
  deadlineMs: Math.min(
    SERVICE.askDeadlineMs,
    parts.reduce((sum, part) => sum + part, 0),
  ),
});
