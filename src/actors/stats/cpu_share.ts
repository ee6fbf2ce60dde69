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

export interface CpuUse {
  /** Processor time in ticks. */
  usedTicks: number;
  /** 1.0 is one busy core. */
  cores: number;
}

/**
 * The processor time of the processes of one run since `before`, and the cores it kept busy. A process that
 * has ended since is not counted; one that began since counts from its beginning; an older one that was not
 * seen before counts from now on. Never negative: a pid reused by another process counts as a new process.
 */
export function cpuUseOf(rows: readonly ProcessUsage[], nowTicks: number, before: CpuSample): CpuUse {
  let usedTicks = 0;
  let oldest = nowTicks;
  for (const { pid, startTicks, cpuTicks } of rows) {
    const earlier = before.processes.get(pid);
    if (earlier?.startTicks === startTicks) usedTicks += Math.max(0, cpuTicks - earlier.cpuTicks);
    else if (startTicks >= before.nowTicks) usedTicks += cpuTicks;
    oldest = Math.min(oldest, startTicks);
  }
  const elapsed = nowTicks - Math.max(before.nowTicks, oldest);
  return { usedTicks, cores: usedTicks / Math.max(1, elapsed) };
}
