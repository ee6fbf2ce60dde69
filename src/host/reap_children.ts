// The children of the host: those it starts itself, and orphans of services, which come to it so that they can be found.
import { readFileSync } from 'node:fs';
import type { Libc } from '../adapters/process/libc.ts';
import type { PosixSpawn, ProgramSpec } from '../adapters/process/posix_spawn.ts';
import type { ChildEvents } from './child.ts';

/** Starts a program and gives its pid; `ended` is called once, in another turn. Throws with what the system says. */
export type StartProgram = (program: ProgramSpec, ended: ChildEvents['onExit']) => number;

/** The children of this process; none where the system does not list them. */
function childPids(): number[] {
  try {
    return readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1')
      .split(' ')
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}

/** null where libc lacks a call. */
function posixSpawnOf(libc: Libc): PosixSpawn | null {
  try {
    return libc.posixSpawn();
  } catch {
    return null;
  }
}

/**
 * Makes this process the one that orphans come to, and takes their zombies. `others` wait for their own: the children of
 * libuv and node-pty. `died` is told, at most once per turn, that some child has ended. Returns what starts children that are
 * waited for here; null where only Node can.
 */
export function reapChildren(
  libc: Libc,
  reapedElsewhere: () => ReadonlySet<number>,
  onChildExit: () => void,
): StartProgram | null {
  if (!libc.becomeSubreaper()) return null;
  const spawn = posixSpawnOf(libc);
  const waiting = new Map<number, ChildEvents['onExit']>();
  const takeOurs = (): void => {
    for (const [pid, ended] of waiting) {
      const exit = libc.reap(pid);
      if (!exit) continue;
      waiting.delete(pid);
      // By itself: what goes wrong with one end must not keep the others from being told.
      queueMicrotask(() => ended(exit.exitCode, exit.signal));
    }
  };
  const takeOrphans = (): void => {
    const known = reapedElsewhere();
    for (const pid of childPids()) if (!known.has(pid) && !waiting.has(pid)) libc.reap(pid);
  };
  let due = false;
  process.on('SIGCHLD', () => {
    if (due) return;
    due = true;
    setImmediate(() => {
      due = false;
      takeOurs();
      takeOrphans();
      onChildExit();
    });
  });
  if (!spawn) return null;
  return (program, ended) => {
    const pid = spawn(program);
    waiting.set(pid, ended);
    return pid;
  };
}
