// Whether the daemon of the state directory is the one that the user means, for commands that end it.
import { runStateId } from '../../adapters/process/ancestors.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import { unbracketedHost, withScheme } from '../../adapters/url_host.ts';
import { type LocalDaemon, namedUrl } from '../../client/local_daemon.ts';
import { isLoopback } from '../../settings/loopback.ts';
import { stateDirId } from '../../settings/state_paths.ts';
import type { CommandContext } from './context.ts';
import { UsageError } from './exit_codes.ts';

const HINT = 'Name its state directory with --state-dir.';

function isDaemonAt(named: string, { settings, stateDir }: LocalDaemon): boolean {
  const url = new URL(withScheme(named));
  const host = unbracketedHost(url);
  const isHere = host === 'localhost' || host === settings.bind || isLoopback(host);
  return isHere && Number(url.port || 80) === runningDaemon(stateDir)?.port;
}

/** The id of a state directory; null if there is none. */
function idOf(stateDir: string): string | null {
  try {
    return stateDirId(stateDir);
  } catch {
    return null;
  }
}

/**
 * Throws a UsageError if a URL names another daemon than that of the state directory, or if Berth runs this
 * command and that daemon has another state directory, unless the user has named the directory.
 */
export function checkIsMeant({ globalOptions }: CommandContext, local: LocalDaemon): void {
  const { stateDir } = local;
  const named = namedUrl(globalOptions, process.env);
  if (named !== undefined && !isDaemonAt(named, local))
    throw new UsageError(`${named} is not the daemon of ${stateDir}, which this command is about`, HINT);
  if (globalOptions.stateDir !== undefined || process.env['BERTH_STATE_DIR']) return;
  const within = runStateId();
  if (within !== undefined && within !== idOf(stateDir))
    throw new UsageError(
      `a daemon with another state directory than ${stateDir} runs this command, and it is unclear which one is meant`,
      HINT,
    );
}
