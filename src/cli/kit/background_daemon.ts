// The daemon in the background: `up` and `daemon start` start it, `daemon stop` stops it.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, realpathSync, renameSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startLockHolder } from '../../adapters/host/host_start.ts';
import { mayBeAlive, processRow, TICKS_PER_SECOND } from '../../adapters/process/process_table.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import { localUrl } from '../../adapters/url_host.ts';
import { type LocalDaemon, namedUrl } from '../../client/local_daemon.ts';
import { cleanEnvironment } from '../../protocol/base_environment.ts';
import { OWN_LOG } from '../../settings/limits.ts';
import { type AddressRecord, openStateDir } from '../../settings/state_dir.ts';
import { checkStateFiles } from '../../settings/state_files.ts';
import { statePaths } from '../../settings/state_paths.ts';
import type { CommandContext } from './context.ts';
import { CommandError, EXIT_CODE } from './exit_codes.ts';
import { createProgress } from './progress.ts';
import { sanitize } from './sanitize.ts';

const POLL_MS = 50;
const START_TIMEOUT_MS = 30_000;
/** Longer than any sensible grace period of a service. */
const STOP_TIMEOUT_MS = 120_000;

/** Signals that kill a process that reads a damaged page of the store: lmdb does not verify its pages. */
const MEMORY_FAULTS: readonly unknown[] = ['SIGABRT', 'SIGBUS', 'SIGSEGV'];
const DAMAGED_STORE_HINT =
  'If it ends like this again, its store is damaged: `berth daemon --restore-store` goes back to the copy.';

/** The file that runs as `berth`, and also as the daemon. */
export const berthScript = (): string => realpathSync(process.argv[1] ?? '');

/** The last lines of the daemon's log after byte `from`. */
function logTail(path: string, from: number): string {
  const text = readFileSync(path).subarray(from).toString();
  return sanitize(text.trim().split('\n').slice(-5).join('\n'));
}

function openDaemonLog(path: string): { fd: number; from: number } {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const isFull = size > OWN_LOG.maxBytes;
  if (isFull) renameSync(path, `${path}.1`);
  return { fd: openSync(path, 'a', 0o600), from: isFull ? 0 : size };
}

interface DaemonWait {
  /** The pid of the daemon that the new one replaces. */
  before?: number | undefined;
  hasEnded?: () => boolean;
}

/** Waits until the starting daemon serves; undefined if it ends, or is not ready in time. */
async function awaitDaemon(
  context: CommandContext,
  { stateDir, client }: LocalDaemon,
  { before, hasEnded = () => false }: DaemonWait,
): Promise<AddressRecord | undefined> {
  const progress = createProgress(context.out);
  progress.begin('the daemon', 'starting');
  const until = performance.now() + START_TIMEOUT_MS;
  try {
    while (performance.now() < until) {
      const daemon = runningDaemon(stateDir);
      if (daemon && daemon.pid !== before && (await client.ready().catch(() => false))) return daemon;
      if (hasEnded()) return undefined;
      await pause(POLL_MS);
    }
    return undefined;
  } finally {
    progress.stop();
  }
}

/** Waits for the daemon that a service manager starts in place of `before`. Throws a CommandError. */
export async function nextDaemon(
  context: CommandContext,
  local: LocalDaemon,
  before: number | undefined,
): Promise<AddressRecord> {
  const daemon = await awaitDaemon(context, local, { before });
  if (daemon) return daemon;
  const waited = `${START_TIMEOUT_MS / 1000} s`;
  throw new CommandError(`the daemon was not ready after ${waited}`, '`berth daemon logs` shows why.');
}

/** Waits for the daemon that another command has started meanwhile; undefined if there is none. */
async function simultaneousDaemon(
  context: CommandContext,
  local: LocalDaemon,
): Promise<AddressRecord | undefined> {
  const holder = await lockingDaemon(local.stateDir);
  const own = processRow(process.pid)?.startTicks ?? 0;
  // An older one that is not found has lost its address file.
  const isNew = holder && holder.startTime >= own - (START_TIMEOUT_MS / 1_000) * TICKS_PER_SECOND;
  const hasEnded = () => !holder || !mayBeAlive(holder.pid, holder.startTime);
  return isNew ? awaitDaemon(context, local, { hasEnded }) : undefined;
}

