// Counts the policy restarts of a service since a client last started it, and applies its rule to the next
// one.
import type { RunMetadata } from '../../protocol/host.ts';
import type { LastEnd, RestartPolicy, RestartRule } from '../../protocol/service.ts';
import type { Failure } from '../../runtime/actor.ts';
import {
  type Backoff,
  classifyEnd,
  completeRestartRule,
  countedRestarts,
  type EndedRun,
  nextRestart,
  pendingRestart,
} from './restart_policy.ts';
import type { StartedBy } from './run.ts';

export class RestartCounter {
  /** The total number. */
  total = 0;
  /** When the restarts that count for the rule happened, in epoch milliseconds. */
  times: readonly number[] = [];
  /** The number of consecutive restarts whose runs did not stay up. */
  private attempt = 0;
  private readonly restart: () => RestartPolicy | RestartRule;

  /** `restart`: the registered policy or rule. */
  constructor(restart: () => RestartPolicy | RestartRule) {
    this.restart = restart;
  }

  /** A client starts the service. */
  reset(): void {
    this.total = this.attempt = 0;
    this.times = [];
  }

  /**
   * Continues from the run of an earlier daemon, whose restarts are an upper bound for the consecutive ones.
   */
  resume({ restarts, restartTimes = [] }: RunMetadata): void {
    this.total = this.attempt = restarts;
    this.times = restartTimes;
  }

  /** Continues from an end that an earlier daemon stored, perhaps with a pending restart. */
  resumeEnded(end: LastEnd | null): void {
    this.total = end?.restarts ?? 0;
    this.times = end?.restart?.times ?? [];
  }

  /** A restart begins. */
  begin({ attempt }: Backoff, now: number): void {
    const rule = completeRestartRule(this.restart());
    this.total += 1;
    this.attempt = attempt;
    this.times = rule.max === null ? [] : [...countedRestarts(this.times, rule, now), now];
  }

  /** The record of an end, and the restart that follows it. */
  afterEnd(ended: Omit<EndedRun, 'attempt' | 'times'>, now: number): ReturnType<typeof classifyEnd> {
    const { attempt, times, total } = this;
    const result = classifyEnd({ ...ended, attempt, times }, completeRestartRule(this.restart()), now);
    if (total > 0) result.end.restarts = total;
    return result;
  }

  /** The restart that follows, as the record of the last end has it. */
  pending(backoff: Backoff): NonNullable<LastEnd['restart']> {
    return pendingRestart(backoff, this.times);
  }

  /**
   * The restart that follows an attempt that started no process. A client is told instead, and after a full
   * disk, which passes, file_watch.ts repeats its own.
   */
  afterNoProcess(by: StartedBy, { code }: Failure, now: number): ReturnType<typeof nextRestart> {
    if (by === 'client' || (by === 'change' && code === 'storage_full')) return null;
    const { attempt, times } = this;
    return nextRestart(completeRestartRule(this.restart()), { failed: true, upMs: 0, attempt, times }, now);
  }
}
