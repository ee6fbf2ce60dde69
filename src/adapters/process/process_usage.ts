// Processor time and memory of process trees, from one pass over the process table. Without one (macOS), only
// of first processes, with pidusage. The only file that imports pidusage.
import { readFileSync } from 'node:fs';
import type pidusage from 'pidusage';
import { type ProcessRow, refreshProcessTable, TICKS_PER_SECOND } from './process_table.ts';
import { ProcessTree, type RunRoot, type TreeScan } from './process_tree.ts';
import { isOutOfDescriptors } from './reserved_descriptor.ts';

export interface ProcessUsage {
  pid: number;
  startTicks: number;
  /** Processor time so far, user and system together, in clock ticks. */
  cpuTicks: number;
  rssBytes: number;
}

export interface ProcessUsageSample {
  /** The time of this pass, in the same ticks as `startTicks`. */
  nowTicks: number;
  /** The processes of each run; runs without any are left out. */
  runs: ReadonlyMap<string, readonly ProcessUsage[]>;
}

/** Measures the processes of runs now. */
export type MeasureUsage = (roots: readonly RunRoot[]) => Promise<ProcessUsageSample>;

const NO_PIDS: ReadonlySet<number> = new Set();

/** Clock ticks since the boot, including time suspended, like the start times of processes. */
function uptimeTicks(): number | undefined {
  try {
    return Math.round(Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * TICKS_PER_SECOND);
  } catch {
    return undefined;
  }
}

/** The best measurement available on this system. */
export function systemUsage(): MeasureUsage {
  return uptimeTicks() === undefined ? firstProcessUsage : treeUsage();
}

/** How often, in passes, to reread the row of an unrelated process, because its pid may be reused. */
const UNRELATED_REREAD_PASSES = 8;

/**
 * undefined if there is no free descriptor to scan with. Nothing is known then, which does not mean that
 * nothing is running.
 */
function tryScan(scan: () => TreeScan): TreeScan | undefined {
  try {
    return scan();
  } catch (error) {
    if (isOutOfDescriptors(error)) return undefined;
    throw error;
  }
}

/** Measures whole trees, from /proc. */
export function treeUsage(readTable: typeof refreshProcessTable = refreshProcessTable): MeasureUsage {
  /** Most processes of a machine belong to no run, so only their identity matters. */
  let strangers = new Map<number, ProcessRow>();
  let pass = 0;
  const known = (pid: number) => (pid % UNRELATED_REREAD_PASSES === pass ? undefined : strangers.get(pid));
  const tree = new ProcessTree(() => readTable(known));
  return async (roots) => {
    const nowTicks = uptimeTicks() ?? 0;
    pass = (pass + 1) % UNRELATED_REREAD_PASSES;
    // The first process of a run may have been seen before the run began: in another group, without its
    // program.
    for (const { pid } of roots) strangers.delete(pid);
    const scan = tryScan(() => tree.scan(roots, NO_PIDS));
    if (!scan) return { nowTicks, runs: new Map() };
    const { members, table } = scan;
    strangers = new Map(table);
    for (const rows of members.values()) for (const { pid } of rows) strangers.delete(pid);
    return { nowTicks, runs: new Map([...members].filter(([, rows]) => rows.length > 0)) };
  };
}

/** Measures only first processes, in whatever way the system offers. */
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

/** Leaves out processes that are gone. */
async function measurePids(pids: number[]): Promise<Record<string, pidusage.Status | undefined>> {
  const { default: usage } = await import('pidusage');
  try {
    return await usage(pids);
  } catch (error) {
    // The error when all of them are gone.
    if (error instanceof Error && error.message.includes('No matching pid')) return {};
    throw error;
  } finally {
    // pidusage keeps state by pid alone, and files open. Here passes are compared using start times instead.
    usage.clear();
  }
}
