// Starts the process host. In a file of its own, because it is the first thing that a daemon does.
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import type { DaemonProcess } from '../../protocol/host_handshake.ts';
import { checkWritable } from '../../settings/state_dir.ts';
import { stateDirId, statePaths } from '../../settings/state_paths.ts';
import { processRow } from '../process/process_table.ts';
import { STATE_ID_VARIABLE } from '../process/process_tree.ts';

/** The variables that a host inherits. Children get their whole environment with each start. */
const INHERITED = ['PATH', 'LD_LIBRARY_PATH', 'TZ'] as const;

/** This process, as a daemon identifies itself to a host. */
export const thisDaemon = (): DaemonProcess => ({
  daemonPid: process.pid,
  daemonStart: processRow(process.pid)?.startTicks ?? 0,
});

/** Makes the folder of the host. Throws a SettingsError when the host could not write to it. */
export function prepareHostFolder(stateDir: string): void {
  const { host } = statePaths(stateDir);
  mkdirSync(host, { recursive: true, mode: 0o700 });
  checkWritable(host);
}

/**
 * Starts the host of `stateDir` in a session of its own, without waiting. `entry` is its built file. Harmless
 * if a host is running: the new one exits. While this process lives, the host admits no other daemon, because
 * this one may already be listening. The host logs to `<stateDir>/host/host.log`. Throws as
 * `prepareHostFolder` does.
 */
export function spawnHost(stateDir: string, entry: string): void {
  prepareHostFolder(stateDir);
  const log = openSync(statePaths(stateDir).hostLog, 'a', 0o600);
  try {
    const env = Object.fromEntries(
      INHERITED.flatMap((key) => (process.env[key] ? [[key, process.env[key]]] : [])),
    );
    // Tells a run from other processes even if it has cleared its environment.
    env[STATE_ID_VARIABLE] = stateDirId(stateDir);
    const { daemonPid, daemonStart } = thisDaemon();
    const child = spawn(process.execPath, [entry, stateDir, `${daemonPid}`, `${daemonStart}`], {
      detached: true,
      cwd: '/',
      env,
      stdio: ['ignore', log, log],
    });
    // A host that failed to start is noticed because it does not answer.
    child.on('error', () => {});
    child.unref();
  } finally {
    closeSync(log);
  }
}
