// Whether a daemon may begin before its process host is there: a host takes as long to start as the rest of the daemon.
//
// The host is the lock, and knows what runs. It need not be asked when there is none, and the ledger it has left says that
// nothing runs. Of two daemons that start at the same moment only one may find it so: whoever has the socket of this file.
// The other one waits for the host, which turns it away.
import { statSync } from 'node:fs';
import { createServer } from 'node:net';
import { hasSocket, isServed } from './hostsocket.ts';
import { hostFolder } from './hostspawn.ts';
import { ledgerFile, readLedger } from './ledgerfile.ts';

/** What becomes of the host at a start: it is there, it has been started and has to be there first, or it may come later. */
export type HostTurn = 'there' | 'first' | 'later';

/** Of an abstract address (a socket without a file) all bytes count: padded, so that every version of Node means the same. */
const ADDRESS_BYTES = 107;

/** Whether this process may be the first: `none` where there are no such sockets. */
type Place = 'first' | 'taken' | 'none';

/** Takes the socket that stands for this start until the process ends. */
function takePlace(stateDir: string): Promise<Place> {
  if (process.platform !== 'linux') return Promise.resolve('none');
  const { dev, ino } = statSync(stateDir, { bigint: true });
  const address = `\0${`berth-${dev}-${ino}-`.padEnd(ADDRESS_BYTES, '-')}`;
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'EADDRINUSE' ? 'taken' : 'none'),
    );
    server.listen(address, () => resolve('first')).unref();
  });
}

/** Whoever has the socket is a daemon that starts its host now, or soon: it is waited for this long. */
const PATIENCE_MS = 2_000;
const RETRY_MS = 5;

/**
 * Looks what the last daemon of `stateDir` has left. Of all who ask, one at a time is told `later`, until its process ends; the
 * others are told when its host is there, which then turns them away.
 */
export async function hostTurn(stateDir: string): Promise<HostTurn> {
  const folder = hostFolder(stateDir);
  const began = performance.now();
  for (;;) {
    // Before the looks: what they find stays so.
    const place = await takePlace(stateDir);
    if (hasSocket(folder) && (await isServed(folder))) return 'there';
    if (place === 'first' && readLedger(ledgerFile(folder)).size === 0) return 'later';
    if (place !== 'taken' || performance.now() - began > PATIENCE_MS) return 'first';
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
