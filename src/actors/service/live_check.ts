// The live-check of one running service, docs/reference.md "Live-check": when it probes, and when the
// process counts as failed. It costs a timer, and nothing for services without one.

import type { LiveCheckPlan } from '../../protocol/checks.ts';
import type { LastCheck } from '../../protocol/service.ts';
import type { Clock } from '../../runtime/actor.ts';
import type { AskCheck } from './check_probes.ts';

export interface LiveCheck {
  /** The result of the last probe; null before the first one has ended. */
  last(): LastCheck | null;
  stop(): void;
}

/**
 * Probes after each interval, beginning after the first one. Calls `onFailed` once and then stops probing.
 */
export function startLiveCheck(
  clock: Clock,
  ask: AskCheck,
  { text, intervalMs, timeoutMs, failures }: LiveCheckPlan,
  onFailed: (check: LastCheck) => void,
): LiveCheck {
  let last: LastCheck | null = null;
  let failed = 0;
  let cancel = (): void => {};
  const wait = (): void => {
    cancel = clock.after(intervalMs, step);
  };
  const step = (): void => {
    cancel = ask(timeoutMs, ({ status, error }) => {
      last = { url: text, at: clock.now(), status, error };
      failed = error === null ? 0 : failed + 1;
      if (failed >= failures) onFailed(last);
      else wait();
    });
  };
  wait();
  return { last: () => last, stop: () => cancel() };
}
