// The check of `berth doctor` for the limits of services: docs/reference.md "Resource limits".
import { berthProcesses, cgroupFolder, cgroupPlace, strangersIn } from '../../adapters/process/cgroup.ts';

/**
 * The reason why cgroups below the cgroup of the daemon `daemonPid` do not enforce the limits of services;
 * null if they do.
 */
export function limitsTrouble(daemonPid: number, stateDir: string): string | null {
  const folder = cgroupFolder(daemonPid);
  if (folder === null) return 'this system has no control groups of version 2';
  try {
    const place = cgroupPlace(folder);
    const missing = ['memory', 'cpu', 'pids'].filter((name) => !place.controllers.includes(name));
    if (missing.length > 0) return `its control group cannot limit ${missing.join(', ')}`;
    const [stranger] = strangersIn(place, berthProcesses(daemonPid, stateDir));
    return stranger === undefined ? null : `process ${stranger} in its control group is not of Berth`;
  } catch {
    return 'its control group is not delegated to it';
  }
}
