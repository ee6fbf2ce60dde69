// The check of `berth doctor` for the limits of services: docs/reference.md "Limits of a service".
import { readFileSync } from 'node:fs';
import { cgroupFolder, cgroupPlace, strangersIn } from '../../adapters/process/cgroup.ts';
import { type ProcessRow, processTable } from '../../adapters/process/process_table.ts';

/** Whether a process is the host of the state directory `stateDir`. */
function isHost(pid: number, stateDir: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[2] === stateDir;
  } catch {
    return false;
  }
}

/** The daemon, its host, and what they have started. */
function ownPids(daemonPid: number, stateDir: string): Set<number> {
  const table = processTable();
  const own = new Set([...table.keys()].filter((pid) => pid === daemonPid || isHost(pid, stateDir)));
  const isOwn = (row: ProcessRow | undefined): boolean =>
    row !== undefined && (own.has(row.pid) || (row.ppid > 1 && isOwn(table.get(row.ppid))));
  return new Set([...table.values()].filter(isOwn).map(({ pid }) => pid));
}

/**
 * Why the limits of services are not held by control groups below that of the daemon `daemonPid`; null: they
 * are.
 */
export function limitsTrouble(daemonPid: number, stateDir: string): string | null {
  const folder = cgroupFolder(daemonPid);
  if (folder === null) return 'this system has no control groups of version 2';
  try {
    const place = cgroupPlace(folder);
    const missing = ['memory', 'cpu', 'pids'].filter((name) => !place.controllers.includes(name));
    if (missing.length > 0) return `its control group cannot limit ${missing.join(', ')}`;
    const [stranger] = strangersIn(place, ownPids(daemonPid, stateDir));
    return stranger === undefined ? null : `process ${stranger} in its control group is not of Berth`;
  } catch {
    return 'its control group is not delegated to it';
  }
}
