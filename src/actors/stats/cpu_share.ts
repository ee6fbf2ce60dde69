// The CPU use of runs between two passes over the process table. Knows no actor.
import type { ProcessUsage, ProcessUsageSample } from '../../adapters/process/process_usage.ts';

/** The data of a pass that the next pass needs. */
export interface CpuSample {
  nowTicks: number;
  processes: ReadonlyMap<number, ProcessUsage>;
}

export const cpuSampleOf = ({ nowTicks, runs }: ProcessUsageSample): CpuSample => ({
  nowTicks,
  processes: new Map([...runs.values()].flatMap((rows) => rows.map((row) => [row.pid, row]))),
});

/**
 * Cores kept busy by the processes of one run since `before`: 1.0 is one core. A process that has ended since
 * is not counted; one that began since counts from its beginning; an older one that was not seen before
 * counts from now on. Never negative: a pid reused by another process counts as a new process.
 */
export function coresOf(rows: readonly ProcessUsage[], nowTicks: number, before: CpuSample): number {
  let used = 0;
  let oldest = nowTicks;
  for (const { pid, startTicks, cpuTicks } of rows) {
    const earlier = before.processes.get(pid);
    if (earlier?.startTicks === startTicks) used += Math.max(0, cpuTicks - earlier.cpuTicks);
    else if (startTicks >= before.nowTicks) used += cpuTicks;
    oldest = Math.min(oldest, startTicks);
  }
  const elapsed = nowTicks - Math.max(before.nowTicks, oldest);
  return used / Math.max(1, elapsed);
}
