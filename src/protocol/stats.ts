/** The usage history kept for each range: `points` points, one every `stepMs`. */
export const USAGE_RANGES = {
  hour: { stepMs: 10_000, points: 360 },
  day: { stepMs: 60_000, points: 1_440 },
} as const;
export type UsageRange = keyof typeof USAGE_RANGES;

/** A service's usage in one step: the average of its cores, and its peak memory. */
export interface UsagePoint {
  /** When the step began, in milliseconds since the epoch. */
  at: number;
  cpu: number;
  rssMB: number;
}

export interface StatsRow {
  name: string;
  run: string;
  /** In cores: 1.0 is one busy core. */
  cpu: number;
  rssMB: number;
  /** Processor time since the row before, in seconds. */
  usedSeconds: number;
}

/** Measures every running service's process tree in one pass over the process table every 2 seconds. */
export interface StatsProtocol {
  /**
   * Measures a process from now on. Statistics events are emitted only while `running`. The service is told
   * when memory exceeds `limitMB`.
   */
  track(message: {
    name: string;
    run: string;
    pid: number;
    startTicks: number;
    running: boolean;
    limitMB?: number;
  }): null;
  forget(message: { name: string; run: string }): null;
  /** A service's past usage, the oldest point first. Steps in which it did not run have no point. */
  history(message: { name: string; range: UsageRange }): { points: UsagePoint[] };
}
