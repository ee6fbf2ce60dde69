// Starts the process host. Apart from the rest of its adapter, because it is the first thing that a daemon does.
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonProcess } from '../../protocol/host_handshake.ts';
import { processRow } from '../process/process_table.ts';

/** Where the host of a state directory keeps its own files. */
export const hostFolder = (stateDir: string): string => join(stateDir, 'host');

/** What a host needs of the environment; everything else reaches children with each start. */
const INHERITED = ['PATH', 'LD_LIBRARY_PATH', 'TZ'] as const;

/** This process, as a host is told of it. */
export const thisDaemon = (): DaemonProcess => ({
  daemonPid: process.pid,
  daemonStart: processRow(process.pid)?.startTicks ?? 0,
});

/**
 * Starts the host of `stateDir` as a process of its own session; `entry` is its built file. Does not wait. Harmless when
 * there is one: the new one sees that and ends. It is kept for this process while that lives, which may have said that it
 * listens: no other daemon gets it. What it has to say goes to `<stateDir>/host/host.log`.
 */
export function spawnHost(stateDir: string, entry: string): void {
  const folder = hostFolder(stateDir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const log = openSync(join(folder, 'host.log'), 'a', 0o600);
  try {
    const env = Object.fromEntries(
      INHERITED.flatMap((key) => (process.env[key] ? [[key, process.env[key]]] : [])),
    );
    const { daemonPid, daemonStart } = thisDaemon();
    const child = spawn(process.execPath, [entry, stateDir, `${daemonPid}`, `${daemonStart}`], {
      detached: true,
      cwd: '/',
      env,
      stdio: ['ignore', log, log],
    });
    // Whether it could be started shows in whether it answers.
    child.on('error', () => {});
    child.unref();
  } finally {
    closeSync(log);
  }
}
