// Whether a daemon may begin before its process host is there: a host takes as long to start as the rest of the daemon.
//
// The host is the lock, and knows what runs. It need not be asked when there is none, and the ledger it has left says that
// nothing runs. Of two daemons that start at the same moment only one may find it so: whoever has the socket of this file.
// The other one waits for the host, which turns it away. A host that comes first is always right, only later: so whoever
// finds the socket with another user takes that way at once.
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { ledgerFile, readLedger } from '../storage/ledger_file.ts';
import { isListening, socketExists } from './host_socket.ts';
import { hostFolder } from './spawn_host.ts';

/** What becomes of the host at a start: it is there, it has been started and has to be there first, or it may come later. */
export type HostStart = 'running' | 'started' | 'deferred';

/** Of an abstract address (a socket without a file) all bytes count: padded, so that every version of Node means the same. */
const ADDRESS_BYTES = 107;

/** Whether this process may be the first: `unsupported` where there are no such sockets. */
type StartLock = 'acquired' | 'taken' | 'unsupported';

/** The name of the socket that stands for a start with this directory. */
function startLockName(stateDir: string): string {
  const { dev, ino } = statSync(stateDir, { bigint: true });
  return `berth-${dev}-${ino}-`.padEnd(ADDRESS_BYTES, '-');
}

/** Takes the socket of that name until the process ends. */
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

/** The inode of the socket of that name; undefined: nobody has it, or nobody says so. */
function socketInode(name: string): number | undefined {
  let table: string;
  try {
    table = readFileSync('/proc/net/unix', 'latin1');
  } catch {
    return undefined;
  }
  const row = table.split('\n').find((line) => line.endsWith(` @${name}`));
  const columns = row?.split(' ');
  // The name is the last column, the inode the one before it.
  return columns && Number(columns.at(-2));
}

/** Whether another user has the socket of that name, which is everybody's to take: he would have each start wait. */
async function isHeldByOtherUser(name: string): Promise<boolean> {
  const inode = socketInode(name);
  if (inode === undefined) return false;
  // Loaded only where one start has met another.
  const { socketHolder } = await import('../process/listeners.ts');
  let holder = socketHolder(inode);
  if (!holder) {
    await pause(SOCKET_RELEASE_MS);
    if (socketInode(name) !== inode) return false;
    holder = socketHolder(inode);
  }
  // Of another user's process it cannot be seen what it has open.
  if (!holder) return true;
  return statSync(`/proc/${holder.pid}`, { throwIfNoEntry: false })?.uid !== process.getuid?.();
}

const RETRY_MS = 5;
/** One that ends has closed what it had open some time before that is gone. */
const SOCKET_RELEASE_MS = 50;

/**
 * Looks what the last daemon of `stateDir` has left. Of all who ask, one at a time is told `later`, until its process ends; the
 * others are told when its host is there, which then turns them away. Whoever has the place is a daemon that starts its host
 * now, or soon: it is waited for `patienceMs`.
 */
export async function decideHostStart(stateDir: string, timeoutMs: number): Promise<HostStart> {
  const folder = hostFolder(stateDir);
  const name = startLockName(stateDir);
  const began = performance.now();
  for (let isLooked = false; ; isLooked = true) {
    // Before the looks: what they find stays so.
    const place = await acquireStartLock(name);
    if (socketExists(folder) && (await isListening(folder))) return 'running';
    if (place === 'acquired' && readLedger(ledgerFile(folder)).size === 0) return 'deferred';
    if (place !== 'taken' || performance.now() - began > timeoutMs) return 'started';
    if (!isLooked && (await isHeldByOtherUser(name))) return 'started';
    await pause(RETRY_MS);
  }
}
