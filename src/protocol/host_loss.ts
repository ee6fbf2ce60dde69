// The failure of a start or stop during which the process host was lost, and its repetition where no client
// repeats it: docs/reference.md "Groups".
import { type Clock, type Failure, isFailure } from '../runtime/actor.ts';
import { SERVICE } from '../settings/limits.ts';
import { type FailureDetail, fail } from './errors.ts';

/** What has become of the service called `name` is known once the next process host answers. */
export const hostLostFailure = (name: string): Failure =>
  fail('daemon_busy', `the process host does not answer; it is asked again what it has of ${name}`, {
    isHostLost: true,
  });

const isHostLost = (error: unknown): boolean =>
  isFailure(error) && (error.detail as FailureDetail | undefined)?.isHostLost === true;

/**
 * Repeats `step` while the process host is lost, and calls `onLost` each time. Fails as `step`, also when no
 * new host answers within SERVICE.shutdown.hostReturnMs.
 */
export async function despiteHostLoss<R>(
  clock: Clock,
  step: () => Promise<R>,
  onLost: () => void = () => undefined,
): Promise<R> {
  const { hostReturnMs, hostRetryMs } = SERVICE.shutdown;
  for (let left = hostReturnMs / hostRetryMs; ; left -= 1) {
    try {
      return await step();
    } catch (error) {
      if (!isHostLost(error)) throw error;
      onLost();
      if (left <= 0) throw error;
      await new Promise<void>((resolve) => clock.after(hostRetryMs, resolve));
    }
  }
}
