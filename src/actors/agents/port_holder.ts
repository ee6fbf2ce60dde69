// Who listens on a port, in the words of the port.conflict event (contract section 3).
import { readFileSync } from 'node:fs';
import { holderOf, isLocal, type Listener } from '../../adapters/process/listeners.ts';
import { environOf, type ProcessRow, processRow } from '../../adapters/process/proctable.ts';

export interface Holder {
  pid: number | null;
  /** A service's name, `pid 1234 (node)`, `user NAME` for another user's, or `unknown`. */
  holder: string;
}

const MARK = 'BERTH_SERVICE=';
/** A server that is this many processes below the one that bears the mark is not looked up any more. */
const GENERATIONS = 8;
const FIRST_PID = 1;

/**
 * Who would answer a connection to `port` on localhost; null when nobody does. `isService` says which names are
 * services: the mark of another daemon's service is no name of ours.
 */
export function holderOn(
  port: number,
  table: readonly Listener[],
  isService: (name: string) => boolean,
): Holder | null {
  const sockets = table.filter((row) => row.port === port && isLocal(row.address));
  for (const { uid, inode } of sockets) {
    if (uid !== process.getuid?.()) return { pid: null, holder: `user ${userName(uid)}` };
    const owner = holderOf(inode);
    if (owner) return { pid: owner.pid, holder: nameOf(owner, isService) };
  }
  return sockets.length > 0 ? { pid: null, holder: 'unknown' } : null;
}

function nameOf(row: ProcessRow, isService: (name: string) => boolean): string {
  const name = serviceOf(row);
  return name !== undefined && isService(name) ? name : `pid ${row.pid} (${row.comm})`;
}

/** The service whose mark the process bears. One that has overwritten it to change its title has a parent that has not. */
function serviceOf(row: ProcessRow): string | undefined {
  let at: ProcessRow | undefined = row;
  for (let step = 0; at && at.pid !== FIRST_PID && step < GENERATIONS; step += 1) {
    const entries = environOf(at.pid)?.toString('latin1').split('\0');
    const found = entries?.find((entry) => entry.startsWith(MARK));
    if (found) return found.slice(MARK.length);
    at = processRow(at.ppid);
  }
  return undefined;
}

/** As /etc/passwd has it, else the number. */
function userName(uid: number): string {
  try {
    const rows = readFileSync('/etc/passwd', 'utf8').split('\n');
    return rows.find((row) => row.split(':')[2] === String(uid))?.split(':')[0] ?? String(uid);
  } catch {
    return String(uid);
  }
}
