// Who listens on a port, in the words of the port.conflict event: docs/reference.md "Ports and conflicts".
import { isLocalAddress, type ListeningSocket, socketHolder } from '../../adapters/process/listeners.ts';
import { environOf, type ProcessRow, processRow } from '../../adapters/process/process_table.ts';
import { userName } from '../../adapters/process/users.ts';

/** What a daemon has put into the environment of a process of a service: this daemon or another one. */
export interface ServiceMark {
  name: string;
  run: string;
}

export interface PortHolder {
  pid: number | null;
  /** `pid 1234 (node)`, `user NAME` for another user's, or `unknown`. */
  label: string;
  mark: ServiceMark | null;
}

/** A server that is this many processes below the one that bears the mark is not looked up any more. */
const MAX_ANCESTORS = 8;
const INIT_PID = 1;

/** Who would answer a connection to `port` on localhost; null when nobody does. */
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

/** The mark the process bears. One that has overwritten it to change its title has a parent that has not. */
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
