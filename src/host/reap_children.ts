// The children of the host: those it starts, and orphans of services, which it adopts so that they can be
// found.
import { readFileSync } from 'node:fs';
import type { Libc } from '../adapters/process/libc.ts';
import type { PosixSpawn, ProgramSpec } from '../adapters/process/posix_spawn.ts';
import type { ChildEvents } from './child.ts';

/**
 * Starts a program and returns its pid. `onExit` is called once, in a later turn. Throws the system's error.
 */
export type StartProgram = (program: ProgramSpec, onExit: ChildEvents['onExit']) => number;

/** The pids of the children of this process; empty when the system does not list them. */
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

/** null when libc lacks a required function. */
function posixSpawnOf(libc: Libc): PosixSpawn | null {
  try {
    return libc.posixSpawn();
  } catch {
    return null;
  }
}

/**
 * Makes orphaned descendants children of this process, and reaps them. `reapedElsewhere` are the children
 * reaped by libuv and node-pty. `onChildExit` is called, at most once per turn, when any child has ended.
 * Returns a function that starts children which are reaped here; null if only Node can start them.
 */
export function reapChildren(
  libc: Libc,
  reapedElsewhere: () => ReadonlySet<number>,
  onChildExit: () => void,
): StartProgram | null {
  if (!libc.becomeSubreaper()) return null;
  const spawn = posixSpawnOf(libc);
  const started = new Map<number, ChildEvents['onExit']>();
  const reapStarted = (): void => {
    for (const [pid, onExit] of started) {
      const status = libc.reap(pid);
      if (!status) continue;
      started.delete(pid);
      // Each in its own microtask, so that an exception in one does not suppress the others.
      queueMicrotask(() => onExit(status.exitCode, status.signal));
    }
  };
  const reapOrphans = (): void => {
    const others = reapedElsewhere();
    for (const pid of childPids()) if (!others.has(pid) && !started.has(pid)) libc.reap(pid);
  };
  let isScheduled = false;
  process.on('SIGCHLD', () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      reapStarted();
      reapOrphans();
      onChildExit();
    });
  });
  if (!spawn) return null;
  return (program, onExit) => {
    const pid = spawn(program);
    started.set(pid, onExit);
    return pid;
  };
}
