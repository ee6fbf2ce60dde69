// How often a service was restarted by its policy since a client's last start.
import type { RunMetadata } from '../../protocol/host.ts';
import type { LastEnd } from '../../protocol/service.ts';
import { type Backoff, type CompleteRestartRule, countedRestarts } from './restart_policy.ts';

export class RestartCounter {
  /** All of them. */
  total = 0;
  /** Consecutive ones that did not stay up. */
  attempt = 0;
  /** When those were that the rule counts, in epoch milliseconds. */
  times: readonly number[] = [];

  /** A client starts the service. */
  reset(): void {
    this.total = this.attempt = 0;
    this.times = [];
  }

  /** Goes on from the run of an earlier daemon: its restarts are an upper bound for the consecutive ones. */
  resume({ restarts, restartTimes = [] }: RunMetadata): void {
    this.total = this.attempt = restarts;
    this.times = restartTimes;
  }

  /** Goes on from the pending restart of an earlier daemon. */
  resumePending({ times = [] }: NonNullable<LastEnd['restart']>): void {
    this.times = times;
  }

  /** A restart begins. */
  begin({ attempt }: Backoff, rule: CompleteRestartRule, now: number): void {
    this.total += 1;
    this.attempt = attempt;
    this.times = rule.max === null ? [] : [...countedRestarts(this.times, rule, now), now];
  }
}
