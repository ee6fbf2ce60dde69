// The daemon in the background: started by `up` and `daemon start`, ended by `daemon stop`.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, realpathSync, renameSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { urlOf } from '../adapters/url_host.ts';
import { type Local, runningDaemon } from '../client/local.ts';
import { type DaemonFile, openStateDir } from '../statedir.ts';
import type { Cli } from './cli.ts';
import { CommandError, EXIT } from './exit.ts';
import { plain } from './plain.ts';
import { progress } from './progress.ts';

const LOOK_MS = 50;
const START_MS = 30_000;
/** Longer than any sensible grace period of a service. */
const STOP_MS = 120_000;
const LOG_BYTES = 1024 * 1024;

export const daemonLog = (stateDir: string): string => join(stateDir, 'daemon.log');

/** The file that runs as `berth`; it runs the daemon as well. */
export const program = (): string => realpathSync(process.argv[1] ?? '');

/** The end of the daemon's log since `from`, for a daemon that did not start. */
function lastWords(path: string, from: number): string {
  const text = readFileSync(path).subarray(from).toString();
  return plain(text.trim().split('\n').slice(-5).join('\n'));
}

function openLog(path: string): { fd: number; from: number } {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES) renameSync(path, `${path}.1`);
  return { fd: openSync(path, 'a', 0o600), from: size > LOG_BYTES ? 0 : size };
}

/** Starts a daemon in the background and resolves once it serves. Throws a CommandError with what it said if it does not. */
export async function startDaemon(cli: Cli, local: Local): Promise<DaemonFile> {
  const { stateDir } = local;
  openStateDir(stateDir);
  const path = daemonLog(stateDir);
  const { fd, from } = openLog(path);
  const config = cli.globals.config ?? process.env['BERTH_CONFIG'];
  const args = ['daemon', '--state-dir', stateDir, ...(config ? ['--config', realpathSync(config)] : [])];
  const child = spawn(process.execPath, [program(), ...args], {
    detached: true,
    cwd: homedir(),
    stdio: ['ignore', fd, fd],
  });
  closeSync(fd);
  child.unref();
  let ended: string | undefined;
  child.on('exit', (code, signal) => {
    ended = signal ?? `exit code ${code}`;
  });
  const shown = progress(cli.out);
  shown.begin('the daemon', 'starting');
  try {
    for (const until = performance.now() + START_MS; performance.now() < until; await pause(LOOK_MS)) {
      const daemon = runningDaemon(stateDir);
      if (daemon && (await local.client.ready().catch(() => false))) return daemon;
      if (ended !== undefined) break;
    }
  } finally {
    shown.stop();
  }
  const why = ended === undefined ? `does not serve after ${START_MS / 1000} s` : `ended with ${ended}`;
  throw new CommandError(
    `the daemon ${why}:\n${lastWords(path, from)}`,
    `Its log is ${path}.`,
    EXIT.noDaemon,
  );
}

/** The daemon that serves this state directory; one is started, and said so, when none runs. */
export async function ensureDaemon(cli: Cli): Promise<void> {
  const local = await cli.local();
  const isElsewhere = (cli.globals.url ?? process.env['BERTH_URL']) !== undefined;
  if (isElsewhere || runningDaemon(local.stateDir)) return;
  const { pid, port } = await startDaemon(cli, local);
  cli.out.note(
    `Started the daemon in the background (pid ${pid}, ${urlOf(local.settings.bind, port)}); \`berth daemon stop\` ends it.`,
  );
}

/** Ends the daemon of this state directory and resolves once it is gone; undefined when none runs. */
export async function stopDaemon(cli: Cli, stateDir: string): Promise<DaemonFile | undefined> {
  const daemon = runningDaemon(stateDir);
  if (!daemon) return undefined;
  process.kill(daemon.pid, 'SIGTERM');
  const shown = progress(cli.out);
  shown.begin('the daemon', 'stopping its services and itself');
  try {
    for (const until = performance.now() + STOP_MS; performance.now() < until; await pause(LOOK_MS)) {
      if (runningDaemon(stateDir)?.pid !== daemon.pid) return daemon;
    }
  } finally {
    shown.stop();
  }
  throw new CommandError(
    `the daemon (pid ${daemon.pid}) does not end`,
    `Its log says more: ${daemonLog(stateDir)}. A second SIGTERM ends it at once: kill ${daemon.pid}`,
  );
}
