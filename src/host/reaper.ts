// Orphans of the services become children of the host, so that they can be found; their zombies have to be taken.
import { readFileSync } from 'node:fs';
import type { Libc } from '../adapters/libc.ts';

/** The children of this process; none where the system does not list them. */
function children(): number[] {
  try {
    return readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1')
      .split(' ')
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}

/**
 * Makes this process the one that orphans come to, and takes their zombies. `others` wait for their own: the children of
 * libuv and node-pty. `died` is told, at most once per turn, that some child has ended.
 */
export function adoptOrphans(libc: Libc, others: () => ReadonlySet<number>, died: () => void): void {
  if (!libc.becomeSubreaper()) return;
  let due = false;
  process.on('SIGCHLD', () => {
    if (due) return;
    due = true;
    setImmediate(() => {
      due = false;
      const known = others();
      for (const pid of children()) if (!known.has(pid)) libc.reap(pid);
      died();
    });
  });
}
