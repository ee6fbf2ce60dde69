import type { StopResult } from '../../protocol/service.ts';
import { isFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';

/**
 * A stop of what has no process: what its last run has left behind is ended, and a crash is dealt with from now on. `graceMs`
 * null: the service's own. Fails daemon_busy when the host does not answer.
 */
export async function acceptEnd(
  life: ServiceLifecycle,
  effects: ServiceEffects,
  name: string,
  graceMs: number | null,
): Promise<StopResult> {
  const { end } = life;
  const {
    port = 0,
    stopSignal = 'SIGTERM',
    stopGrace = SERVICE.defaultStopGraceMs,
  } = life.stored?.spec ?? {};
  const answer = { name, status: 'stopped', exitCode: null, signal: null } as const;
  if (!end) {
    const portFree = port === 0 || (await effects.portHolder(port)) === null;
    return { ...answer, escalated: false, reaped: 0, left: [], portFree, ms: 0 };
  }
  const ended = effects.stopRun(end.run, port, stopSignal, graceMs ?? stopGrace);
  const { exitUnknown: _, ...report } = await ended.catch((error: unknown) => {
    throw isFailure(error) ? life.busy() : error;
  });
  if (life.end?.run === end.run && !end.whole) await life.keep({ ...end, status: 'stopped', whole: true });
  return { ...answer, ...report, exitCode: end.exitCode, signal: end.signal };
}
