// The start of the daemon: settings, then the front, the threads and the process host in parallel.
// docs/reference.md "The program".
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { decideHostStart } from '../adapters/host/host_start.ts';
import { prepareHostFolder, spawnHost } from '../adapters/host/spawn_host.ts';
import { boundOwnLog } from '../adapters/own_log.ts';
import { openFilesTrouble } from '../adapters/process/open_files_limit.ts';
import { runningDaemon } from '../adapters/process/running_daemon.ts';
import { fail } from '../protocol/errors.ts';
import { systemClock } from '../runtime/clock.ts';
import { entryUrl } from '../settings/build_paths.ts';
import { configFile, loadSettings, SettingsError } from '../settings/config.ts';
import { OWN_LOG, THREADS } from '../settings/limits.ts';
import { openStateDir, stateDirPath } from '../settings/state_dir.ts';
import { checkStateFiles, readTextInput } from '../settings/state_files.ts';
import { statePaths } from '../settings/state_paths.ts';
import type { Daemon } from './daemon.ts';
import { report } from './daemon_log.ts';
import { ignoreOutputErrors, runProgram } from './program.ts';
import { daemonRestarter } from './restart_daemon.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';
import type { StartedWorker } from './worker_thread.ts';

const USAGE = 'usage: berth daemon [--config FILE] [--state-dir DIR] [--restore-store] [--verbose]';

interface Arguments {
  config: string | undefined;
  stateDir: string | undefined;
  restoreStore: boolean;
  verbose: boolean;
}

function readArguments(argv: string[]): Arguments {
  try {
    const { values } = parseArgs({
      args: argv,
      options: {
        config: { type: 'string' },
        'state-dir': { type: 'string' },
        'restore-store': { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
      },
    });
    const { config, 'state-dir': stateDir, 'restore-store': restoreStore, verbose } = values;
    return { config, stateDir, restoreStore, verbose };
  } catch (error) {
    throw new SettingsError(`${(error as Error).message.split('\n')[0]} (${USAGE})`);
  }
}

/** The parts that have been started. */
interface StartedParts {
  readonly services: StartedWorker;
  /** All threads, once `services` has its assignment. */
  threads?: ThreadSupervisor;
}

async function start(
  argv: string[],
  started: StartedParts,
  onServicesLost: (error: unknown) => void,
  ending: AbortSignal,
): Promise<Daemon> {
  const { config, stateDir: named, restoreStore, verbose } = readArguments(argv);
  const trouble = openFilesTrouble();
  if (trouble !== null) throw new SettingsError(trouble);
  const umask = process.umask(0o077);
  const settings = await loadSettings(config, process.env, (path) => readTextInput(path, ending));
  const stateDir = stateDirPath(named, process.env);
  openStateDir(stateDir);
  checkStateFiles(stateDir);
  const running = runningDaemon(stateDir);
  if (running) throw fail('internal', `a daemon runs already (pid ${running.pid}) with ${stateDir}`);
  const { daemonLog } = statePaths(stateDir);
  systemClock.every(OWN_LOG.checkIntervalMs, () => boundOwnLog(daemonLog));
  const hostEntry = fileURLToPath(entryUrl('host'));
  const reload = () => loadSettings(config, process.env);
  const { path: configPath } = configFile(config, process.env);
  const restart = daemonRestarter(stateDir, config, umask);
  const options = {
    settings,
    stateDir,
    hostEntry,
    umask,
    restoreStore,
    verbose,
    configPath,
    reload,
    restart,
  };
  const turn = await decideHostStart(stateDir, THREADS.hostStartTimeoutMs, report);
  if (turn === 'started') spawnHost(stateDir, hostEntry);
  // Before the daemon serves: a host that is started later could not be.
  if (turn === 'deferred') prepareHostFolder(stateDir);
  const { createMainThread } = await import('./main_thread.ts');
  const mainThread = createMainThread(options, turn, started.services, onServicesLost);
  started.threads = mainThread.threads;
  ignoreOutputErrors();
  // The front would be ready long before either of them, so it leaves them the processor.
  if (turn === 'started') await started.services.online;
  const { bootDaemon } = await import('./daemon.ts');
  return bootDaemon(options, mainThread, turn);
}

/** Runs `berth cloud serve` until a signal ends it. `argv` holds the arguments after these words. */
export const serveCloud = async (argv: string[]): Promise<void> =>
  (await import('./cloud_server.ts')).runCloudServer(argv);

/**
 * Runs the daemon until a signal ends it. `argv` holds the arguments after `berth daemon`; `services` is the
 * services thread, which takes as long to start as everything else.
 */
export async function runDaemon(argv: string[], services: StartedWorker): Promise<void> {
  const begun: StartedParts = { services };
  const release = async (): Promise<void> => {
    await services.loaded;
    // Ending a thread in the middle of an lmdb call would end or hang the process.
    await begun.threads?.stop();
  };
  const { server, giveUp } = await runProgram(
    (ending, onServicesLost) => start(argv, begun, onServicesLost, ending),
    release,
  );
  await server.hostJoined.catch(giveUp);
}
