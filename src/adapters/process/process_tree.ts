// Which processes belong to which run. A run is more than its first process: what that one has started may have left its
// group, its session and its parent. What belongs to a run is found by
//   1. having been seen in its tree before (pid and start: a pid given to another process does not count),
//   2. the environment mark BERTH_RUN,
//   3. the process group and session of its first process,
//   4. a parent that belongs to it.
import { environOf, isRunning, type ProcessRow, processTable } from './process_table.ts';

export interface RunRoot {
  run: string;
  pid: number;
  startTicks: number;
  /**
   * Whether its group and session are still its own. The system does not give the number of a group to another process
   * while the group has a member; once it has none, whatever bears the number is somebody else's.
   */
  grouped: boolean;
}

export interface TreeScan {
  /** What runs and belongs to each of the roots; the first process first, if it runs. */
  members: ReadonlyMap<string, ProcessRow[]>;
  table: ReadonlyMap<number, ProcessRow>;
}

export interface ProcessTree {
  /** One pass over the process table for all `roots`. `spared` are never members, and nothing is through them. */
  scan(roots: readonly RunRoot[], protectedPids: ReadonlySet<number>): TreeScan;
}

/** The parent of kernel threads, which have no group and no environment and are nobody's. In a container it is anybody. */
const KTHREADD_PID = 2;
const RUN_MARK = 'BERTH_RUN=';

/** The run an environment is marked with. */
export function runMarkInEnviron(environ: Buffer): string | null {
  let at = environ.indexOf(RUN_MARK);
  while (at > 0 && environ[at - 1] !== 0) at = environ.indexOf(RUN_MARK, at + 1);
  if (at < 0) return null;
  const end = environ.indexOf(0, at);
  return environ.toString('latin1', at + RUN_MARK.length, end < 0 ? environ.length : end);
}

interface KnownProcess {
  startTicks: number;
  run: string | null;
}

/** Fits when it is the same process. */
const knownProcessOf = (
  map: ReadonlyMap<number, KnownProcess>,
  row: ProcessRow,
): KnownProcess | undefined => {
  const known = map.get(row.pid);
  return known?.startTicks === row.startTicks ? known : undefined;
};

function dropGone(map: Map<number, KnownProcess>, table: ReadonlyMap<number, ProcessRow>): void {
  for (const [pid, { startTicks }] of map) if (table.get(pid)?.startTicks !== startTicks) map.delete(pid);
}

/** Whether the group of a root may still be trusted, after what `table` shows. */
function stillOwnsGroup(root: RunRoot, table: ReadonlyMap<number, ProcessRow>): boolean {
  const first = table.get(root.pid);
  if (first) return first.startTicks === root.startTicks;
  if (!root.grouped) return false;
  for (const row of table.values()) if (row.pgid === root.pid || row.session === root.pid) return true;
  return false;
}

/** Of a run that is not known any more the pid is 0, which to the system is the group of whoever asks. */
function exists(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Without a process table (macOS) a run is its first process, as far as the system says that it is there. */
function scanWithoutTable(roots: readonly RunRoot[]): TreeScan {
  const members = new Map<string, ProcessRow[]>();
  for (const { run, pid, startTicks } of roots) {
    const row = {
      pid,
      ppid: 0,
      pgid: pid,
      session: pid,
      startTicks,
      state: '?',
      cpuTicks: 0,
      rssBytes: 0,
      comm: '',
    };
    members.set(run, exists(pid) ? [row] : []);
  }
  return { members, table: new Map() };
}

/**
 * A tree that remembers between scans what it has seen; `read` and `environ` are where it looks. A scan throws when no file
 * can be opened.
 */
export function createProcessTree(
  readTable: typeof processTable = processTable,
  readEnviron: typeof environOf = environOf,
): ProcessTree {
  /** An environment does not change its mark: it is read once per process. */
  const marks = new Map<number, KnownProcess>();
  const seen = new Map<number, KnownProcess>();

  const mark = (row: ProcessRow): string | null => {
    if (row.pgid === 0 && (row.pid === KTHREADD_PID || row.ppid === KTHREADD_PID)) return null;
    const known = knownProcessOf(marks, row);
    if (known) return known.run;
    const bytes = readEnviron(row.pid);
    const run = bytes ? runMarkInEnviron(bytes) : null;
    marks.set(row.pid, { startTicks: row.startTicks, run });
    return run;
  };

  return {
    scan(roots, spared) {
      const table = readTable();
      if (table.size === 0) return scanWithoutTable(roots);
      dropGone(marks, table);
      dropGone(seen, table);
      for (const root of roots) root.grouped = stillOwnsGroup(root, table);
      const byRun = new Map(roots.map((root) => [root.run, root]));
      const byGroup = new Map(roots.filter((root) => root.grouped).map((root) => [root.pid, root.run]));

      const owners = new Map<number, string | null>();
      const ownerOf = (row: ProcessRow): string | null => {
        const settled = owners.get(row.pid);
        if (settled !== undefined) return settled;
        // Before its parent is asked: a table read while processes come and go may hold a cycle.
        owners.set(row.pid, null);
        if (spared.has(row.pid)) return null;
        const before = knownProcessOf(seen, row)?.run;
        const marked = mark(row);
        const parent = table.get(row.ppid);
        const owner =
          (before && byRun.has(before) ? before : null) ??
          (marked && byRun.has(marked) ? marked : null) ??
          byGroup.get(row.pgid) ??
          byGroup.get(row.session) ??
          (parent ? ownerOf(parent) : null);
        owners.set(row.pid, owner);
        return owner;
      };

      const members = new Map<string, ProcessRow[]>(roots.map((root) => [root.run, []]));
      for (const row of table.values()) {
        const owner = isRunning(row) ? ownerOf(row) : null;
        if (owner === null) continue;
        seen.set(row.pid, { startTicks: row.startTicks, run: owner });
        const list = members.get(owner);
        if (row.pid === byRun.get(owner)?.pid) list?.unshift(row);
        else list?.push(row);
      }
      return { members, table };
    },
  };
}
