// The circuit breaker of one cluster. After several consecutive calls without any answer it refuses calls for
// a while. Then a single call is let through first, and the others wait for its result.
import { fail } from '../../protocol/errors.ts';
import type { Clock } from '../../runtime/actor.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

type BreakerState =
  | { kind: 'closed'; failures: number }
  /** `until`: monotonic milliseconds; from then on one call may try. */
  | { kind: 'open'; failures: number; until: number; reason: string }
  /** One call is trying. `ended` resolves when its outcome is known. */
  | { kind: 'trying'; failures: number; reason: string; ended: Deferred<void> };

/** A call admitted by the breaker. Only its first report counts. */
export interface AdmittedCall {
  /** The cluster has answered, successfully or not. */
  onAnswer(): void;
  /** `reason` is reported to refused calls. */
  onNoAnswer(reason: string): void;
  /** The caller has given up, or the error says nothing about the cluster. */
  onGivenUp(): void;
}

/** Rejects when `signal` aborts. */
const whenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

export class CircuitBreaker {
  private readonly clock: Clock;
  private state: BreakerState = { kind: 'closed', failures: 0 };

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * Resolves when the call may be made. Fails cluster_unreachable while calls are refused; rejects when
   * `signal` aborts first.
   */
  async admit(signal: AbortSignal): Promise<AdmittedCall> {
    while (this.state.kind === 'trying') await Promise.race([this.state.ended.promise, whenAborted(signal)]);
    const { state } = this;
    if (state.kind === 'open') {
      if (this.clock.monotonic() < state.until)
        throw fail('cluster_unreachable', `${state.reason} (retrying shortly)`);
      this.state = { ...state, kind: 'trying', ended: deferred() };
    }
    return this.admitted();
  }

  private admitted(): AdmittedCall {
    const { kind, failures } = this.state;
    const isTrial = kind === 'trying';
    let isReported = false;
    const once = (report: () => void) => (): void => {
      if (!isReported) report();
      isReported = true;
    };
    return {
      onAnswer: once(() => this.become({ kind: 'closed', failures: 0 })),
      onNoAnswer: (reason) =>
        once(() => {
          // Concurrent calls fail together for one reason, so they count as one.
          if (this.state.failures === failures) this.become(this.afterFailure(failures + 1, reason));
        })(),
      onGivenUp: once(() => {
        if (isTrial && this.state.kind === 'trying')
          this.become({ kind: 'open', failures, reason: this.state.reason, until: this.clock.monotonic() });
      }),
    };
  }

  private afterFailure(failures: number, reason: string): BreakerState {
    const { failureThreshold, initialOpenMs, maxOpenMs } = CLOUD.circuitBreaker;
    if (failures < failureThreshold) return { kind: 'closed', failures };
    const pauseMs = Math.min(initialOpenMs * 2 ** (failures - failureThreshold), maxOpenMs);
    return { kind: 'open', failures, until: this.clock.monotonic() + pauseMs, reason };
  }

  private become(next: BreakerState): void {
    const { state } = this;
    this.state = next;
    if (state.kind === 'trying') state.ended.resolve();
  }
}
