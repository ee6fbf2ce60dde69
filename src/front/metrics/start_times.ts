// How long services took to become ready, as a histogram per service.
import type { ServiceState } from '../../protocol/service.ts';

/** The upper bounds of the buckets, in seconds. */
export const START_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export interface StartHistogram {
  /** Starts that took no longer than each bound of START_BUCKETS. */
  buckets: number[];
  count: number;
  /** The total seconds of all starts. */
  sum: number;
}

export class StartTimes {
  private readonly histograms = new Map<string, StartHistogram>();
  /** The run in which each service was last seen running. */
  private readonly runs = new Map<string, string>();

  /**
   * Processes a changed state. `isKnown` false: the service was unknown before, so it may have been running
   * for long. Several changes may arrive as one, so `starting` may never be seen. `now`: epoch milliseconds.
   */
  observe(isKnown: boolean, { name, status, process: live }: ServiceState, now: number): void {
    if (status !== 'running' || !live || this.runs.get(name) === live.run) return;
    this.runs.set(name, live.run);
    if (isKnown) this.add(name, Math.max(0, now - live.startedAt) / 1_000);
  }

  forget(name: string): void {
    this.histograms.delete(name);
    this.runs.delete(name);
  }

  of(name: string): StartHistogram | null {
    return this.histograms.get(name) ?? null;
  }

  private add(name: string, seconds: number): void {
    const histogram = this.of(name) ?? { buckets: START_BUCKETS.map(() => 0), count: 0, sum: 0 };
    this.histograms.set(name, histogram);
    histogram.count += 1;
    histogram.sum += seconds;
    for (const [index, bound] of START_BUCKETS.entries())
      if (seconds <= bound) histogram.buckets[index] = (histogram.buckets[index] ?? 0) + 1;
  }
}
