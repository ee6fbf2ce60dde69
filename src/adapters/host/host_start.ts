// Decides whether a daemon may start before its process host, which takes as long to start as the rest of the
// daemon.
//
// The host is the lock of the state directory, and knows what is running. It need not be asked if no host is
// alive, the ledger of the last one says that nothing is running, and no process has a pipe of a run open,
// because the ledger may be damaged. Of two daemons that start at the same moment, only the one with the
// socket of this file (the start lock) may act on that. The other waits for the host, which refuses it.
// Starting the host first is always correct, only slower. So a daemon that finds the start lock held by
// another user does so at once.
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { stateDirId, statePaths } from '../../settings/state_paths.ts';
import { ownerOf, type ProcessRow } from '../process/process_table.ts';
import { ledgerFile, readLedger } from '../storage/ledger_file.ts';
import { isListening, socketExists } from './host_socket.ts';
import { haveRunsLeft } from './run_pipes.ts';

/** The host when a daemon starts: it is running; it was started first; or its start may be deferred. */
export type HostStart = 'running' | 'started' | 'deferred';

/**
 * All bytes of an abstract address (a socket without a file) are significant, so it is padded for all
 * versions of Node to agree.
 */
const ADDRESS_BYTES = 107;

/** Whether this process got the start lock; `unsupported` if there are no abstract sockets. */
type StartLock = 'acquired' | 'taken' | 'unsupported';

const LOCK_PREFIX = 'berth-';

/** The name of the socket that is the start lock of a state directory. */
const startLockName = (stateDir: string): string =>
  `${LOCK_PREFIX}${stateDirId(stateDir)}-`.padEnd(ADDRESS_BYTES, '-');

/** Takes the start lock until the process ends. */
function acquireStartLock(name: string): Promise<StartLock> {
  if (process.platform !== 'linux') return Promise.resolve('unsupported');
  const address = `\0${name}`;
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'EADDRINUSE' ? 'taken' : 'unsupported'),
    );
    server.listen(address, () => resolve('acquired')).unref();
  });
}

/** The inodes of the start locks of all state directories, by name; none if the system does not say. */
function startLocks(): Map<string, number> {
  let table: string;
  try {
    table = readFileSync('/proc/net/unix', 'latin1');
  } catch {
    return new Map();
  }
  const rows = table.split('\n').filter((line) => line.includes(` @${LOCK_PREFIX}`));
  // The name is the last column, the inode the one before it.
  const columns = rows.map((row) => row.split(' ').slice(-2));
  return new Map(columns.map(([inode, name = '']) => [name.slice(1), Number(inode)]));
}

/** Whether another user holds the start lock. Any user could take it, and so delay every start. */
async function isHeldByOtherUser(name: string): Promise<boolean> {
  const inode = startLocks().get(name);
  if (inode === undefined) return false;
  // Only loaded when two starts collide.
  const { socketHolder } = await import('../process/socket_holder.ts');
  let holder = await socketHolder(inode);
  if (!holder) {
    await pause(SOCKET_RELEASE_MS);
    if (startLocks().get(name) !== inode) return false;
    holder = await socketHolder(inode);
  }
  // The open files of another user's process are not visible.
  if (!holder) return true;
  return ownerOf(holder.pid) !== process.getuid?.();
}

/**
 * The process that holds the start lock of `stateDir`, or of a directory that was removed there: a daemon or
 * a cloud server. Undefined if none of this user does, or the system does not say.
 */
export async function startLockHolder(stateDir: string): Promise<ProcessRow | undefined> {
  const locks = startLocks();
  if (locks.size === 0) return undefined;
  const { hasOpen, socketHolder } = await import('../process/socket_holder.ts');
  const inode = existsSync(stateDir) ? locks.get(startLockName(stateDir)) : undefined;
  if (inode !== undefined) return socketHolder(inode);
  const removed = `${statePaths(realPathOf(stateDir)).store} (deleted)`;
  for (const other of locks.values()) {
    const holder = await socketHolder(other);
    if (holder && (await hasOpen(holder.pid, removed))) return holder;
  }
  return undefined;
}

/** The path of `folder` without links. It may be missing, unlike the folder above it. */
function realPathOf(folder: string): string {
  const above = dirname(resolve(folder));
  if (existsSync(folder)) return realpathSync(folder);
  return existsSync(above) ? join(realpathSync(above), basename(folder)) : folder;
}

const RETRY_MS = 5;
/** An exiting process closes its descriptors some time before its socket disappears. */
const SOCKET_RELEASE_MS = 50;

/**
 * Locks the state directory of a cloud server, which has no process host, until the process ends. Resolves
 * with false when another process of this user holds it.
 */
export async function takeStateDir(stateDir: string): Promise<boolean> {
  const name = startLockName(stateDir);
  return (await acquireStartLock(name)) !== 'taken' || (await isHeldByOtherUser(name));
}

/**
 * Decides based on what the last daemon of `stateDir` has left. Only one process at a time gets `deferred`,
 * until it ends. The others wait up to `timeoutMs` for that process's host, which then refuses them. A ledger
 * that has lost its runs is reported.
 */
export async function decideHostStart(
  stateDir: string,
  timeoutMs: number,
  report: (line: string) => void,
): Promise<HostStart> {
  const { host: folder, runs } = statePaths(stateDir);
  const name = startLockName(stateDir);
  const began = performance.now();
  for (let isRetry = false; ; isRetry = true) {
    // The lock comes before the checks, so that their results stay true.
    const lock = await acquireStartLock(name);
    if (socketExists(folder) && (await isListening(folder))) return 'running';
    if (lock === 'acquired' && readLedger(ledgerFile(folder)).size === 0) {
      if (!haveRunsLeft(runs)) return 'deferred';
      report(`${ledgerFile(folder)}: is missing or damaged: running services are found by their environment`);
      return 'started';
    }
    if (lock !== 'taken' || performance.now() - began > timeoutMs) return 'started';
    if (!isRetry && (await isHeldByOtherUser(name))) return 'started';
    await pause(RETRY_MS);
  }
}
