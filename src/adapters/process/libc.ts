// System calls that Node does not offer, called in libc itself. The only importer of koffi. Everybody must be able to do
// without it: where it does not load, `loadLibc` says why and the caller keeps what works without.
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { loadPosixSpawn, type PosixSpawn } from './posix_spawn.ts';

/** Numbers of <fcntl.h>, <sys/file.h>, <sys/wait.h> and <sys/prctl.h>. */
const F_SETFD = 2;
const FD_CLOEXEC = 1;
const F_DUPFD_CLOEXEC = process.platform === 'darwin' ? 67 : 1030;
const LOCK_EX_NB = 2 | 4;
const WNOHANG = 1;
const PR_SET_CHILD_SUBREAPER = 36;
const AF_NETLINK = 16;
/** SOCK_DGRAM, SOCK_CLOEXEC and SOCK_NONBLOCK. */
const NETLINK_TYPE = 0o2 | 0o2000000 | 0o4000;
/** A duplicate is never one of the standard descriptors. */
const LOWEST_DUPLICATE = 3;

/** How a child has ended; `exitCode` is null when a signal ended it, both are when somebody else has taken its zombie. */
export interface ExitStatus {
  exitCode: number | null;
  signal: string | null;
}

/** The name of a signal; null: there is none of this number. */
export const signalNameOf = (number: number): string | null =>
  Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? null;

/** What a status of waitpid means. */
function exitStatusOf(status: number): ExitStatus {
  const signal = status & 0x7f;
  return signal === 0
    ? { exitCode: (status >> 8) & 0xff, signal: null }
    : { exitCode: null, signal: signalNameOf(signal) ?? `signal ${signal}` };
}

export interface Libc {
  /** Keeps `fd` from every program started from now on. A closed descriptor is no error. */
  closeOnExec(fd: number): void;
  /** A second descriptor of the same open file, not inherited by children. Throws when there is none left. */
  duplicate(fd: number): number;
  /** From now on orphans among the descendants become children of this process. False where the system cannot. */
  becomeSubreaper(): boolean;
  /** Takes the zombie of `pid`, a child that nobody else waits for; null while it lives. */
  reap(pid: number): ExitStatus | null;
  /** What starts children without Node, which knows nothing of them. Throws where libc lacks a call for it. */
  posixSpawn(): PosixSpawn;
  /** Makes a FIFO that only this user can open. */
  makeFifo(path: string): void;
  /** Locks the open file for this process; false when another process has it locked. Freed by the end of the process. */
  lock(fd: number): boolean;
  /** A socket to the kernel for one netlink protocol, to be used with `write` and `read`. Linux only; throws elsewhere. */
  netlink(protocol: number): number;
  /** Closes what `netlink` or `duplicate` gave: in a thread Node warns of descriptors that it has not opened itself. */
  close(fd: number): void;
  /** Reads without waiting: bytes read, 0 at the end, or a negative errno (so that EAGAIN costs no exception). */
  read(fd: number, into: Uint8Array): number;
  /** Writes without waiting: bytes written, or a negative errno. */
  write(fd: number, from: Uint8Array): number;
}

/** Loads it. Rejects with the reason where koffi or a function is missing. */
export async function loadLibc(): Promise<Libc> {
  const { default: koffi } = await import('koffi');
  // The program itself is linked to libc, whatever that file is called on this system.
  const library = koffi.load(null);
  const fcntl: (fd: number, command: number, type: 'int', argument: number) => number =
    library.func('int fcntl(int, int, ...)');
  const flock: (fd: number, operation: number) => number = library.func('int flock(int, int)');
  const mkfifo: (path: string, mode: number) => number = library.func(
    'int mkfifo(const char *, unsigned int)',
  );
  const waitpid: (pid: number, status: Int32Array, options: number) => number = library.func(
    'int waitpid(int, void *, int)',
  );
  const status = new Int32Array(1);
  const read: (fd: number, buffer: Uint8Array, size: number) => number = library.func(
    'long read(int, void *, unsigned long)',
  );
  const write: (fd: number, buffer: Uint8Array, size: number) => number = library.func(
    'long write(int, const void *, unsigned long)',
  );
  const close: (fd: number) => number = library.func('int close(int)');
  const failed = (call: string) => {
    const code = getSystemErrorName(-koffi.errno());
    return Object.assign(new Error(`${call}: ${code}`), { code });
  };
  return {
    closeOnExec: (fd) => {
      fcntl(fd, F_SETFD, 'int', FD_CLOEXEC);
    },
    duplicate: (fd) => {
      const copy = fcntl(fd, F_DUPFD_CLOEXEC, 'int', LOWEST_DUPLICATE);
      if (copy < 0) throw failed('fcntl(F_DUPFD_CLOEXEC)');
      return copy;
    },
    becomeSubreaper: () => {
      if (process.platform !== 'linux') return false;
      const prctl: (option: number, type: 'unsigned long', on: number) => number =
        library.func('int prctl(int, ...)');
      return prctl(PR_SET_CHILD_SUBREAPER, 'unsigned long', 1) === 0;
    },
    reap: (pid) => {
      const taken = waitpid(pid, status, WNOHANG);
      if (taken === 0) return null;
      return taken < 0 ? { exitCode: null, signal: null } : exitStatusOf(status[0] as number);
    },
    posixSpawn: () => loadPosixSpawn(library),
    makeFifo: (path) => {
      if (mkfifo(path, 0o600) < 0) throw failed(`mkfifo ${path}`);
    },
    lock: (fd) => {
      if (flock(fd, LOCK_EX_NB) === 0) return true;
      if (koffi.errno() === constants.errno.EWOULDBLOCK) return false;
      throw failed('flock');
    },
    netlink: (protocol) => {
      if (process.platform !== 'linux') throw new Error('netlink: not on this system');
      const socket: (domain: number, type: number, protocol: number) => number =
        library.func('int socket(int, int, int)');
      const fd = socket(AF_NETLINK, NETLINK_TYPE, protocol);
      if (fd < 0) throw failed('socket(AF_NETLINK)');
      return fd;
    },
    close: (fd) => {
      close(fd);
    },
    read: (fd, into) => {
      const count = read(fd, into, into.length);
      return count < 0 ? -koffi.errno() : count;
    },
    write: (fd, from) => {
      const count = write(fd, from, from.length);
      return count < 0 ? -koffi.errno() : count;
    },
  };
}
