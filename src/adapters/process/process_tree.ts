// Which processes belong to which run. A run is more than its first process, whose descendants may have left
// its group, its session and their parents. A process belongs to a run, in this order, if
//   1. it was seen in the tree of the run before; pid and start identify it,
//   2. its environment has the mark of the run, BERTH_RUN,
//   3. it is in the process group or the session of the first process,
//   4. its parent belongs to the run.
import { environOf, isRunning, type ProcessRow, processTable } from './process_table.ts';

export interface RunRoot {
  run: string;
  pid: number;
  startTicks: number;
  /**
   * Whether the group and the session with its number still belong to it. The system does not reuse the
   * number while the group has a member; afterwards it may belong to anyone.
   */
  grouped: boolean;
}

export interface TreeScan {
  /** The running processes of each run; its first process first, if it runs. */
  members: ReadonlyMap<string, ProcessRow[]>;
  /**
   * Whether a child of this process, which adopts orphans, belongs to no run as far as can be seen, and shows
   * no environment: it may be in the middle of exec, and have the mark of a run as soon as that is over.
   */
  hasBlankOrphan: boolean;
  table: ReadonlyMap<number, ProcessRow>;
}

/**
 * The parent of kernel threads, which have no group and no environment. In a container it may be any process.
 */
const KTHREADD_PID = 2;
const RUN_MARK = 'BERTH_RUN=';

/**
 * The variable with the id of the state directory in which a run was started. A copy of that directory has
 * records of the same runs, whose processes are none of its own.
 */
export const STATE_ID_VARIABLE = 'BERTH_STATE_ID';

/**
 * Like `environOf`, for the host of the state directory `stateId`: undefined for the processes of another
 * one.
 */
export const ownEnvironReader =
  (stateId: string): typeof environOf =>
  (pid) => {
    const environ = environOf(pid);
    const id = environ && variableInEnviron(environ, `${STATE_ID_VARIABLE}=`);
    return id && id !== stateId ? undefined : environ;
  };

/** The run that an environment is marked with; null if none. */
export const runMarkInEnviron = (environ: Buffer): string | null => variableInEnviron(environ, RUN_MARK);

/** The value of a variable in an environment as the system shows it; `assignment` is its name with `=`. */
export function variableInEnviron(environ: Buffer, assignment: string): string | null {
  let at = environ.indexOf(assignment);
  while (at > 0 && environ[at - 1] !== 0) at = environ.indexOf(assignment, at + 1);
  if (at < 0) return null;
  const end = environ.indexOf(0, at);
  return environ.toString('latin1', at + assignment.length, end < 0 ? environ.length : end);
}

interface KnownProcess {
  startTicks: number;
  run: string | null;
}

/** What is known about a process; undefined if its pid belonged to another process. */
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

/** Whether `table` shows that the group of a root still belongs to it. */
function stillOwnsGroup(root: RunRoot, table: ReadonlyMap<number, ProcessRow>): boolean {
  const first = table.get(root.pid);
  if (first) return first.startTicks === root.startTicks;
  if (!root.grouped) return false;
  for (const row of table.values()) if (row.pgid === root.pid || row.session === root.pid) return true;
  return false;
}

/** False for pid 0 of a forgotten run, which the system would take for the caller's own group. */
function exists(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Without a process table (macOS), a run consists of its first process, if that exists. */
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
  return { members, hasBlankOrphan: false, table: new Map() };
}

/** Finds the processes of runs, and remembers what it has seen between scans. */
export class ProcessTree {
  private readonly readTable: typeof processTable;
  private readonly readEnviron: typeof environOf;
  /**
   * The run each process is marked with. The environment of a process is read only once, because its mark
   * never changes. One that is empty is read again: in the middle of exec every environment is.
   */
  private readonly marks = new Map<number, KnownProcess>();
  /** The run that each process was found to belong to. */
  private readonly seen = new Map<number, KnownProcess>();
  /** The processes whose environment was empty in the latest scan. */
  private readonly blank = new Set<number>();

  constructor(readTable: typeof processTable = processTable, readEnviron: typeof environOf = environOf) {
    this.readTable = readTable;
    this.readEnviron = readEnviron;
  }

  /**
   * One pass over the process table for all `roots`, whose `grouped` is updated. A process in `protectedPids`
   * is never a member, and makes no other one a member. Throws when no file can be opened.
   */
  scan(roots: readonly RunRoot[], protectedPids: ReadonlySet<number>): TreeScan {
    const table = this.readTable();
    if (table.size === 0) return scanWithoutTable(roots);
    dropGone(this.marks, table);
    dropGone(this.seen, table);
    this.blank.clear();
    for (const root of roots) root.grouped = stillOwnsGroup(root, table);
    const byRun = new Map(roots.map((root) => [root.run, root]));
    const ownerOf = this.ownerLookup(byRun, table, protectedPids);
    const members = new Map<string, ProcessRow[]>(roots.map((root) => [root.run, []]));
    let hasBlankOrphan = false;
    for (const row of table.values()) {
      const owner = isRunning(row) ? ownerOf(row) : null;
      if (owner === null) {
        hasBlankOrphan ||= row.ppid === process.pid && this.blank.has(row.pid);
        continue;
      }
      this.seen.set(row.pid, { startTicks: row.startTicks, run: owner });
      const list = members.get(owner);
      if (row.pid === byRun.get(owner)?.pid) list?.unshift(row);
      else list?.push(row);
    }
    return { members, hasBlankOrphan, table };
  }

  /** Returns a function that finds the run a process belongs to, for one scan. */
  private ownerLookup(
    roots: ReadonlyMap<string, RunRoot>,
    table: ReadonlyMap<number, ProcessRow>,
    protectedPids: ReadonlySet<number>,
  ): (row: ProcessRow) => string | null {
    const byGroup = new Map(
      [...roots.values()].filter((root) => root.grouped).map((root) => [root.pid, root.run]),
    );
    const ifScanned = (run: string | null | undefined) => (run && roots.has(run) ? run : null);
    const owners = new Map<number, string | null>();
    const ownerOf = (row: ProcessRow): string | null => {
      const known = owners.get(row.pid);
      if (known !== undefined) return known;
      // Set before the parent is looked up, because a table read while processes come and go may contain a
      // cycle.
      owners.set(row.pid, null);
      if (protectedPids.has(row.pid)) return null;
      const mark = this.markOf(row);
      const parent = table.get(row.ppid);
      const owner =
        ifScanned(knownProcessOf(this.seen, row)?.run) ??
        ifScanned(mark) ??
        byGroup.get(row.pgid) ??
        byGroup.get(row.session) ??
        (parent ? ownerOf(parent) : null);
      owners.set(row.pid, owner);
      return owner;
    };
    return ownerOf;
  }

  private markOf(row: ProcessRow): string | null {
    const isKernelThread = row.pgid === 0 && (row.pid === KTHREADD_PID || row.ppid === KTHREADD_PID);
    if (isKernelThread) return null;
    const known = knownProcessOf(this.marks, row);
    if (known) return known.run;
    const environ = this.readEnviron(row.pid);
    if (environ?.length === 0) {
      this.blank.add(row.pid);
      return null;
    }
    const run = environ ? runMarkInEnviron(environ) : null;
    this.marks.set(row.pid, { startTicks: row.startTicks, run });
    return run;
  }
}
