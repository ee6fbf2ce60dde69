// The signals of the daemon: docs/reference.md "Signals".
import { hasTerminal } from '../adapters/process/process_table.ts';
import { SERVICE } from '../settings/limits.ts';
import { report } from './daemon_log.ts';

/**
 * Signals within this time of the first count as the same one: npm forwards a signal that the terminal has
 * already sent.
 */
const DUPLICATE_SIGNAL_MS = 1_000;

export interface SignalHandlers {
  /** Called at the first SIGTERM or SIGINT. */
  stop: () => void;
  /** Called at a SIGHUP of a daemon without a terminal. */
  reload: () => void;
  /** Called at a SIGUSR2, unless the daemon is ending. */
  restart: () => void;
}

/**
 * Ends the process by the signal itself. A normal exit would wait for threads, and one in the middle of an
 * lmdb call may hang.
 */
function killSelf(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/** Handles the signals of the daemon for the life of the process. */
export function onSignals({ stop, reload, restart }: SignalHandlers): void {
  let first: number | undefined;
  const end = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (first === undefined) {
      first = now;
      setTimeout(() => {
        report(`not everything has ended within ${SERVICE.endMs / 1_000} s of the signal`);
        killSelf(signal);
      }, SERVICE.endMs).unref();
      stop();
    } else if (now - first > DUPLICATE_SIGNAL_MS) killSelf(signal);
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', (signal) => {
    // With a controlling terminal, SIGHUP means that the terminal was closed.
    if (hasTerminal(process.pid) ?? process.stdin.isTTY === true) end(signal);
    else reload();
  });
  process.on('SIGUSR2', () => {
    if (first === undefined) restart();
  });
}
