// What the programs of the daemon share: they start, say where they listen, and run until a signal ends them.
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
  /** Reads the settings again: docs/reference.md "Signals". */
  reload(): Promise<void>;
}

/** Reports why a server cannot go on, in one line, and exits: code 2 for errors of the user, 1 for others. */
export type GiveUp = (error: unknown) => Promise<never>;

/**
 * Ignores errors of stdout and stderr: a closed reader must not end the daemon. Creating these streams takes
 * Node 2 ms.
 */
export function ignoreOutputErrors(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

/** Whether the message of an error says enough: it is one line, and names what the user can change. */
const isExpected = (error: unknown): error is Error =>
  error instanceof SettingsError ||
  error instanceof StateFileError ||
  isFailure(error) ||
  // Of the system, such as a disk that cannot be written: the message names the file.
  (error instanceof Error && 'syscall' in error && 'path' in error);

/**
 * Calls `start` and prints the line that says where it listens; resolves then. A signal ends it, which also
 * aborts `ending`. `release` ends what a failed start leaves behind.
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
    // A failed start also fails the stop that waits for it. Report the first cause.
    failing ??= end(error);
    return failing;
  };
  const ending = new AbortController();
  // After the handlers of signals: settings in a pipe may never come.
  const starting = Promise.resolve().then(() => start(ending.signal, giveUp));
  onSignals({
    stop: () => {
      ending.abort(new Error('the daemon was asked to end before anybody wrote it'));
      if (process.stderr.isTTY) report('stopping; a second Ctrl-C after a second ends the daemon at once');
      void starting.then((server) => server.stop()).then(() => process.exit(0), giveUp);
    },
    reload: () => void starting.then((server) => server.reload()),
  });
  const server = await starting.catch(giveUp);
  process.stdout.write(`berth: listening on ${server.url}\n`);
  return { server, giveUp };
}
