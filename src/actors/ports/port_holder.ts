// The holder of a port, in the words of the port.conflict event: docs/reference.md "Ports and conflicts".
import { isLocalAddress, type ListeningSocket, mayServe } from '../../adapters/process/listeners.ts';
import { environOf, type ProcessRow, processRow } from '../../adapters/process/process_table.ts';
import { runMarkInEnviron, variableInEnviron } from '../../adapters/process/process_tree.ts';
import { socketHolder, treeHasOpen } from '../../adapters/process/socket_holder.ts';
import { userName } from '../../adapters/process/users.ts';
import type { LedgerRun } from '../../protocol/host.ts';
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
  /** The process and its ancestors, nearest first; empty when unknown. */
  line: readonly ProcessRow[];
}

/** The length of the line of ancestors, from the process that listens on. */
const MAX_ANCESTORS = 8;
const INIT_PID = 1;

/** The sockets that a connection to `port` on localhost may reach. */
const listenersOn = (port: number, table: readonly ListeningSocket[]): ListeningSocket[] =>
  table.filter((row) => row.port === port && isLocalAddress(row.address));

/** The holder of a socket of this user, or of any socket that may be inspected; undefined if not found. */
async function holderOf({ inode }: ListeningSocket): Promise<PortHolder | undefined> {
  const owner = await socketHolder(inode);
  if (!owner) return undefined;
  const line = lineOf(owner);
  return { pid: owner.pid, label: `pid ${owner.pid} (${owner.comm})`, mark: markIn(line), line };
}

const unseen = (label: string): PortHolder => ({ pid: null, label, mark: null, line: [] });

const holderOfOther = ({ uid }: ListeningSocket): PortHolder => unseen(`user ${userName(uid)}`);

/** The process that would answer a connection to `port` on localhost; null without one. */
export async function portHolderOf(
  port: number,
  table: readonly ListeningSocket[],
): Promise<PortHolder | null> {
  const sockets = listenersOn(port, table);
  for (const socket of sockets) {
    const holder = socket.uid === process.getuid?.() ? await holderOf(socket) : holderOfOther(socket);
    if (holder) return holder;
  }
  return sockets.length > 0 ? unseen('unknown') : null;
}

/**
 * Other users' processes that listen on the port of a run: docs/reference.md "Ports and conflicts". Undefined
 * without any.
 */
export async function otherUserOn(
  { port, pid }: PortUse,
  table: readonly ListeningSocket[],
): Promise<PortHolder | undefined> {
  for (const socket of listenersOn(port, table))
    if (!(await mayServe(socket, pid))) return holderOfOther(socket);
  return undefined;
}

/** The processes outside the tree of a run that listen on its port, except those that carry its mark. */
export async function strangersOn(
  { port, pid, run }: PortUse,
  table: readonly ListeningSocket[],
): Promise<PortHolder[]> {
  const strangers: PortHolder[] = [];
  for (const socket of listenersOn(port, table)) {
    if (await treeHasOpen(pid, socket.inode)) continue;
    const holder = await holderOf(socket);
    if (holder && holder.mark?.run !== run) strangers.push(holder);
  }
  return strangers;
}

/** The live run that the process belongs to, by its ancestors and its session; undefined without one. */
export const runOfHolder = ({ line }: PortHolder, runs: readonly LedgerRun[]): LedgerRun | undefined =>
  runs.find(
    ({ pid, startTicks, end }) =>
      end === null &&
      line.some((row) => row.session === pid || (row.pid === pid && row.startTicks === startTicks)),
  );

function lineOf(row: ProcessRow): ProcessRow[] {
  const line: ProcessRow[] = [];
  for (let at: ProcessRow | undefined = row; at && at.pid !== INIT_PID; at = processRow(at.ppid)) {
    line.push(at);
    if (line.length === MAX_ANCESTORS) break;
  }
  return line;
}

/**
 * The mark of the process. A process that overwrote its mark to change its title may have a parent with an
 * intact one.
 */
function markIn(line: readonly ProcessRow[]): ServiceMark | null {
  for (const { pid } of line) {
    const environ = environOf(pid);
    const name = environ && variableInEnviron(environ, 'BERTH_SERVICE=');
    if (name) return { name, run: runMarkInEnviron(environ) ?? '' };
  }
  return null;
}
