// Whether the process host of a state directory is suspended: it then accepts connections and never answers.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isSuspended } from '../process/process_table.ts';

/** The pids that hold a lock of the file with this inode; none where the system does not say. */
function lockHolders(inode: bigint): number[] {
  let table: string;
  try {
    table = readFileSync('/proc/locks', 'latin1');
  } catch {
    return [];
  }
  // A row is `1: FLOCK ADVISORY WRITE <pid> <device>:<inode> 0 EOF`.
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/));
  return rows.filter((row) => row[5]?.endsWith(`:${inode}`)).map((row) => Number(row[4]));
}

/** The pid of the host that keeps its files in `folder`, if it is suspended; otherwise undefined. */
export function suspendedHost(folder: string): number | undefined {
  const lock = statSync(join(folder, 'lock'), { bigint: true, throwIfNoEntry: false });
  return lock && lockHolders(lock.ino).find(isSuspended);
}
