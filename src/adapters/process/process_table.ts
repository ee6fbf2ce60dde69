// The process table of the system, read from /proc. Where there is none (macOS) the table is empty: whoever uses it must
// still have what it started itself.
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { isOutOfDescriptors } from './reserved_descriptor.ts';

export interface ProcessRow {
  pid: number;
  ppid: number;
  /** Process group. */
  pgid: number;
  session: number;
  /** Clock ticks from the boot of the machine to the start of the process: with the pid and the boot its identity. */
  startTicks: number;
  /** A letter of ps(1): R, S, D, T, ... */
  state: string;
  /** Clock ticks of processor time used so far, user and system together. */
  cpuTicks: number;
  /** As counted per processor: some dozen pages off per processor, 0 right after a start. `residentBytes` is exact. */
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

/** A stat line is some 300 bytes, and never longer than this. */
const procBuffer = Buffer.allocUnsafe(1024);
const fields = new Float64Array(RSS + 1);

/** arm64 kernels are built with pages of 4, 16 or 64 KiB: the auxiliary vector of this process tells which. */
function pageSize(): number {
  const AT_PAGESZ = 6n;
  try {
    const vector = readFileSync('/proc/self/auxv');
    for (let at = 0; at + 16 <= vector.length; at += 16) {
      if (vector.readBigUInt64LE(at) === AT_PAGESZ) return Number(vector.readBigUInt64LE(at + 8));
    }
  } catch {
    // No /proc: no row is ever made either.
  }
  return 4096;
}

/** Reads one small file of /proc into `line`; -1 when the process has gone. Throws when no file can be opened. */
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
  // The name may hold anything, also parentheses and spaces: it ends at the last one.
  const nameEnd = procBuffer.lastIndexOf(CLOSE, length - 1);
  let at = nameEnd + 4;
  for (let field = PPID; field <= RSS; field += 1) {
    let value = 0;
    for (let byte = procBuffer[at] ?? SPACE; at < length && byte !== SPACE; byte = procBuffer[at] ?? SPACE) {
      // A minus sign (tty, priority) spoils the number: those fields are not used.
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

/** The row of one process, also of a zombie; undefined when there is no such process, or no descriptor to look by. */
export function processRow(pid: number): ProcessRow | undefined {
  try {
    return readRow(pid);
  } catch {
    return undefined;
  }
}

/** Who appears while the table is read is looked for so often. */
const MAX_PASSES = 4;

/**
 * Every process of the system: 5 to 12 ms for 300. Not a snapshot, each row is of its own moment; but who was born of one
 * that has gone meanwhile is not missed. Throws when it cannot be read whole for want of descriptors.
 */
export function processTable(): Map<number, ProcessRow> {
  const table = new Map<number, ProcessRow>();
  const tried = new Set<number>();
  for (let listing = 0; listing < MAX_PASSES; listing += 1) {
    const before = tried.size;
    // The newest first: they are the ones that may be gone in a moment.
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

/** The same in one go, for who looks again and again and need not see who comes and goes meanwhile: `known` rows are not read. */
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

/** Whether the process still runs: a zombie has ended and only waits to be noticed. */
export const isRunning = (row: ProcessRow | undefined): row is ProcessRow =>
  row !== undefined && row.state !== 'Z' && row.state !== 'X';

/** Whether `pid` is still the process that started at `startTicks`, and runs. */
export function isAlive(pid: number, startTicks: number): boolean {
  const row = processRow(pid);
  // No row may also mean that we have no descriptor to read it by.
  return row ? isRunning(row) && row.startTicks === startTicks : pidExists(pid);
}

/** As `isAlive`, of what a process has said of itself: where the system tells no starts it says 0, and the pid has to do. */
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

/** Resident memory of a process, exactly; 0 when it has gone, or when there is no descriptor to look by. */
export function residentBytes(pid: number): number {
  try {
    const length = readProcFile(`/proc/${pid}/statm`);
    const pages = length > 0 ? procBuffer.toString('latin1', 0, length).split(' ')[1] : undefined;
    return Number(pages ?? 0) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

/** Whether a process lets `signal` (a number) end it, catches it or ignores it; null when it has gone. */
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

/**
 * The environment a process was started with, entries ended by NUL; undefined when we may not read it or it has gone. Throws
 * when no file can be opened.
 */
export function environOf(pid: number): Buffer | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`);
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error;
    return undefined;
  }
}

/** The command line of a process for people, or its name where that is empty (a zombie, another user's). */
export function commandOf(row: ProcessRow): string {
  try {
    const text = readFileSync(`/proc/${row.pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return text || row.comm;
  } catch {
    return row.comm;
  }
}

/** Whether a process has a controlling terminal; null when it has gone, or where the system does not say. */
export function hasTerminal(pid: number): boolean | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[TERMINAL - STATE] !== '0';
  } catch {
    return null;
  }
}

/** Tells one boot of the machine from another; '' where the system does not say. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
