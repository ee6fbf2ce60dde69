// The daemon that uses a state directory: docs/reference.md "State directory".
import { type AddressRecord, readAddressFile } from '../../settings/state_dir.ts';
import { stateDirId } from '../../settings/state_paths.ts';
import { mayBeAlive } from './process_table.ts';

/**
 * Whether a daemon of the directory of which `stateDir` is a copy ran when it was copied: no daemon of this
 * one has started since. docs/reference.md "Copies of the state directory".
 */
export function isCopyOfRunning(stateDir: string): boolean {
  try {
    const { stateId } = readAddressFile(stateDir);
    return stateId !== undefined && stateId !== stateDirId(stateDir);
  } catch {
    return false;
  }
}

/**
 * The content of `<state>/daemon.json`, if its daemon is alive and is not that of a directory of which this
 * one is a copy; otherwise undefined.
 */
export function runningDaemon(stateDir: string): AddressRecord | undefined {
  try {
    const file = readAddressFile(stateDir);
    const { pid, port, startTime, stateId } = file;
    if (stateId !== undefined && stateId !== stateDirId(stateDir)) return undefined;
    // Pids are reused: the start time identifies the process that wrote the file.
    return Number.isInteger(pid) && Number.isInteger(port) && mayBeAlive(pid, startTime) ? file : undefined;
  } catch {
    // Absent, or in an unknown format: no daemon of ours.
    return undefined;
  }
}
