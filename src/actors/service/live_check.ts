// The live-check of one running service, docs/reference.md "Live-check": when it probes, and when the
// process counts as failed. It costs a timer, and nothing for services without one.

import type { LiveCheckPlan } from '../../protocol/checks.ts';
import type { LastCheck } from '../../protocol/service.ts';
import type { Clock } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { AskCheck } from './check_probes.ts';
import { CheckTime } from './check_time.ts';

export interface LiveCheck {
  /** The result of the last probe; null before the first one has ended. */
  last(): LastCheck | null;
  stop(): void;
}

/**
 * Probes after each interval, beginning after the first one. Calls `onFailed` once and then stops probing. A
 * probe that fails while the daemon stands still, or that the process host does not answer, says nothing
 * about the service, and is made again.
 */
export function startLiveCheck(
  clock: Clock,
  ask: AskCheck,
  { text, intervalMs, timeoutMs, failures }: LiveCheckPlan,
  onFailed: (check: LastCheck) => void,
): LiveCheck {
  let last: LastCheck | null = null;
  let failed = 0;
  const time = new CheckTime(clock);
  let cancel = (): void => {};
  const wait = (): void => {
    cancel = clock.after(intervalMs, step);
  };
  const step = (): void => {
    time.start(null, () => {});
    const abort = ask(timeoutMs, ({ status, error, isUnknown }) => {
      const isInterrupted = time.stop();
      if (isUnknown) {
        cancel = clock.after(Math.min(intervalMs, SERVICE.hostRetryMs), step);
        return;
      }
      if (error !== null && isInterrupted) {
        step();
        return;
      }
      last = { url: text, at: clock.now(), status, error };
      failed = error === null ? 0 : failed + 1;
      if (failed >= failures) onFailed(last);
      else wait();
    });
    cancel = () => {
      time.stop();
      abort();
    };
  };
  wait();
  return { last: () => last, stop: () => cancel() };
}
