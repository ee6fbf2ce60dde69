// How long workloads have slept and how long their wakes took, since the daemon started.
import type { WorkloadRow } from '../../protocol/cloud.ts';

/** The upper bounds of the buckets of wakes, in seconds. */
export const WAKE_BUCKETS = [1, 2.5, 5, 10, 30, 60, 120, 300];

export interface WakeHistogram {
  /** Wakes that took no longer than each bound of WAKE_BUCKETS. */
  buckets: number[];
  count: number;
  /** The total seconds of all wakes. */
  sum: number;
}

interface Observed {
  state: WorkloadRow['state'];
  /** Monotonic milliseconds at which it entered its state. */
  since: number;
  /** Milliseconds of earlier sleep. */
  asleepMs: number;
}

export class WorkloadTimes {
  private readonly workloads = new Map<string, Observed>();
  private readonly wakes = new Map<string, WakeHistogram>();

  /** Processes a row. A wake whose beginning was not seen is not counted. `now`: monotonic milliseconds. */
  observe({ id, clusterId, state }: Pick<WorkloadRow, 'id' | 'clusterId' | 'state'>, now: number): void {
    const before = this.workloads.get(id);
    if (before?.state === state) return;
    if (before?.state === 'waking' && state === 'awake')
      this.addWake(clusterId, (now - before.since) / 1_000);
    this.workloads.set(id, { state, since: now, asleepMs: this.asleepMs(id, now) });
  }

  forget(id: string): void {
    this.workloads.delete(id);
  }

  forgetCluster(id: string): void {
    this.wakes.delete(id);
  }

  /** Seconds that a workload has slept since it was first seen. */
  asleepSeconds(id: string, now: number): number {
    return this.asleepMs(id, now) / 1_000;
  }

  /** The wakes of each cluster, by its id. */
  wakesByCluster(): readonly [cluster: string, histogram: WakeHistogram][] {
    return [...this.wakes];
  }

  private asleepMs(id: string, now: number): number {
    const { state, since, asleepMs } = this.workloads.get(id) ?? { state: 'awake', since: now, asleepMs: 0 };
    return asleepMs + (state === 'asleep' ? now - since : 0);
  }

  private addWake(cluster: string, seconds: number): void {
    const histogram = this.wakes.get(cluster) ?? { buckets: WAKE_BUCKETS.map(() => 0), count: 0, sum: 0 };
    this.wakes.set(cluster, histogram);
    histogram.count += 1;
    histogram.sum += seconds;
    for (const [index, bound] of WAKE_BUCKETS.entries())
      if (seconds <= bound) histogram.buckets[index] = (histogram.buckets[index] ?? 0) + 1;
  }
}
