// System calls that Node does not offer, called directly in libc. The only importer of koffi. Every caller
// must manage without them if koffi does not load.
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import type { LibraryHandle } from 'koffi';
import { loadPosixSpawn, type PosixSpawn } from './posix_spawn.ts';

/** Constants of <fcntl.h>, <sys/file.h>, <sys/wait.h>, <sys/prctl.h> and <sys/socket.h>. */
const F_SETFD = 2;
const FD_CLOEXEC = 1;
const F_DUPFD_CLOEXEC = process.platform === 'darwin' ? 67 : 1030;
const LOCK_EX_NB = 2 | 4;
const WNOHANG = 1;
const PR_SET_CHILD_SUBREAPER = 36;
const F_SETFL = 4;
const F_SETOWN = 8;
const O_NONBLOCK = 0o4000;
const O_ASYNC = 0o20000;
const AF_UNIX = 1;
/** Most bytes of the path of a socket, its NUL included. */
const MAX_SOCKET_PATH_BYTES = 108;
const AF_NETLINK = 16;
/** SOCK_DGRAM, SOCK_CLOEXEC and SOCK_NONBLOCK. */
const DATAGRAM_TYPE = 0o2 | 0o2000000 | 0o4000;
/** A duplicate is never one of the standard descriptors. */
const LOWEST_DUPLICATE = 3;

/**
 * How a child ended. `exitCode` is null if a signal ended it; both are null if its zombie was reaped
 * elsewhere.
 */
export interface ExitStatus {
  exitCode: number | null;
  signal: string | null;
}

/** The name of a signal; null where no signal has this number. */
export const signalNameOf = (number: number): string | null =>
  Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? null;

/** Decodes a status of waitpid. */
function exitStatusOf(status: number): ExitStatus {
  const signal = status & 0x7f;
  return signal === 0
    ? { exitCode: (status >> 8) & 0xff, signal: null }
    : { exitCode: null, signal: signalNameOf(signal) ?? `signal ${signal}` };
}

export interface Libc {
  /** Prevents programs started from now on from inheriting `fd`. A closed descriptor is not an error. */
  closeOnExec(fd: number): void;
  /** A second descriptor of the same open file, not inherited by children. Throws when none is left. */
  duplicate(fd: number): number;
  /**
   * From now on, orphaned descendants become children of this process. False if the system cannot do that.
   */
  becomeSubreaper(): boolean;
  /** Reaps the child `pid`, which nothing else must wait for; null while it lives. */
  reap(pid: number): ExitStatus | null;
  /** Returns a function that starts children unknown to Node. Throws if libc lacks a call for it. */
  posixSpawn(): PosixSpawn;
  /** Makes a FIFO that only this user can open. Throws with the `code` of the system. */
  makeFifo(path: string): void;
  /** Locks the open file until this process ends; false if another process has locked it. */
  lock(fd: number): boolean;
  /**
   * A socket to the kernel for one netlink protocol, for use with `write` and `read`. Throws if there is
   * none.
   */
  netlink(protocol: number): number;
  /**
   * A datagram socket at `path`, for use with `read`. SIGIO announces its datagrams to this process. Throws
   * with the reason if it cannot be created.
   */
  announcedSocket(path: string): number;
  /**
   * Closes a descriptor from `netlink` or `duplicate`. In a thread, Node warns about closing those that it
   * did not open itself.
   */
  close(fd: number): void;
  /**
   * Reads without waiting. Returns the bytes read, 0 at the end, or a negative errno, so that EAGAIN costs no
   * exception.
   */
  read(fd: number, into: Uint8Array): number;
  /** Writes without waiting. Returns the bytes written, or a negative errno. */
  write(fd: number, from: Uint8Array): number;
  /** Returns memory freed by this process to the system, if libc has a call for that. */
  trim(): void;
}

/** Looks up the functions that every system has. Throws if one is missing. */
function lookUpCalls(library: LibraryHandle) {
  const call = <A extends unknown[]>(prototype: string): ((...args: A) => number) => library.func(prototype);
  return {
    fcntl: call<[fd: number, command: number, type: 'int', argument: number]>('int fcntl(int, int, ...)'),
    flock: call<[fd: number, operation: number]>('int flock(int, int)'),
    mkfifo: call<[path: string, mode: number]>('int mkfifo(const char *, unsigned int)'),
    waitpid: call<[pid: number, status: Int32Array, options: number]>('int waitpid(int, void *, int)'),
    read: call<[fd: number, into: Uint8Array, size: number]>('long read(int, void *, unsigned long)'),
    write: call<[fd: number, from: Uint8Array, size: number]>('long write(int, const void *, unsigned long)'),
    close: call<[fd: number]>('int close(int)'),
  };
}

