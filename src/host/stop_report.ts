// What a stop says once it is over: docs/reference.md "Proof of a stop".
import { holderOf, type Listener } from '../adapters/process/listeners.ts';
import { commandOf, type ProcessRow } from '../adapters/process/proctable.ts';
import type { StopReport } from '../protocol/host.ts';
import type { RunEnd } from '../protocol/service.ts';

/** A stop that is over. */
export interface Stopped {
  /** How its first process ended; null when that cannot be known. */
  end: Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown'> | null;
  escalated: boolean;
  /** How many processes of the tree were seen. */
  seen: number;
  /** Those that could not be ended. */
  members: readonly ProcessRow[];
  /** Who still listens on the port. */
  held: readonly Listener[];
  ms: number;
}

const remains = (row: ProcessRow): StopReport['left'][number] => ({
  pid: row.pid,
  command: commandOf(row),
  reason: 'did not end after SIGKILL',
});

/** Who listens on the port, as `left` names them. */
function onPort(rows: readonly Listener[]): StopReport['left'] {
  return rows.map(({ inode, port }) => {
    const holder = holderOf(inode);
    return {
      pid: holder?.pid ?? 0,
      command: holder ? commandOf(holder) : 'unknown',
      reason: `listens on port ${port} and bears no mark of this service`,
    };
  });
}

/** The report of a stop; what is left is looked at now. */
export function reportOf({ end, escalated, seen, members, held, ms }: Stopped): StopReport {
  const { exitCode, signal, exitUnknown } = end ?? { exitCode: null, signal: null, exitUnknown: true };
  return {
    exitCode,
    signal,
    exitUnknown,
    escalated,
    reaped: seen - members.length,
    left: members.length > 0 ? members.map(remains) : onPort(held),
    portFree: held.length === 0,
    ms: Math.round(ms),
  };
}