/** What names the certificate authorities of the user, for a daemon with another working directory. */
export function certificateEnvironment(): Record<string, string> {
  const file = process.env['NODE_EXTRA_CA_CERTS'];
  return file ? { NODE_EXTRA_CA_CERTS: resolve(file) } : {};
}

/**
 * Starts a daemon in the background and resolves once it serves, or one that was started at the same time.
 * Otherwise, throws a CommandError with the end of its log.
 */
export async function startBackgroundDaemon(
  context: CommandContext,
  local: LocalDaemon,
): Promise<AddressRecord> {
  const { stateDir } = local;
  openStateDir(stateDir);
  checkStateFiles(stateDir);
  const path = statePaths(stateDir).daemonLog;
  const { fd, from } = openDaemonLog(path);
  const config = context.globalOptions.config ?? process.env['BERTH_CONFIG'];
  const args = ['daemon', '--state-dir', stateDir, ...(config ? ['--config', resolve(config)] : [])];
  const child = spawn(process.execPath, [berthScript(), ...args], {
    detached: true,
    cwd: homedir(),
    env: { ...cleanEnvironment(process.env), ...certificateEnvironment() },
    stdio: ['ignore', fd, fd],
  });
  closeSync(fd);
  child.unref();
  let ended: string | undefined;
  child.on('exit', (code, signal) => {
    ended = signal ?? `exit code ${code}`;
  });
  const own = await awaitDaemon(context, local, { hasEnded: () => ended !== undefined });
  const daemon = own ?? (ended && (await simultaneousDaemon(context, local)));
  if (daemon) return daemon;
  const why =
    ended === undefined ? `was not ready after ${START_TIMEOUT_MS / 1000} s` : `ended with ${ended}`;
  throw new CommandError(
    `the daemon ${why}:\n${logTail(path, from)}`,
    `Its log is ${path}.${MEMORY_FAULTS.includes(ended) ? ` ${DAMAGED_STORE_HINT}` : ''}`,
    EXIT_CODE.noDaemon,
  );
}

/** Whether a daemon runs for this state directory, or BERTH_URL names another. */
export async function isDaemonThere(context: CommandContext): Promise<boolean> {
  const isElsewhere = namedUrl(context.globalOptions, process.env) !== undefined;
  return isElsewhere || runningDaemon((await context.local()).stateDir) !== undefined;
}

/**
 * Starts a daemon for this state directory, with a note to the user, unless one runs or BERTH_URL names
 * another.
 */
export async function ensureDaemon(context: CommandContext): Promise<void> {
  if (await isDaemonThere(context)) return;
  const local = await context.local();
  const { pid, port } = await startBackgroundDaemon(context, local);
  context.out.note(
    `Started the daemon in the background (pid ${pid}, ${localUrl(local.settings.bind, port)}); ` +
      '`berth daemon stop` ends it.',
  );
}

type DaemonIdentity = Pick<AddressRecord, 'pid' | 'startTime'>;

/**
 * The daemon that holds the lock of the state directory, or of one that was removed in its place; undefined
 * without one.
 */
export async function lockingDaemon(stateDir: string): Promise<DaemonIdentity | undefined> {
  const holder = await startLockHolder(stateDir);
  return holder && { pid: holder.pid, startTime: holder.startTicks };
}

/**
 * Stops the daemon of this state directory by `signal` and resolves once it has ended; undefined if none
 * runs.
 */
export async function stopBackgroundDaemon(
  context: CommandContext,
  stateDir: string,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<DaemonIdentity | undefined> {
  // Someone may have deleted daemon.json, or the whole directory.
  const daemon = runningDaemon(stateDir) ?? (await lockingDaemon(stateDir));
  if (!daemon) return undefined;
  // A suspended process acts on no signal before it continues.
  process.kill(daemon.pid, 'SIGCONT');
  process.kill(daemon.pid, signal);
  const progress = createProgress(context.out);
  progress.begin('the daemon', 'stopping its services and itself');
  try {
    for (const until = performance.now() + STOP_TIMEOUT_MS; performance.now() < until; await pause(POLL_MS)) {
      if (!mayBeAlive(daemon.pid, daemon.startTime)) return daemon;
    }
  } finally {
    progress.stop();
  }
  throw new CommandError(
    `the daemon (pid ${daemon.pid}) does not stop`,
    `Its log is ${statePaths(stateDir).daemonLog}. A second SIGTERM ends it at once: kill ${daemon.pid}`,
  );
}
