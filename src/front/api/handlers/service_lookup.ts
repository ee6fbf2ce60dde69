// What the handlers of services, groups and agents have in common: the service of a name, and how long its
// owner may take.
import { fail } from '../../../protocol/errors.ts';
import type { ServiceProtocol } from '../../../protocol/service.ts';
import type { SpecRow } from '../../../protocol/views.ts';
import type { Ref } from '../../../runtime/actor.ts';
import { SERVICE, THREADS } from '../../../settings/limits.ts';
import type { AppContext } from '../app_context.ts';

/**
 * The spec of a service that exists: an unknown name must not bring an actor to life. Throws unknown_service.
 */
export function findService(app: AppContext, name: string): SpecRow {
  const spec = app.views.spec(name);
  if (!spec) throw fail('unknown_service', `there is no service ${name}`);
  return spec;
}

/** The actor of a service that exists. */
export const serviceRef = (app: AppContext, name: string): Ref<ServiceProtocol> => app.ref(`service:${name}`);

/** How long a stop of this service may take until its owner has answered; `grace` null: the service's own. */
export const stopMs = (spec: SpecRow, grace: number | null): number =>
  (grace ?? spec.stopGrace) + SERVICE.killTimeoutMs + THREADS.askDeadlineMs;

/** The same of a start, the stop after a timeout included; `timeout` null: the service's own. */
export const startMs = (spec: SpecRow, timeout: number | null): number =>
  (timeout ?? spec.startTimeout) + stopMs(spec, null);

/** The deadline of an ask whose parts take `parts` milliseconds one after the other. */
export const deadline = (...parts: number[]): { deadlineMs: number } => ({
  deadlineMs: parts.reduce((sum, part) => sum + part, 0),
});
