// Processor time and memory of process trees: from one pass over the process table, and where there is none (macOS) of the
// first processes alone, by pidusage. The only file that imports pidusage.
import { readFileSync } from 'node:fs';
import type pidusage from 'pidusage';
import { type ProcessRow, refreshProcessTable, TICKS_PER_SECOND } from './process_table.ts';
import { ProcessTree, type RunRoot, type TreeScan } from './process_tree.ts';
import { isOutOfDescriptors } from './reserved_descriptor.ts';

export interface ProcessUsage {
  pid: number;
  startTicks: number;
  /** Processor time so far, user and system together. */
  cpuTicks: number;
  rssBytes: number;
}

export interface ProcessUsageSample {
  /** The time of this pass in the ticks that `startTicks` counts. */
  nowTicks: number;
  /** The processes of each run that has any. */
  runs: ReadonlyMap<string, readonly ProcessUsage[]>;
}

export type MeasureUsage = (roots: readonly RunRoot[]) => Promise<ProcessUsageSample>;

const NO_PIDS: ReadonlySet<number> = new Set();

/** Seconds since the boot, the time in which the machine slept included, as in the start time of a process. */
function uptimeTicks(): number | undefined {
  try {
    return Math.round(Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * TICKS_PER_SECOND);
  } catch {
    return undefined;
  }
}

/** Measures with what this system has. */
export function systemUsage(): MeasureUsage {
  return uptimeTicks() === undefined ? firstProcessUsage : treeUsage();
}

/** A process of no run is read anew in one of so many passes, since its number may be another's by then. */
const UNRELATED_REREAD_PASSES = 8;

/** Without a descriptor nothing is known of anybody, which is not the same as that nobody is busy. */
function tryScan(scan: () => TreeScan): TreeScan | undefined {
  try {
    return scan();
  } catch (error) {
    if (isOutOfDescriptors(error)) return undefined;
    throw error;
  }
}

/** Whole trees, from /proc. */
export function treeUsage(readTable: typeof refreshProcessTable = refreshProcessTable): MeasureUsage {
  /** Most processes of a machine are of no run, and nothing of theirs but who they are matters. */
  let strangers = new Map<number, ProcessRow>();
  let pass = 0;
  const known = (pid: number) => (pid % UNRELATED_REREAD_PASSES === pass ? undefined : strangers.get(pid));
  const tree = new ProcessTree(() => readTable(known));
  return async (roots) => {
    const nowTicks = uptimeTicks() ?? 0;
    pass = (pass + 1) % UNRELATED_REREAD_PASSES;
    // The first process of a run may have been seen before it was one: in another group, still without its program.
    for (const { pid } of roots) strangers.delete(pid);
    const scan = tryScan(() => tree.scan(roots, NO_PIDS));
    if (!scan) return { nowTicks, runs: new Map() };
    const { members, table } = scan;
    strangers = new Map(table);
    for (const rows of members.values()) for (const { pid } of rows) strangers.delete(pid);
    return { nowTicks, runs: new Map([...members].filter(([, rows]) => rows.length > 0)) };
  };
}

/** First processes alone, whatever the system has for it. */
export const firstProcessUsage: MeasureUsage = async (roots) => {
  const nowTicks = Math.round((performance.now() / 1_000) * TICKS_PER_SECOND);
  const found = roots.length > 0 ? await measurePids(roots.map(({ pid }) => pid)) : {};
  const runs = new Map<string, ProcessUsage[]>();
  for (const { run, pid, startTicks } of roots) {
    const row = found[pid];
    if (!row) continue;
    const cpuTicks = (row.ctime / 1_000) * TICKS_PER_SECOND;
    runs.set(run, [{ pid, startTicks, cpuTicks, rssBytes: row.memory }]);
  }
  return { nowTicks, runs };
};

/** Those that have gone are left out. */
async function measurePids(pids: number[]): Promise<Record<string, pidusage.Status | undefined>> {
  const { default: usage } = await import('pidusage');
  try {
    return await usage(pids);
  } catch (error) {
    // What it says when they all have.
    if (error instanceof Error && error.message.includes('No matching pid')) return {};
    throw error;
  } finally {
    // It remembers by pid alone, and keeps files open for it. We compare passes ourselves, with start times.
    usage.clear();
  }
}
