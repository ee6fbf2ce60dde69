// Signals to the processes of a run. `kill` never gets a number below 2, which would mean the host's own
// group, init, or every process.
import { constants } from 'node:os';
import { type ProcessRow, processRow, signalDisposition } from '../adapters/process/process_table.ts';
import type { RunRoot } from '../adapters/process/process_tree.ts';

const FIRST_PID = 2;

/** Sends `signal` to a process, if its pid is still its own. */
export function sendSignal(row: ProcessRow, signal: NodeJS.Signals): void {
  const now = processRow(row.pid);
  if (row.pid < FIRST_PID || (now && now.startTicks !== row.startTicks)) return;
  try {
    process.kill(row.pid, signal);
  } catch {
    // The process has ended, or belongs to another user: the next scan will show which.
  }
}

/**
 * Sends `signal` to the group of a run, if it contains any of `rows`, and to each of `rows` outside the
 * group.
 */
export function signalRun(root: RunRoot, rows: readonly ProcessRow[], signal: NodeJS.Signals): void {
  const isInGroup = (row: ProcessRow) => root.grouped && root.pid >= FIRST_PID && row.pgid === root.pid;
  if (rows.some(isInGroup)) {
    try {
      process.kill(-root.pid, signal);
    } catch {
      // The group has ended meanwhile.
    }
  }
  for (const row of rows) if (!isInGroup(row)) sendSignal(row, signal);
}

/** Sends `signal` to the group of a run. Returns false if the group has no processes. */
export function signalGroup({ grouped, pid }: RunRoot, signal: NodeJS.Signals): boolean {
  if (!grouped || pid < FIRST_PID) return false;
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}

/**
 * Whether to send SIGHUP right after SIGTERM: to processes that SIGTERM cannot end, and to those that handle
 * a hang-up, which are shells. In a program that is shutting down it would interrupt the cleanup.
 */
export function needsHangUp({ pid }: ProcessRow): boolean {
  return (
    signalDisposition(pid, constants.signals.SIGTERM) === 'ignored' ||
    signalDisposition(pid, constants.signals.SIGHUP) === 'caught'
  );
}
