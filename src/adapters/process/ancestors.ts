// The processes above one. Without a process table (macOS) none is found.
import { stateDirId } from '../../settings/state_paths.ts';
import { environOf, ownerOf, processRow } from './process_table.ts';
import { STATE_ID_VARIABLE, variableInEnviron } from './process_tree.ts';

/** More than any tree of processes is deep. */
const MAX_DEPTH = 256;

/** `pid` and the processes above it, up to the first one of another user. */
export function* upwardsFrom(pid: number): Generator<number> {
  const user = process.getuid?.();
  let at = pid;
  for (let depth = 0; depth < MAX_DEPTH && at > 1 && ownerOf(at) === user; depth += 1) {
    yield at;
    at = processRow(at)?.ppid ?? 0;
  }
}

/** The id of the state directory of whose service, task or command this process is a part. */
export function runStateId(): string | undefined {
  for (const pid of upwardsFrom(process.pid)) {
    const environ = environOf(pid);
    const id = environ && variableInEnviron(environ, `${STATE_ID_VARIABLE}=`);
    if (id) return id;
  }
  return undefined;
}

/**
 * Whether this process belongs to a service, a task or a command that was started in `stateDir`. What its
 * daemon `daemonPid` has started for itself does not.
 */
export function isWithinRun(stateDir: string, daemonPid: number): boolean {
  const stateId = stateDirId(stateDir);
  for (const pid of upwardsFrom(process.pid)) {
    if (pid === daemonPid) return false;
    const environ = environOf(pid);
    if (environ && variableInEnviron(environ, `${STATE_ID_VARIABLE}=`) === stateId) return true;
  }
  return false;
}
