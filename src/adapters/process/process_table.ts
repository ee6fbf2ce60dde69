// The system's process table, from /proc. Without /proc (macOS) it is empty, and callers only know the
// processes they have started themselves.
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
} from 'node:fs';
import { isOutOfDescriptors } from './reserved_descriptor.ts';

export interface ProcessRow {
  pid: number;
  ppid: number;
  /** Process group. */
  pgid: number;
  session: number;
  /**
   * Clock ticks from the boot to the start of the process. With the pid and the boot, it identifies the
   * process.
   */
  startTicks: number;
  /** A letter of ps(1): R, S, D, T, ... */
  state: string;
  /** Processor time so far, user and system together, in clock ticks. */
  cpuTicks: number;
  /** Inexact by a few dozen pages per processor, and 0 right after a start. `residentBytes` is exact. */
  rssBytes: number;
  comm: string;
}

/** Clock ticks of /proc per second: USER_HZ, 100 on every Linux that Node runs on. */
export const TICKS_PER_SECOND = 100;
const PAGE_BYTES = process.arch === 'arm64' ? pageSize() : 4096;

/** Field numbers of proc(5), from 1. */
const STATE = 3;
const PPID = 4;
const PGID = 5;
const SESSION = 6;
const TERMINAL = 7;
const USER_TICKS = 14;
const SYSTEM_TICKS = 15;
const START = 22;
const RSS = 24;

const SPACE = 0x20;
const ZERO = 0x30;
const CLOSE = 0x29;

/** A stat line has some 300 bytes, and never more than this. */
const procBuffer = Buffer.allocUnsafe(1024);
const fields = new Float64Array(RSS + 1);

/** The page size of an arm64 kernel: 4, 16 or 64 KiB, from this process's auxiliary vector. */
function pageSize(): number {
  const AT_PAGESZ = 6n;
  try {
    const vector = readFileSync('/proc/self/auxv');
    for (let at = 0; at + 16 <= vector.length; at += 16) {
      if (vector.readBigUInt64LE(at) === AT_PAGESZ) return Number(vector.readBigUInt64LE(at + 8));
    }
  } catch {
    // Without /proc there are no rows either.
  }
  return 4096;
}

/**
 * Reads one small file of /proc into `procBuffer`; -1 if the process is gone. Throws when no file can be
 * opened.
 */
function readProcFile(path: string): number {
  try {
    const fd = openSync(path, 'r');
    try {
      return readSync(fd, procBuffer, 0, procBuffer.length, null);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return -1;
  }
}

function parseStat(pid: number, length: number): ProcessRow {
  // The name may contain anything, including parentheses and spaces. It ends at the last parenthesis.
  const nameEnd = procBuffer.lastIndexOf(CLOSE, length - 1);
  let at = nameEnd + 4;
  for (let field = PPID; field <= RSS; field += 1) {
    let value = 0;
    for (let byte = procBuffer[at] ?? SPACE; at < length && byte !== SPACE; byte = procBuffer[at] ?? SPACE) {
      // A minus sign (tty, priority) garbles the number; those fields are not used.
      value = value * 10 + (byte - ZERO);
      at += 1;
    }
    fields[field] = value;
    at += 1;
  }
  const of = (field: number) => fields[field] ?? 0;
  return {
    pid,
    ppid: of(PPID),
    pgid: of(PGID),
    session: of(SESSION),
    startTicks: of(START),
    state: String.fromCharCode(procBuffer[nameEnd + STATE - 1] ?? SPACE),
    cpuTicks: of(USER_TICKS) + of(SYSTEM_TICKS),
    rssBytes: of(RSS) * PAGE_BYTES,
    comm: procBuffer.toString('utf8', procBuffer.indexOf('(') + 1, nameEnd),
  };
}

function readRow(pid: number): ProcessRow | undefined {
  const length = readProcFile(`/proc/${pid}/stat`);
  return length > 0 ? parseStat(pid, length) : undefined;
}

/**
 * The row of one process, zombies included; undefined if there is none, or no free descriptor to read it
 * with.
 */
export function processRow(pid: number): ProcessRow | undefined {
  try {
    return readRow(pid);
  } catch {
    return undefined;
  }
}

/** The most passes over /proc. Later ones find processes started during the earlier. */
const MAX_PASSES = 4;

/**
 * Every process of the system; takes 5 to 12 ms for 300. Not a snapshot, because each row is read at its own
 * moment. But a child of a process that ends meanwhile is not missed. Throws when there is no free
 * descriptor.
 */
export function processTable(): Map<number, ProcessRow> {
  const table = new Map<number, ProcessRow>();
  const tried = new Set<number>();
  for (let listing = 0; listing < MAX_PASSES; listing += 1) {
    const before = tried.size;
    // The newest first, because they are the most likely to end soon.
    for (const pid of pids().reverse()) {
      if (tried.has(pid)) continue;
      tried.add(pid);
      const row = readRow(pid);
      if (row) table.set(pid, row);
    }
    if (tried.size === before) break;
  }
  return table;
}

/**
 * Like `processTable`, in one pass and without reading rows that `knownRow` returns, for frequent callers.
 */
export function refreshProcessTable(
  knownRow: (pid: number) => ProcessRow | undefined,
): Map<number, ProcessRow> {
  const table = new Map<number, ProcessRow>();
  for (const pid of pids()) {
    const row = knownRow(pid) ?? readRow(pid);
    if (row) table.set(pid, row);
  }
  return table;
}

function pids(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return [];
  }
}