class KoffiLibc implements Libc {
  private readonly library: LibraryHandle;
  private readonly errno: () => number;
  private readonly calls: ReturnType<typeof lookUpCalls>;
  private readonly status = new Int32Array(1);
  private trimCall: ((padding: number) => number) | null | undefined;

  constructor(library: LibraryHandle, errno: () => number) {
    this.library = library;
    this.errno = errno;
    this.calls = lookUpCalls(library);
  }

  closeOnExec(fd: number): void {
    this.calls.fcntl(fd, F_SETFD, 'int', FD_CLOEXEC);
  }

  duplicate(fd: number): number {
    const copy = this.calls.fcntl(fd, F_DUPFD_CLOEXEC, 'int', LOWEST_DUPLICATE);
    if (copy < 0) throw this.failed('fcntl(F_DUPFD_CLOEXEC)');
    return copy;
  }

  becomeSubreaper(): boolean {
    if (process.platform !== 'linux') return false;
    const prctl: (option: number, type: 'unsigned long', on: number) => number =
      this.library.func('int prctl(int, ...)');
    return prctl(PR_SET_CHILD_SUBREAPER, 'unsigned long', 1) === 0;
  }

  reap(pid: number): ExitStatus | null {
    const reaped = this.calls.waitpid(pid, this.status, WNOHANG);
    if (reaped === 0) return null;
    return reaped < 0 ? { exitCode: null, signal: null } : exitStatusOf(this.status[0] ?? 0);
  }

  posixSpawn(): PosixSpawn {
    return loadPosixSpawn(this.library);
  }

  makeFifo(path: string): void {
    if (this.calls.mkfifo(path, 0o600) < 0) throw this.failed(`mkfifo ${path}`);
  }

  lock(fd: number): boolean {
    if (this.calls.flock(fd, LOCK_EX_NB) === 0) return true;
    if (this.errno() === constants.errno.EWOULDBLOCK) return false;
    throw this.failed('flock');
  }

  netlink(protocol: number): number {
    if (process.platform !== 'linux') throw new Error('netlink: not on this system');
    const socket: (domain: number, type: number, protocol: number) => number =
      this.library.func('int socket(int, int, int)');
    const fd = socket(AF_NETLINK, DATAGRAM_TYPE, protocol);
    if (fd < 0) throw this.failed('socket(AF_NETLINK)');
    return fd;
  }

  announcedSocket(path: string): number {
    if (process.platform !== 'linux') throw new Error('sockets for notices are not possible on this system');
    const name = Buffer.from(`${path}\0`);
    if (name.length > MAX_SOCKET_PATH_BYTES) throw new Error(`${path} is too long for a socket`);
    const socket: (domain: number, type: number, protocol: number) => number =
      this.library.func('int socket(int, int, int)');
    const bind: (fd: number, address: Uint8Array, size: number) => number = this.library.func(
      'int bind(int, const void *, unsigned int)',
    );
    const fd = socket(AF_UNIX, DATAGRAM_TYPE, 0);
    if (fd < 0) throw this.failed('socket(AF_UNIX)');
    const address = Buffer.concat([Buffer.from([AF_UNIX, 0]), name]);
    const isOpen =
      bind(fd, address, address.length) === 0 &&
      this.calls.fcntl(fd, F_SETOWN, 'int', process.pid) === 0 &&
      this.calls.fcntl(fd, F_SETFL, 'int', O_ASYNC | O_NONBLOCK) === 0;
    if (isOpen) return fd;
    const error = this.failed(`bind ${path}`);
    this.close(fd);
    throw error;
  }

  close(fd: number): void {
    this.calls.close(fd);
  }

  read(fd: number, into: Uint8Array): number {
    const count = this.calls.read(fd, into, into.length);
    return count < 0 ? -this.errno() : count;
  }

  write(fd: number, from: Uint8Array): number {
    const count = this.calls.write(fd, from, from.length);
    return count < 0 ? -this.errno() : count;
  }

  trim(): void {
    if (this.trimCall === undefined) {
      try {
        this.trimCall = this.library.func('int malloc_trim(unsigned long)');
      } catch {
        // Not glibc.
        this.trimCall = null;
      }
    }
    this.trimCall?.(0);
  }

  private failed(call: string): Error {
    const code = getSystemErrorName(-this.errno());
    return Object.assign(new Error(`${call}: ${code}`), { code });
  }
}

/** Loads libc. Rejects with the reason if koffi or a function is missing. */
export async function loadLibc(): Promise<Libc> {
  const { default: koffi } = await import('koffi');
  // The program itself is linked to libc, whatever that file is called on this system.
  return new KoffiLibc(koffi.load(null), () => koffi.errno());
}
