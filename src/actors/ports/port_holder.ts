// The holder of a port, in the words of the port.conflict event: docs/reference.md "Ports and conflicts".
import {
  isLocalAddress,
  type ListeningSocket,
  mayServe,
  socketHolder,
  treeHasOpen,
} from '../../adapters/process/listeners.ts';
import { environOf, type ProcessRow, processRow } from '../../adapters/process/process_table.ts';
import { userName } from '../../adapters/process/users.ts';
import type { PortUse } from '../../protocol/ports.ts';

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

/** The sockets that a connection to `port` on localhost may reach. */
const listenersOn = (port: number, table: readonly ListeningSocket[]): ListeningSocket[] =>
  table.filter((row) => row.port === port && isLocalAddress(row.address));

/** The holder of a socket of this user, or of any that may be inspected; undefined where it is not found. */
function holderOf({ inode }: ListeningSocket): PortHolder | undefined {
  const owner = socketHolder(inode);
  return owner && { pid: owner.pid, label: `pid ${owner.pid} (${owner.comm})`, mark: serviceMarkOf(owner) };
}

const holderOfOther = ({ uid }: ListeningSocket): PortHolder => ({
  pid: null,
  label: `user ${userName(uid)}`,
  mark: null,
});

/** The process that would answer a connection to `port` on localhost; null when there is none. */
export function portHolderOf(port: number, table: readonly ListeningSocket[]): PortHolder | null {
  const sockets = listenersOn(port, table);
  for (const socket of sockets) {
    const holder = socket.uid === process.getuid?.() ? holderOf(socket) : holderOfOther(socket);
    if (holder) return holder;
  }
  return sockets.length > 0 ? { pid: null, label: 'unknown', mark: null } : null;
}

/**
 * Those of another user who listen on the port of a run: docs/reference.md "Ports and conflicts". Undefined
 * where there are none.
 */
export const otherUserOn = (
  { port, pid }: PortUse,
  table: readonly ListeningSocket[],
): PortHolder | undefined =>
  listenersOn(port, table)
    .filter((socket) => !mayServe(socket, pid))
    .map(holderOfOther)[0];

/**
 * The processes outside the tree of a run that listen on its port for a service, of this daemon or another.
 */
export const otherServicesOn = (
  { port, pid, run }: PortUse,
  table: readonly ListeningSocket[],
): (PortHolder & { mark: ServiceMark })[] =>
  listenersOn(port, table)
    .filter((socket) => !treeHasOpen(pid, socket.inode))
    .flatMap((socket) => {
      const holder = holderOf(socket);
      const mark = holder?.mark;
      return mark && mark.run !== run ? [{ ...holder, mark }] : [];
    });

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