/** Whether a process still runs. A zombie does not. */
export const isRunning = (row: ProcessRow | undefined): row is ProcessRow =>
  row !== undefined && row.state !== 'Z' && row.state !== 'X';

/** Whether `pid` is still the process that started at `startTicks`, and runs. */
export function isAlive(pid: number, startTicks: number): boolean {
  const row = processRow(pid);
  // A missing row may only mean that no descriptor is free.
  return row ? isRunning(row) && row.startTicks === startTicks : pidExists(pid);
}

/** Whether the process is stopped, as by Ctrl-Z; false where the system does not say. */
export const isSuspended = (pid: number): boolean => processRow(pid)?.state === 'T';

/** What to say of such a process, and what to advise. */
export const SUSPENDED = 'is suspended, as by Ctrl-Z';
export const wayToContinue = (pid: number): string => `\`kill -CONT ${pid}\` continues it.`;

/**
 * Like `isAlive`, for a process that reported its own start time. If that is 0, because its system does not
 * know it, only the pid is checked.
 */
export const mayBeAlive = (pid: number, startTicks: number): boolean =>
  startTicks > 0 ? isAlive(pid, startTicks) : pidExists(pid);

/** Whether some process has this pid. */
function pidExists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Exact resident memory of a process; 0 if it is gone, or no descriptor is free. */
export function residentBytes(pid: number): number {
  try {
    const length = readProcFile(`/proc/${pid}/statm`);
    const pages = length > 0 ? procBuffer.toString('latin1', 0, length).split(' ')[1] : undefined;
    return Number(pages ?? 0) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

/** What a process does on `signal`, a number; null where the process is gone. */
export function signalDisposition(pid: number, signal: number): 'default' | 'caught' | 'ignored' | null {
  let status: string;
  try {
    status = readFileSync(`/proc/${pid}/status`, 'latin1');
  } catch {
    return null;
  }
  const bit = 1n << BigInt(signal - 1);
  const has = (name: string) => {
    const mask = new RegExp(`^${name}:\\t([0-9a-f]+)$`, 'm').exec(status)?.[1] ?? '0';
    return (BigInt(`0x${mask}`) & bit) !== 0n;
  };
  if (has('SigIgn')) return 'ignored';
  return has('SigCgt') ? 'caught' : 'default';
}

/** The user id of a process; undefined if it has ended. */
export const ownerOf = (pid: number): number | undefined =>
  statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;

/**
 * The environment that a process was started with, each entry terminated by NUL; undefined if it is not
 * readable or the process is gone. Throws when no file can be opened.
 */
export function environOf(pid: number): Buffer | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`);
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return undefined;
  }
}

/**
 * The command line of a process for people, or its name if that is empty, as for zombies and other users'
 * processes.
 */
export function commandOf(row: ProcessRow): string {
  try {
    const text = readFileSync(`/proc/${row.pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return text || row.comm;
  } catch {
    return row.comm;
  }
}

const USUAL_UMASK = 0o022;

/**
 * The working directory and umask of a process, and the environment it was started with. Throws the system's
 * error if they are not readable or the process is gone.
 */
export function settingOf(pid: number): { cwd: string; env: [key: string, value: string][]; umask: number } {
  const env = readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .filter((row) => row.includes('='))
    .map((row): [string, string] => [row.slice(0, row.indexOf('=')), row.slice(row.indexOf('=') + 1)]);
  const umask = /^Umask:\t([0-7]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  return {
    cwd: readlinkSync(`/proc/${pid}/cwd`),
    env,
    umask: umask === undefined ? USUAL_UMASK : Number.parseInt(umask, 8),
  };
}

/** Whether a process has a controlling terminal; null if it is gone, or the system does not say. */
export function hasTerminal(pid: number): boolean | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[TERMINAL - STATE] !== '0';
  } catch {
    return null;
  }
}

/** Identifies a boot of the machine; empty if the system does not say. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

/**
 * Whether the folder in which the process `pid` works was removed, and another one is at `cwd` now, as after
 * `git worktree remove` and `add`. False where the system does not tell.
 */
export function worksInReplacedFolder(pid: number, cwd: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`).endsWith(' (deleted)') && existsSync(cwd);
  } catch {
    return false;
  }
}
