// The answers to calls that are not awaited: docs/reference.md "Calls that are not awaited".
import type { SleepReply, StartReply, StopReply } from '../../../protocol/service.ts';
import { HTTP } from '../../../settings/limits.ts';
import type { AppContext } from '../app_context.ts';
import type { RequestContext } from '../handler.ts';

/**
 * The answer of `work`. With `wait=false`, if it has not ended soon, `present()` with 202: it goes on, and
 * its outcome shows in the states and events of services.
 */
export function answerSoon<A, P>(
  request: RequestContext<{ readonly wait: boolean | null }>,
  work: Promise<A>,
  present: () => P,
): Promise<A | P> {
  if (request.query.wait !== false) return work;
  return new Promise((resolve, reject) => {
    const cancel = request.app.clock.after(HTTP.unawaitedMs, () => {
      request.status = 202;
      resolve(present());
    });
    work.then(resolve, reject).finally(cancel);
  });
}

/** The present state of a service, in the shape of an answer to its sleep. */
export const presentStatus = ({ views }: AppContext, name: string): SleepReply => ({
  name,
  status: views.state(name)?.status ?? 'stopped',
});

/** The same, in the shape of an answer to its start. */
export const presentStart = (app: AppContext, name: string): StartReply => ({
  ...presentStatus(app, name),
  pid: app.views.state(name)?.process?.pid ?? null,
});

/** The same, in the shape of a member in the answer to the stop of its group. */
export function presentEnd(app: AppContext, name: string): SleepReply & Pick<StopReply, 'exitCode'> {
  const state = app.views.state(name);
  const exitCode = state?.process ? null : (state?.end?.exitCode ?? null);
  return { ...presentStatus(app, name), exitCode };
}
