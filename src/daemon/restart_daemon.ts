// Restarts the daemon for a command that ends with it: docs/reference.md "Signals".
import { spawn } from 'node:child_process';
import { cleanEnvironment } from '../protocol/base_environment.ts';
import { report } from './daemon_log.ts';

/** Variables of a run or an agent. The command that restarts belongs to neither. */
const NOT_PASSED_ON = ['BERTH_RUN', 'BERTH_SERVICE', 'BERTH_STATE_ID', 'BERTH_AGENT', 'BERTH_AGENT_TOKEN'];

/**
 * Returns a function that runs `berth daemon restart` as a child of the daemon, one at a time. `umask` is the
 * user's own, which the next daemon gives to its services.
 */
export function daemonRestarter(stateDir: string, config: string | undefined, umask: number): () => void {
  let isUnderWay = false;
  return () => {
    if (isUnderWay) return;
    isUnderWay = true;
    const options = ['--state-dir', stateDir, ...(config === undefined ? [] : ['--config', config])];
    const env = cleanEnvironment(process.env);
    for (const name of NOT_PASSED_ON) delete env[name];
    const { argv, execPath } = process;
    const command = [execPath, argv[1] ?? '', 'daemon', 'restart', ...options];
    const child = spawn('/bin/sh', ['-c', 'umask "$0" && exec "$@"', umask.toString(8), ...command], {
      detached: true,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    child.unref();
    const over = (): void => {
      isUnderWay = false;
    };
    child.on('exit', over);
    child.on('error', ({ message }) => {
      report(`the daemon is not restarted: ${message}`);
      over();
    });
  };
}
