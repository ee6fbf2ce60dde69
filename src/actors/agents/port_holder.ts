// Who listens on a port, in the words of the port.conflict event: docs/reference.md "Ports and conflicts".
import { holderOf, isLocal, type Listener } from '../../adapters/process/listeners.ts';
import { environOf, type ProcessRow, processRow } from '../../adapters/process/proctable.ts';
import { userName } from '../../adapters/process/users.ts';

/** What a daemon has put into the environment of a process of a service: this daemon or another one. */
export interface Mark {
  service: string;
  run: string;
}

export interface Holder {
  pid: number | null;
  /** `pid 1234 (node)`, `user NAME` for another user's, or `unknown`. */
  holder: string;
  mark: Mark | null;
}

/** A server that is this many processes below the one that bears the mark is not looked up any more. */
const GENERATIONS = 8;
const FIRST_PID = 1;

/** Who would answer a connection to `port` on localhost; null when nobody does. */
export function holderOn(port: number, table: readonly Listener[]): Holder | null {
  const sockets = table.filter((row) => row.port === port && isLocal(row.address));
  for (const { uid, inode } of sockets) {
    if (uid !== process.getuid?.()) return { pid: null, holder: `user ${userName(uid)}`, mark: null };
    const owner = holderOf(inode);
    if (owner) return { pid: owner.pid, holder: `pid ${owner.pid} (${owner.comm})`, mark: markOf(owner) };
  }
  return sockets.length > 0 ? { pid: null, holder: 'unknown', mark: null } : null;
}

/** The mark the process bears. One that has overwritten it to change its title has a parent that has not. */
function markOf(row: ProcessRow): Mark | null {
  let at: ProcessRow | undefined = row;
  for (let step = 0; at && at.pid !== FIRST_PID && step < GENERATIONS; step += 1) {
    const entries = environOf(at.pid)?.toString('latin1').split('\0');
    const textOf = (key: string) => entries?.find((entry) => entry.startsWith(key))?.slice(key.length);
    const service = textOf('BERTH_SERVICE=');
    if (service !== undefined) return { service, run: textOf('BERTH_RUN=') ?? '' };
    at = processRow(at.ppid);
  }
  return null;
}
