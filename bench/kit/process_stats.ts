// Figures of other processes, read from /proc.
import { readdirSync, readFileSync } from 'node:fs';
import { KIB } from '../../src/settings/limits.ts';

const TICKS_PER_SECOND = 100;
/** Columns after the name of the program in /proc/<pid>/stat. */
const USER_TIME = 11;
const SYSTEM_TIME = 12;

export const listPids = (): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0);

function readProcFile(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

/** Empty for a process that has ended. */
export const commandLine = (pid: number): string[] => readProcFile(pid, 'cmdline').split('\0').slice(0, -1);

/** A zombie does not count as alive. */
export const isAlive = (pid: number): boolean => /^State:\s+[^ZX]/m.test(readProcFile(pid, 'status'));

/** Seconds of processor time that all threads of the processes `of` have used so far. */
export function cpuSeconds(of: readonly number[]): number {
  const ticks = of.map((pid) => {
    const stat = readProcFile(pid, 'stat');
    const columns = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(columns[USER_TIME] ?? 0) + Number(columns[SYSTEM_TIME] ?? 0);
  });
  return ticks.reduce((sum, value) => sum + value, 0) / TICKS_PER_SECOND;
}

/** Milliseconds of processor time of all current threads of `pid`, with microsecond precision. */
export function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + threadMs(pid, Number(thread)), 0);
}

/** Milliseconds of processor time of one thread. The number of the main thread is the pid. */
export const threadMs = (pid: number, thread = pid): number =>
  Number(readProcFile(pid, `task/${thread}/schedstat`).split(' ')[0]) / 1e6;

/** Milliseconds of processor time of that thread of `pid` which has used most. */
export const busiestThreadMs = (pid: number): number =>
  Math.max(...readdirSync(`/proc/${pid}/task`).map((thread) => threadMs(pid, Number(thread))));

/** MiB of memory. PSS divides a shared page among its processes, RSS counts it in full. */
export function memoryOf(pid: number, kind: 'Pss' | 'Rss'): number {
  return (
    Number(new RegExp(`^${kind}:\\s+(\\d+) kB`, 'm').exec(readProcFile(pid, 'smaps_rollup'))?.[1] ?? 0) / KIB
  );
}
