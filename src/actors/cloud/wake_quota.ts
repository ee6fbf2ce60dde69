// The wakes of each API token and each person within the last hour: docs/reference.md "Quotas". In memory
// alone: a daemon that starts again counts from 0.
import { fail } from '../../protocol/errors.ts';
import type { Clock } from '../../runtime/actor.ts';

const HOUR_MS = 3_600_000;

export class WakeQuota {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private readonly perHour: number;
  /** When each subject has woken something (monotonic), oldest first; none is older than an hour. */
  private readonly wakes = new Map<string, number[]>();

  /** `perHour` 0: any number. */
  constructor(clock: Pick<Clock, 'monotonic'>, perHour: number) {
    this.clock = clock;
    this.perHour = perHour;
  }

  /**
   * Runs `wake` for `subject` (undefined: somebody without a quota), and counts it from its beginning, unless
   * it fails. Fails quota_exceeded when the last hour already has as many as allowed, and as `wake` does.
   */
  async count<R>(subject: string | undefined, wake: () => Promise<R>): Promise<R> {
    if (subject === undefined || this.perHour === 0) return wake();
    const now = this.clock.monotonic();
    this.take(subject, now);
    try {
      return await wake();
    } catch (error) {
      this.giveBack(subject, now);
      throw error;
    }
  }

  /** A quota with the same wakes so far. Counts in one do not change the other. */
  copy(): WakeQuota {
    const copy = new WakeQuota(this.clock, this.perHour);
    for (const [subject, times] of this.wakes) copy.wakes.set(subject, [...times]);
    return copy;
  }

  private take(subject: string, now: number): void {
    this.forget(now - HOUR_MS);
    const times = this.wakes.get(subject) ?? [];
    const [oldest = now] = times;
    if (times.length >= this.perHour) {
      const minutes = Math.max(1, Math.ceil((oldest + HOUR_MS - now) / 60_000));
      throw fail(
        'quota_exceeded',
        `${this.perHour} workloads were woken within the last hour, the most allowed`,
        {
          hint: `Try again in ${minutes} min, or ask an administrator to raise cloud.quota_wakes_per_hour.`,
        },
      );
    }
    times.push(now);
    this.wakes.set(subject, times);
  }

  private giveBack(subject: string, at: number): void {
    const times = this.wakes.get(subject) ?? [];
    // One that took an hour to fail is forgotten already.
    const index = times.indexOf(at);
    if (index >= 0) times.splice(index, 1);
  }

  private forget(before: number): void {
    for (const [subject, times] of this.wakes) {
      while (times.length > 0 && (times[0] ?? 0) <= before) times.shift();
      if (times.length === 0) this.wakes.delete(subject);
    }
  }
}
