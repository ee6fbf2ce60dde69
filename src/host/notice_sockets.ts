// The sockets on which programs report that they are ready and alive, as in sd_notify(3): READY=1, WATCHDOG=1
// and STATUS=. The host holds them, so that nothing is lost while no daemon is running. libuv does not read
// Unix datagrams, so the kernel announces them by SIGIO instead of polling.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Libc } from '../adapters/process/libc.ts';
import type { HostProtocol, Notice } from '../protocol/host.ts';
import type { Clock, ReplyOf } from '../runtime/actor.ts';
import { KIB } from '../settings/limits.ts';

type NotifiedReply = ReplyOf<HostProtocol, 'notified'>;

interface NoticeSocket {
  fd: number;
  isReady: boolean;
  /** The program has the path of before a rename, so nothing of it is heard any more. */
  isLost: boolean;
  /** When the last WATCHDOG=1 arrived, or the start; monotonic milliseconds. */
  aliveAt: number;
  status: string;
  /** Called after each datagram. */
  waiters: Set<() => void>;
}

/** Longer statuses are cut. */
const MAX_STATUS_LENGTH = 200;
/** How many datagrams of one socket to read in a turn. */
const MAX_READS = 64;
const readBuffer = Buffer.allocUnsafeSlow(4 * KIB);
const SUFFIX = '.notify';

/** The path of the socket of `run`. */
const noticePath = (folder: string, run: string): string => join(folder, `${run}${SUFFIX}`);

/** Removes the sockets of all runs except those of `keep`. */
export function sweepNoticeSockets(folder: string, keep: ReadonlySet<string>): void {
  for (const file of readdirSync(folder)) {
    if (file.endsWith(SUFFIX) && !keep.has(file.slice(0, -SUFFIX.length)))
      rmSync(join(folder, file), { force: true });
  }
}

export class NoticeSockets {
  private folder: string;
  private readonly libc: Libc | null;
  private readonly clock: Clock;
  private readonly sockets = new Map<string, NoticeSocket>();
  private readonly onSignal = (): void => this.readAll();

  constructor(folder: string, libc: Libc | null, clock: Clock) {
    this.folder = folder;
    this.libc = libc;
    this.clock = clock;
  }

  /** Opens the socket of a run, replacing that of an earlier host. Throws with the reason. */
  open(run: string, isReady: boolean): string {
    if (!this.libc) throw new Error('its socket for notices needs koffi, which does not load here');
    const path = noticePath(this.folder, run);
    rmSync(path, { force: true });
    if (this.sockets.size === 0) process.on('SIGIO', this.onSignal);
    try {
      const fd = this.libc.announcedSocket(path);
      const aliveAt = this.clock.monotonic();
      this.sockets.set(run, { fd, isReady, isLost: false, aliveAt, status: '', waiters: new Set() });
      return path;
    } finally {
      this.listenIfNeeded();
    }
  }

  /** The folder was renamed. */
  moveTo(folder: string): void {
    this.folder = folder;
    for (const socket of this.sockets.values()) socket.isLost = true;
    this.readAll();
  }

  close(run: string): void {
    const socket = this.sockets.get(run);
    if (!socket) return;
    this.sockets.delete(run);
    this.libc?.close(socket.fd);
    rmSync(noticePath(this.folder, run), { force: true });
    for (const wake of socket.waiters) wake();
    this.listenIfNeeded();
  }

  /** See `HostProtocol.notified`. A run without a socket has reported nothing. */
  async notified(run: string, what: Notice, timeoutMs: number): Promise<NotifiedReply> {
    const socket = this.sockets.get(run);
    if (!socket) return { holds: false, status: '' };
    const isTold = (): boolean =>
      socket.isLost ||
      (what.is === 'ready' ? socket.isReady : this.clock.monotonic() - socket.aliveAt <= what.withinMs);
    this.read(socket);
    if (!isTold()) {
      await new Promise<void>((resolve) => {
        const finish = (): void => {
          socket.waiters.delete(look);
          cancel();
          resolve();
        };
        const look = (): void => {
          if (isTold() || !this.sockets.has(run)) finish();
        };
        const cancel = this.clock.after(timeoutMs, finish);
        socket.waiters.add(look);
      });
    }
    return { holds: isTold(), status: socket.status };
  }

  private listenIfNeeded(): void {
    if (this.sockets.size === 0) process.off('SIGIO', this.onSignal);
  }

  private readAll(): void {
    for (const socket of this.sockets.values()) this.read(socket);
  }

  private read(socket: NoticeSocket): void {
    for (let count = 0; count < MAX_READS; count += 1) {
      const length = this.libc?.read(socket.fd, readBuffer) ?? -1;
      if (length < 0) break;
      this.take(socket, readBuffer.toString('utf8', 0, length));
      // Yields before reading the rest.
      if (count === MAX_READS - 1) setImmediate(this.onSignal);
    }
    for (const wake of [...socket.waiters]) wake();
  }

  private take(socket: NoticeSocket, text: string): void {
    for (const line of text.split('\n')) {
      if (line === 'READY=1') socket.isReady = true;
      // A program that is ready is also alive.
      if (line === 'READY=1' || line === 'WATCHDOG=1') socket.aliveAt = this.clock.monotonic();
      if (line.startsWith('STATUS=')) socket.status = line.slice('STATUS='.length, MAX_STATUS_LENGTH);
    }
  }
}
