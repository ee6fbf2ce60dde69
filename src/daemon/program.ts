// The common parts of the daemon's programs: they start, say where they listen, and run until a signal ends
// them.
import { isFailure } from '../runtime/actor.ts';
import { SettingsError } from '../settings/config.ts';
import { StateFileError } from '../settings/state_files.ts';
import { describeError, report } from './daemon_log.ts';
import { onSignals } from './signals.ts';

const EXIT = { failed: 1, usage: 2 } as const;

export interface RunningServer {
  readonly url: string;
  /** Ends everything in order. */
  stop(): Promise<void>;
  /** Rereads the settings: docs/reference.md "Signals". */
  reload(): Promise<void>;
  /** Lets a process of its own stop this server and start the next one; absent: it cannot. */
  restart?(): void;
}

/** Reports in one line why a server cannot continue, and exits: code 2 for user errors, 1 for others. */
export type GiveUp = (error: unknown) => Promise<never>;

/**
 * Ignores errors of stdout and stderr, because a closed reader must not end the daemon. Creating these
 * streams takes Node 2 ms.
 */
export function ignoreOutputErrors(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

/** Whether an error's message is enough: one line that names what the user can change. */
const isExpected = (error: unknown): error is Error =>
  error instanceof SettingsError ||
  error instanceof StateFileError ||
  isFailure(error) ||
  // Errors of the system, such as a disk that cannot be written; the message names the file.
  (error instanceof Error && 'syscall' in error && 'path' in error);

/**
 * Calls `start`, prints the line that says where it listens, and resolves. A signal ends the server and
 * aborts `ending`. `release` cleans up after a failed start.
 */
export async function runProgram<S extends RunningServer>(
  start: (ending: AbortSignal, giveUp: GiveUp) => Promise<S>,
  release: () => Promise<unknown>,
): Promise<{ server: S; giveUp: GiveUp }> {
  const end = async (error: unknown): Promise<never> => {
    report(isExpected(error) ? error.message : describeError(error));
    await release();
    process.exit(error instanceof SettingsError ? EXIT.usage : EXIT.failed);
  };
  let failing: Promise<never> | undefined;
  const giveUp: GiveUp = (error) => {
    // A failed start also fails the stop that waits for it, so only the first cause is reported.
    failing ??= end(error);
    return failing;
  };
  const ending = new AbortController();
  // After the signal handlers, because settings from a pipe may never arrive.
  const starting = Promise.resolve().then(() => start(ending.signal, giveUp));
  onSignals({
    stop: () => {
      ending.abort(new Error('the daemon was asked to end before anybody wrote it'));
      if (process.stderr.isTTY) report('stopping; a second Ctrl-C after a second ends the daemon at once');
      void starting.then((server) => server.stop()).then(() => process.exit(0), giveUp);
    },
    reload: () => void starting.then((server) => server.reload()),
    restart: () => void starting.then((server) => server.restart?.()),
  });
  const server = await starting.catch(giveUp);
  process.stdout.write(`berth: listening on ${server.url}\n`);
  return { server, giveUp };
}
