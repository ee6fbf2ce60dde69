// The holder of a port, in the words of the port.conflict event: docs/reference.md "Ports and conflicts".
import { isLocalAddress, type ListeningSocket, socketHolder } from '../../adapters/process/listeners.ts';
import { environOf, type ProcessRow, processRow } from '../../adapters/process/process_table.ts';
import { userName } from '../../adapters/process/users.ts';

/** The mark that a daemon, this one or another, puts into the environment of a service's process. */
export interface ServiceMark {
  name: string;
  run: string;
}

export interface PortHolder {
  pid: number | null;
  /** `pid 1234 (node)`, `user NAME` for a process of another user, or `unknown`. */
  label: string;
  mark: ServiceMark | null;
}

/** Ancestors searched for a mark, starting at the process that listens. */
const MAX_ANCESTORS = 8;
const INIT_PID = 1;

/** The process that would answer a connection to `port` on localhost; null when there is none. */
export function portHolderOf(port: number, table: readonly ListeningSocket[]): PortHolder | null {
  const sockets = table.filter((row) => row.port === port && isLocalAddress(row.address));
  for (const { uid, inode } of sockets) {
    if (uid !== process.getuid?.()) return { pid: null, label: `user ${userName(uid)}`, mark: null };
    const owner = socketHolder(inode);
    if (owner)
      return { pid: owner.pid, label: `pid ${owner.pid} (${owner.comm})`, mark: serviceMarkOf(owner) };
  }
  return sockets.length > 0 ? { pid: null, label: 'unknown', mark: null } : null;
}

/**
 * The mark of the process. A process that overwrote its mark to change its title has a parent with an intact
 * one.
 */
function serviceMarkOf(row: ProcessRow): ServiceMark | null {
  let at: ProcessRow | undefined = row;
  for (let step = 0; at && at.pid !== INIT_PID && step < MAX_ANCESTORS; step += 1) {
    const entries = environOf(at.pid)?.toString('latin1').split('\0');
    const textOf = (key: string) => entries?.find((entry) => entry.startsWith(key))?.slice(key.length);
    const service = textOf('BERTH_SERVICE=');
    if (service !== undefined) return { name: service, run: textOf('BERTH_RUN=') ?? '' };
    at = processRow(at.ppid);
  }
  return null;
}
