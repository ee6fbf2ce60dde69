// Which process has a socket open, from the descriptor folders in /proc. A machine may have a million
// descriptors, and reading one takes 3 microseconds. So the search runs in slices, and never blocks its
// thread for longer than one.
import { type Dir, opendirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ProcessRow, processRow } from './process_table.ts';

const SLICE_MS = 4;
/** Descriptors that are listed at once. */
const LISTED = 64;

/** The turn of a search. */
class Slice {
  private until = performance.now() + SLICE_MS;

  get isOver(): boolean {
    return performance.now() > this.until;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.until = performance.now() + SLICE_MS;
  }
}

/** By inode, so that simultaneous requests share a search. */
const searches = new Map<number, Promise<ProcessRow | undefined>>();

/**
 * The process that holds the socket `inode`; undefined if it belongs to another user or is gone. Searches all
 * processes that this one may inspect, the newest first.
 */
export function socketHolder(inode: number): Promise<ProcessRow | undefined> {
  const known = searches.get(inode);
  if (known) return known;
  const search = searchAll(inode).finally(() => searches.delete(inode));
  searches.set(inode, search);
  return search;
}

async function searchAll(inode: number): Promise<ProcessRow | undefined> {
  const target = `socket:[${inode}]`;
  const slice = new Slice();
  for (const pid of pidsFromNewest()) if (await hasOpen(pid, target, slice)) return processRow(pid);
  return undefined;
}

function pidsFromNewest(): number[] {
  try {
    const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
    return pids.sort((a, b) => b - a);
  } catch {
    return [];
  }
}

/** Whether `pid` or a descendant of it has the socket `inode` open, as far as this user may see. */
export async function treeHasOpen(pid: number, inode: number): Promise<boolean> {
  const slice = new Slice();
  const tree = [pid];
  for (const one of tree) {
    if (await hasOpen(one, `socket:[${inode}]`, slice)) return true;
    tree.push(...childrenOf(one));
  }
  return false;
}

/** The children of a process; none where it is gone or the system does not tell. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1')
        .trim()
        .split(' ')
        .filter(Boolean)
        .map(Number),
    );
  } catch {
    return [];
  }
}

/** Whether `pid` has the file open that the links in /proc call `target`, as far as this user may see. */
export async function hasOpen(pid: number, target: string, slice = new Slice()): Promise<boolean> {
  let folder: Dir | undefined;
  try {
    folder = opendirSync(`/proc/${pid}/fd`, { bufferSize: LISTED });
    for (let entry = folder.readSync(); entry; entry = folder.readSync()) {
      if (linkOf(`/proc/${pid}/fd/${entry.name}`) === target) return true;
      if (slice.isOver) await slice.next();
    }
    return false;
  } catch {
    // It has ended, or belongs to another user.
    return false;
  } finally {
    folder?.closeSync();
  }
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
