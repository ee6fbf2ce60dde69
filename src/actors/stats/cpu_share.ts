// How busy runs were between two passes over the process table. Knows no actor.
import type { ProcessUsage, ProcessUsageSample } from '../../adapters/process/process_usage.ts';

/** What a pass must know of the one before it. */
export interface CpuSample {
  nowTicks: number;
  processes: ReadonlyMap<number, ProcessUsage>;
}

export const cpuSampleOf = ({ nowTicks, runs }: ProcessUsageSample): CpuSample => ({
  nowTicks,
  processes: new Map([...runs.values()].flatMap((rows) => rows.map((row) => [row.pid, row]))),
});

/**
 * Cores that the processes of one run kept busy since `before`: 1.0 is one core. What a process used that has
 * ended since is not known and not counted; one that began since counts from its beginning; one that is older
 * and was not seen before counts from now on. Never negative: a pid that another process has is another
 * process.
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
