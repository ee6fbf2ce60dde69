// The circuit breaker of one cluster: after several calls without any answer it refuses calls for a while.
import { fail } from '../../protocol/errors.ts';
import type { Clock } from '../../runtime/actor.ts';
import { CLOUD } from '../../settings/limits.ts';

type BreakerState =
  | { kind: 'closed'; failures: number }
  /** `until`: monotonic milliseconds; calls pass again from then on. */
  | { kind: 'open'; failures: number; until: number; reason: string };

const CLOSED: BreakerState = { kind: 'closed', failures: 0 };

export class CircuitBreaker {
  private readonly clock: Clock;
  private state = CLOSED;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Throws cluster_unreachable while calls are refused. */
  check(): void {
    if (this.state.kind === 'open' && this.isPaused(this.state))
      throw fail('cluster_unreachable', `${this.state.reason} (it is tried again shortly)`);
  }

  onAnswer(): void {
    this.state = CLOSED;
  }

  /** Counts a call without an answer; `reason` is what refused calls are told. */
  onNoAnswer(reason: string): void {
    // Calls that were under way when it opened tell nothing new.
    if (this.state.kind === 'open' && this.isPaused(this.state)) return;
    const { failureThreshold, initialOpenMs, maxOpenMs } = CLOUD.circuitBreaker;
    const failures = this.state.failures + 1;
    const pauseMs = Math.min(initialOpenMs * 2 ** (failures - failureThreshold), maxOpenMs);
    this.state =
      failures < failureThreshold
        ? { kind: 'closed', failures }
        : { kind: 'open', failures, until: this.clock.monotonic() + pauseMs, reason };
  }

  private isPaused({ until }: { until: number }): boolean {
    return this.clock.monotonic() < until;
  }
}
