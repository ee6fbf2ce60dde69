// The report of a stop: docs/reference.md "Result of a stop".
import type { ListeningSocket } from '../adapters/process/listeners.ts';
import { commandOf, type ProcessRow } from '../adapters/process/process_table.ts';
import { socketHolder } from '../adapters/process/socket_holder.ts';
import type { StopReport } from '../protocol/host.ts';
import type { RunEnd } from '../protocol/service.ts';

/** A finished stop. */
export interface FinishedStop {
  /** The end of its first process; null when it cannot be known. */
  end: Pick<RunEnd, 'exitCode' | 'signal' | 'exitUnknown'> | null;
  /** Whether SIGKILL was sent. */
  isEscalated: boolean;
  /** The number of processes of the tree that were seen. */
  seenCount: number;
  /** Processes that could not be ended. */
  survivors: readonly ProcessRow[];
  /** Sockets that still listen on the port. */
  portListeners: readonly ListeningSocket[];
  ms: number;
}

const survivorRow = (row: ProcessRow): StopReport['left'][number] => ({
  pid: row.pid,
  command: commandOf(row),
  reason: 'did not end after SIGKILL',
});

/** The processes that listen on the port. */
function portHolders(rows: readonly ListeningSocket[]): Promise<StopReport['left']> {
  const left = rows.map(async ({ inode, port }) => {
    const holder = await socketHolder(inode);
    return {
      pid: holder?.pid ?? 0,
      command: holder ? commandOf(holder) : 'unknown',
      reason: `listens on port ${port} and bears no mark of this service`,
    };
  });
  return Promise.all(left);
}

/** The report of a finished stop. Reads the command lines now. */
export async function stopReportOf({
  end,
  isEscalated,
  seenCount,
  survivors,
  portListeners,
  ms,
}: FinishedStop): Promise<StopReport> {
  const { exitCode, signal, exitUnknown } = end ?? { exitCode: null, signal: null, exitUnknown: true };
  return {
    exitCode,
    signal,
    exitUnknown,
    escalated: isEscalated,
    reaped: seenCount - survivors.length,
    left: survivors.length > 0 ? survivors.map(survivorRow) : await portHolders(portListeners),
    portFree: portListeners.length === 0,
    ms: Math.round(ms),
  };
}
